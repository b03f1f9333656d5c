"""Writing checkpoints of a run into its folder."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from halocline import forks
from halocline.archive import arrays
from halocline.archive.arrays import ArraySpec
from halocline.archive.files import FolderLock, is_file, make_folder, remove_folder, sync_folder, write_json
from halocline.archive.series import FACTS
from halocline.archive.series import facts as facts_of
from halocline.archive.writer import Writing
from halocline.errors import InputError, RunError
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.grid import Field
from halocline.plan.chunks import ChunkGrid, Selection, chunk_shape
from halocline.run.fields.dimensions import axis_attributes, dimensions
from halocline.run.memory.assembly import assembled
from halocline.run.memory.contents import checksum
from halocline.run.memory.store import FieldStore
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.saved import DIGEST, FORMAT, KIND, POINTER, Saved, digest, folders
from halocline.run.output.statistics import PREFIX
from halocline.run.output.writers import writer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_own_runs: set[str] = set()  # runs of this process that wrote checkpoints or restarted from one
STOP = "stop"  # a file of this name in the folder of checkpoints ends the run


class CheckpointFolder:
    """Where a run leaves its checkpoints. All ranks call its methods.

    Parameters
    ----------
    how : Checkpoint
    store : FieldStore

    Attributes
    ----------
    last : path or None
        The newest that this run has completed.
    seconds : float
        That the run spent on putting the longest together.
    """

    def __init__(self, how: Checkpoint, store: FieldStore) -> None:
        self.how, self.store, self.path = how, store, Path(how.path)
        self.comm = store.domain.comm
        self.writer = writer(self.comm, how.io_threads)
        self.last: Path | None = None
        self.seconds, self._total = 0.0, 0.0
        self._lock: FolderLock | None = None
        self._earlier: list[Path] = []  # checkpoints of earlier runs of this process
        self._open: tuple[Path, dict[str, Any]] | None = None  # being written, with its metadata

    @property
    def stop_file(self) -> Path:
        """A file that asks the run to stop."""
        return self.path / STOP

    def check(self, run: str) -> None:
        """See that nothing lies in the way; nothing is changed.

        Parameters
        ----------
        run : str
            Which run it is.

        Raises
        ------
        InputError
            There are checkpoints of another run, or the folder is something else.
        RunError
            This process is a fork of one that has written stores.
        """
        with self.comm.agreement(f"look at {self.path} for checkpoints"):
            if self.comm.rank != 0:
                return
            forks.check(forks.STORES)
            if is_file(self.path / arrays.GROUP):
                raise InputError(
                    f"{self.path} is itself a checkpoint or a store; expected a folder for checkpoints, such "
                    f"as {self.path.parent}"
                )
            others = self._of_others(run)
            if others and not self.how.overwrite:
                raise InputError(
                    f"{self.path} holds checkpoints of another run, the newest {others[-1].name}: go on from "
                    "it (--resume), choose another folder, or overwrite it (--overwrite)"
                )

    def _of_others(self, run: str) -> list[Path]:
        """Whole checkpoints that other runs have left."""
        whole = [each for each in folders(self.path) if is_file(each / arrays.GROUP)]
        return [each for each in whole if facts_of(each).get("run") != run]

    def lock(self) -> None:
        """Make the folder, and let no other process leave checkpoints there.

        Raises
        ------
        InputError
            Another one does so.
        RunError
            The folder cannot be written to.
        """
        with self.comm.agreement(f"prepare {self.path} for checkpoints"):
            if self.comm.rank == 0:
                self._lock = FolderLock(self.path, "checkpoints")

    def begin(self, run: str, resumed: Saved | None) -> None:
        """Prepare the folder before the run computes anything.

        Checkpoints of runs of other processes are removed. Checkpoints of earlier runs of this process stay
        until this run has completed its first checkpoint; until then the newest of them remains the newest.

        Parameters
        ----------
        run : str
            Identifier of the run.
        resumed : Saved or None
            Checkpoint that the run restarts from. It becomes the newest of the folder, since the run is about
            to remove output of later steps.

        Raises
        ------
        RunError
            The folder cannot be written to.
        """
        with self.comm.agreement(f"prepare {self.path} for checkpoints"):
            if self.comm.rank != 0:
                return
            others = self._of_others(run)
            self._earlier = [other for other in others if facts_of(other).get("run") in _own_runs]
            _own_runs.add(run)
            for other in others:
                if other not in self._earlier:
                    remove_folder(other, arrays.GROUP)
            if resumed is not None and resumed.folder.parent.resolve() == self.path.resolve():
                write_json(self.path / POINTER, {"checkpoint": resumed.folder.name})
            elif not any(is_file(folder / arrays.GROUP) for folder in folders(self.path)):
                (self.path / POINTER).unlink(missing_ok=True)
            self.stop_file.unlink(missing_ok=True)

    def close(self) -> None:
        """Let other processes write there."""
        if self._lock is not None:
            self._lock.free()
            self._lock = None

    def write(self, step: int, fields: Sequence[Field], facts: Mapping[str, Any]) -> None:
        """Start to write a checkpoint of fields and facts; `finish` completes it.

        No other checkpoint may be open.
        """
        began = perf_counter()
        comm, store = self.comm, self.store
        name = comm.bcast(f"step-{step:012d}-{secrets.token_hex(4)}")
        folder = self.path / name
        specs, lines = {f.name: _spec(f) for f in fields}, _coordinates(fields)
        with self._removing(folder):
            if comm.rank == 0:
                make_folder(folder)
                for f in fields:
                    arrays.create(folder / f.name, specs[f.name])
                for dimension, (spec, line) in lines.items():
                    arrays.create(folder / dimension, spec).put((0,), line)
        field_facts = {
            f.name: {
                "dtype": f.dtype,
                "location": f.location,
                "checksum": checksum(store, f),
                "work": f.grid.is_own(f) or f.name.startswith(PREFIX),
            }
            for f in fields
        }
        content = {**facts, "kind": KIND, "format": FORMAT, "step": step, "fields": field_facts}
        all_specs = {**specs, **{dimension: spec for dimension, (spec, _) in lines.items()}}
        self._open = (
            folder,
            arrays.group_metadata(
                {FACTS: {**content, DIGEST: digest(content)}}, dict(sorted(all_specs.items()))
            ),
        )
        targets: dict[str, Any] = {}
        with self._removing(folder):
            for name, spec in specs.items():
                targets[name] = self.writer.attach(folder / name, spec)
        for f in fields:
            grid = ChunkGrid(specs[f.name].shape, specs[f.name].chunk)
            for lo, values in assembled(store, f, grid, Selection.all(f.points)):
                self.writer.write(targets[f.name], lo, values)
        took = perf_counter() - began
        self.seconds, self._total = max(self.seconds, took), self._total + took

    @property
    def writing(self) -> Writing:
        """What it took of the run."""
        return Writing(self.writer.written, self._total, self.writer.waited)

    @property
    def open(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._open is not None

    @property
    def whole(self) -> bool:
        """Whether all chunks of the checkpoint that is being written are on disk; all ranks ask."""
        return self._open is not None and not self.comm.most(not self.writer.done)

    def give_up(self, why: str) -> None:
        """Remove the checkpoint that is being written.

        Raises
        ------
        RunError
            Always: the one before is still the newest.
        """
        assert self._open is not None
        folder, _ = self._open
        with contextlib.suppress(RunError):
            self.writer.finish()
        with self._removing(folder):
            raise RunError(f"{folder} is given up, since {why}")

    def finish(self) -> None:
        """Wait until the checkpoint that is being written is whole, and name it the newest.

        Raises
        ------
        RunError
            It cannot be written; the one before is still the newest.
        """
        if self._open is None:
            return
        began = perf_counter()
        folder, group = self._open
        with self._removing(folder):
            self.writer.finish()
        with self._removing(folder):
            if self.comm.rank == 0:
                write_json(folder / arrays.GROUP, group)
                sync_folder(folder)
                write_json(self.path / POINTER, {"checkpoint": folder.name})
                self._remove_old(folder)
        self.last, self._open = folder, None
        self._total += perf_counter() - began

    def _remove_old(self, now: Path) -> None:
        """Remove old checkpoints, those of earlier runs, and incomplete ones."""
        others = [folder for folder in folders(self.path) if folder != now and folder not in self._earlier]
        complete = [folder for folder in others if is_file(folder / arrays.GROUP)]
        step = int(now.name.split("-")[1])
        older = [folder for folder in complete if int(folder.name.split("-")[1]) <= step]
        retained = {now, *older[max(0, len(older) + 1 - self.how.keep) :]}
        for folder in folders(self.path):
            if folder not in retained:
                remove_folder(folder, arrays.GROUP)
        self._earlier = []

    @contextmanager
    def _removing(self, folder: Path) -> Iterator[None]:
        """An agreement in which a checkpoint that cannot be written leaves nothing behind."""
        try:
            with self.comm.agreement(f"write checkpoint {folder}"):
                yield
        except RunError as error:
            self._open = None
            if self.comm.rank == 0:
                remove_folder(folder, arrays.GROUP)
            before = "" if self.last is None else f"; the newest checkpoint is {self.last}"
            raise RunError(f"checkpoint: {error}{before}") from None


def _spec(field: Field) -> ArraySpec:
    """How a field is stored: all of its points, in chunks that do not depend on the ranks."""
    shape = field.points
    chunk = chunk_shape(shape, ITEMSIZE[field.dtype])
    return ArraySpec(shape, chunk, field.dtype, dimensions(field.staggered))


def _coordinates(fields: Sequence[Field]) -> dict[str, tuple[ArraySpec, NDArray[Any]]]:
    """The coordinates of all points, by dimension, for readers of other programs, and other resolutions."""
    found: dict[str, tuple[ArraySpec, NDArray[Any]]] = {}
    grid = fields[0].grid
    for f in fields:
        for axis, (dimension, line) in enumerate(zip(dimensions(f.staggered), f.positions, strict=True)):
            attributes = axis_attributes(grid, axis)
            found[dimension] = ArraySpec(line.shape, line.shape, "float64", (dimension,), attributes), line
    return {dimension: each for dimension, each in found.items() if dimension not in grid.fields}
