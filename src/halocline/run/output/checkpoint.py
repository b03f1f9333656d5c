"""Checkpoints of a run: stores that contain the state at a single simulated time.

A pointer file names the newest complete checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from halocline import __version__, forks
from halocline.archive import arrays
from halocline.archive.files import (
    as_path,
    check_text,
    is_file,
    make_folder,
    remove_folder,
    sync,
    write_json,
)
from halocline.archive.reader import FACTS
from halocline.archive.reader import facts as facts_of
from halocline.errors import InputError, RunError
from halocline.lang.values import json_value
from halocline.ranges import CHECKPOINTS, IO_THREADS
from halocline.run.fields.regions import Whole
from halocline.run.fields.session import Session
from halocline.run.memory.contents import checksum
from halocline.run.output.every import Every, wall_clock
from halocline.run.output.output import PREFIX
from halocline.run.output.output_store import OutputStore
from halocline.run.output.restart import (
    DIGEST,
    FORMAT,
    KIND,
    POINTER,
    Saved,
    digest,
    folders,
    step_of,
)
from halocline.run.output.store import Part, RunStore, coordinate
from halocline.words import short_repr

# A run stops at least this time before its time limit, in seconds.
MARGIN = 60.0
# Name of the stop file. A run stops if its folder of checkpoints contains this file.
STOP = "stop"
# Runs of this process that wrote checkpoints or were resumed from a checkpoint.
_own_runs: set[str] = set()


@dataclass(frozen=True)
class Checkpoint:
    """Checkpoints of a run, from which the run can restart on any number of ranks.

    The results of the restarted run are bit-for-bit identical to those of an uninterrupted run.

    Parameters
    ----------
    path : str or path
        Folder of the checkpoints.
    every : float, hc.steps or str, optional
        Interval between two checkpoints: a float is simulated time, ``hc.steps(5)`` or "5 steps" a number of
        steps or iterations, and a text such as "30 min" wall-clock time. The run also writes a checkpoint at
        its end and before an early stop. Early stops are requested by SIGTERM, SIGUSR1 or SIGINT, by a file
        named "stop" in the folder, or by the time limit.
    keep : int
        Number of checkpoints to keep. The run removes older checkpoints.
    overwrite : bool
        If True, the run may remove checkpoints of another run from the folder.
    time_limit : str, optional
        Maximum time from the start of the process to the end of the run, such as "11 h 50 min". By default,
        the run ends before its Slurm job.
    io_threads : int
        Number of threads per rank that compress and write during computation.

    Raises
    ------
    InputError
        A number or text is out of range.
    """

    path: str | Path
    every: Every | float | str | None = None
    keep: int = 2
    overwrite: bool = False
    time_limit: str | None = None
    io_threads: int = 1

    def __post_init__(self) -> None:
        check_text(as_path(self.path, "the path of a checkpoint"))
        object.__setattr__(self, "keep", CHECKPOINTS.check("keep", self.keep))
        object.__setattr__(self, "io_threads", IO_THREADS.check("io_threads", self.io_threads))
        if self.every is not None:
            Every.parse("every", self.every)
        if self.time_limit is not None and wall_clock("time_limit", self.time_limit) <= MARGIN:
            raise InputError(
                f"time_limit is {short_repr(self.time_limit)}; expected more than {MARGIN:g} s, because a "
                f"run stops {MARGIN:g} s before the limit"
            )


class Checkpoints(RunStore):
    """Checkpoints that a session writes to a folder. All methods are collective.

    Parameters
    ----------
    declaration : Checkpoint
    session : Session
    parameters : mapping of str to float
        Parameters of the run, set by the user.
    outputs : sequence of OutputStore
        Outputs of the run. A checkpoint is complete only when all rows before the checkpoint are on disk,
        because a resumed run does not write these rows again.
    extra_facts : callable, optional
        Function that returns further facts for the checkpoint, as JSON data.
    run : str
        Identifier of the run.
    command : sequence of str
        Words of the command line.
    resumed : Saved or None
        Checkpoint from which the run was resumed.

    Attributes
    ----------
    last : path or None
        Newest complete checkpoint of this run.
    longest : float
        Longest time, in seconds, that the run needed to assemble a checkpoint.
    """

    def __init__(
        self,
        declaration: Checkpoint,
        session: Session,
        parameters: Mapping[str, float],
        outputs: Sequence[OutputStore],
        extra_facts: Callable[[], Mapping[str, Any]] | None,
        *,
        run: str,
        command: Sequence[str],
        resumed: Saved | None,
    ) -> None:
        super().__init__(declaration.path, "checkpoints", session.fields.store, declaration.io_threads)
        self.declaration, self.session, self.parameters, self.outputs = (
            declaration,
            session,
            dict(parameters),
            outputs,
        )
        self.last: Path | None = None
        self.longest = 0.0
        self._run, self._command, self._resumed, self._extra_facts = run, command, resumed, extra_facts
        self._earlier: list[Path] = []  # checkpoints of earlier runs of this process
        self._open: tuple[Path, dict[str, Any]] | None = None  # incomplete checkpoint, with its metadata
        self._rows: list[int] = []  # rows of the outputs before this checkpoint

    @property
    def stop_file(self) -> Path:
        """File that requests a stop of the run."""
        return self.path / STOP

    def check(self) -> None:
        """Check that the run may write to the folder. Change nothing on disk.

        Raises
        ------
        InputError
            The folder contains checkpoints of another run, or is a store.
        RunError
            This process is a fork of a process that has written stores.
        """
        with self.comm.agreement(f"inspect {self.path} for checkpoints"):
            if self.comm.rank != 0:
                return
            forks.check(forks.STORES)
            if is_file(self.path / arrays.GROUP):
                raise InputError(
                    f"{self.path} is itself a checkpoint or a store; expected a folder for checkpoints, such "
                    f"as {self.path.parent}"
                )
            foreign = self._foreign_checkpoints()
            if foreign and not self.declaration.overwrite:
                raise InputError(
                    f"{self.path} holds checkpoints of another run; the newest is {foreign[-1].name}. "
                    "Restart from this checkpoint (--resume), choose another folder, or overwrite the "
                    "checkpoints (--overwrite)."
                )

    def _foreign_checkpoints(self) -> list[Path]:
        """Return the complete checkpoints of other runs."""
        return [
            folder for folder in folders(self.path, complete=True) if facts_of(folder).get("run") != self._run
        ]

    def begin(self, step: int) -> None:
        """Prepare the folder before the run computes anything.

        Checkpoints of other processes are removed. Checkpoints of earlier runs of this process are kept until
        the first checkpoint of this run is complete. Until then, the newest checkpoint of the earlier runs
        remains the newest checkpoint of the folder.

        If the run was resumed from a checkpoint of this folder, this checkpoint becomes the newest. The run
        then removes output of later steps.

        Raises
        ------
        RunError
            The folder cannot be written to.
        """
        with self.comm.agreement(f"prepare {self.path} for checkpoints"):
            if self.comm.rank != 0:
                return
            other_checkpoints = self._foreign_checkpoints()
            self._earlier = [other for other in other_checkpoints if facts_of(other).get("run") in _own_runs]
            _own_runs.add(self._run)
            for other in other_checkpoints:
                if other not in self._earlier:
                    remove_folder(other, arrays.GROUP)
            resumed = self._resumed
            if resumed is not None and resumed.folder.parent.resolve() == self.path.resolve():
                write_json(self.path / POINTER, {"checkpoint": resumed.folder.name})
            elif not folders(self.path, complete=True):
                (self.path / POINTER).unlink(missing_ok=True)
            self.stop_file.unlink(missing_ok=True)

    def write(self) -> None:
        """Begin to write a checkpoint of the current state; `finish` completes it."""
        self.finish()
        session, began = self.session, perf_counter()
        facts = self._facts()
        self._rows = [output.count for output in self.outputs]
        folder = self.path / self.comm.bcast(f"step-{session.step:012d}-{secrets.token_hex(4)}")
        grid = session.fields.grid
        parts = {f.name: Part.of(f, Whole().choose(grid, f.staggered)) for f in self.store.fields}
        specs = {name: part.spec for name, part in parts.items()}
        lines = {
            dimension: coordinate(grid, axis, line, dimension)
            for part in parts.values()
            for dimension, (axis, line) in part.lines.items()
            if dimension not in grid.fields
        }
        with self._removed_on_failure(folder):
            if self.comm.rank == 0:
                make_folder(folder)
                arrays.create_all(folder, specs, lines)
        facts["fields"] = {
            f.name: {
                "dtype": f.dtype,
                "location": f.location,
                "checksum": checksum(self.store, f),
                "work": grid.is_work_field(f) or f.name.startswith(PREFIX),
            }
            for f in self.store.fields
        }
        all_specs = specs | {dimension: spec for dimension, (spec, _) in lines.items()}
        attributes = {FACTS: {**facts, DIGEST: digest(facts)}}
        self._open = folder, arrays.group_metadata(attributes, dict(sorted(all_specs.items())))
        with self._removed_on_failure(folder):
            self.attach(folder, specs)
        for name, part in parts.items():
            self.put(name, part)
        seconds = perf_counter() - began
        self.longest, self._seconds = max(self.longest, seconds), self._seconds + seconds

    def _facts(self) -> dict[str, Any]:
        """Return the current facts of the session without the fields, as JSON data."""
        session, blocks = self.session, self.session.fields.store.blocks
        try:
            extra_facts = json.dumps(
                {} if self._extra_facts is None else self._extra_facts(), allow_nan=False, default=json_value
            )
        except (TypeError, ValueError) as error:
            raise InputError(f"notes of a checkpoint cannot be written as JSON: {error}") from None
        return {
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "version": __version__,
            "command": self._command,
            "identity": self.session.identity,
            "parameters": _hexadecimal(self.parameters),
            "time": session.time.hex(),
            "values": _hexadecimal(session.fields.values),
            # values that statements pass to the next step
            "scalars": _hexadecimal(session.scalars()),
            "ran_with": _hexadecimal(session.ran_with),
            "blocks": None if blocks is None else {"counts": blocks.counts, "active": blocks.active.hex()},
            **json.loads(extra_facts),
            "run": self._run,
            "rows": {output.owner: output.count for output in self.outputs},
            "kind": KIND,
            "format": FORMAT,
            "step": session.step,
        }

    @property
    def is_open(self) -> bool:
        """True while a checkpoint is incomplete."""
        return self._open is not None

    def poll(self) -> None:
        """Complete the open checkpoint if all of its data are on disk."""
        is_written = self._open is not None and not self.comm.most(not self.writer.done)
        if is_written and all(output.committed >= count for output, count in self._missing()):
            self.finish()

    def finish(self) -> None:
        """Wait until the open checkpoint is complete, and mark it as the newest.

        Raises
        ------
        RunError
            The checkpoint cannot be written, or earlier rows of output are lost. The previous checkpoint
            remains the newest.
        """
        if self._open is None:
            return
        for output, _ in self._missing():
            output.finish()
        folder, group = self._open
        if lost := self._missing():
            with contextlib.suppress(RunError):
                self.writer.finish()
            with self._removed_on_failure(folder):
                raise RunError(
                    f"checkpoint {folder} is abandoned, because writing the output {lost[0][0].path} "
                    "has failed"
                )
        with self.timing():
            with self._removed_on_failure(folder):
                self.writer.finish()
            with self._removed_on_failure(folder):
                if self.comm.rank == 0:
                    write_json(folder / arrays.GROUP, group)
                    sync(folder)
                    write_json(self.path / POINTER, {"checkpoint": folder.name})
                    self._remove_old(folder)
            self.last, self._open = folder, None

    def write_last(self) -> None:
        """Write a checkpoint of the current state, and wait until it is complete."""
        self.session.fields.check_all("before a checkpoint was written")
        self.write()
        self.finish()

    def _missing(self) -> list[tuple[OutputStore, int]]:
        """Return each output whose rows before the checkpoint are not all on disk.

        Each item also contains the number of rows before the checkpoint.
        """
        counts = zip(self.outputs, self._rows, strict=False)
        return [(output, count) for output, count in counts if output.synced < count]

    def _remove_old(self, newest: Path) -> None:
        """Remove old checkpoints, checkpoints of earlier runs, and incomplete checkpoints."""
        older = [
            folder
            for folder in folders(self.path, complete=True)
            if folder not in (newest, *self._earlier) and step_of(folder) <= step_of(newest)
        ]
        retained = {newest, *older[max(0, len(older) + 1 - self.declaration.keep) :]}
        for folder in folders(self.path):
            if folder not in retained:
                remove_folder(folder, arrays.GROUP)
        self._earlier = []

    @contextmanager
    def _removed_on_failure(self, folder: Path) -> Iterator[None]:
        """Run the block on all ranks, and remove the checkpoint if the block fails on any rank."""
        try:
            with self.comm.agreement(f"write checkpoint {folder}"):
                yield
        except RunError as error:
            self._open = None
            if self.comm.rank == 0:
                remove_folder(folder, arrays.GROUP)
            before = "" if self.last is None else f"; the newest checkpoint is {self.last}"
            raise RunError(f"checkpoint: {error}{before}") from None


def _hexadecimal(values: Mapping[str, float]) -> dict[str, str]:
    """Return numbers as hexadecimal texts, which represent every bit."""
    return {name: float(value).hex() for name, value in values.items()}
