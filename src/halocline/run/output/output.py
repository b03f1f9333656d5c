"""Output: what a run leaves of its fields and numbers over time, as a store that xarray opens."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from halocline import __version__, forks
from halocline.archive.arrays import COMPRESSIONS, narrowed
from halocline.archive.files import FolderLock, as_path, check_text
from halocline.archive.integrity import STEP, TIME
from halocline.archive.series import ROWS, Series, SeriesSpec, columns
from halocline.archive.writer import Writing
from halocline.errors import InputError, RunError
from halocline.lang import equations
from halocline.lang.dtype import dtype_name
from halocline.lang.grid import DTYPES, chosen, unknown
from halocline.lang.program import Program
from halocline.lang.stepping import Recorded
from halocline.lang.values import plain
from halocline.plan.chunks import ChunkGrid
from halocline.ranges import IO_THREADS
from halocline.run.fields.fields import Fields
from halocline.run.fields.regions import Region, Whole
from halocline.run.host.command_line import command_line
from halocline.run.memory.assembly import assembled
from halocline.run.output.every import Every
from halocline.run.output.saved import Saved
from halocline.run.output.variables import OutputContents
from halocline.run.output.writers import writer
from halocline.words import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

log = logging.getLogger("halocline")

WINDOWS = ("output", "run")
BUFFER_BYTES = 8 << 20  # rows that wait to be published, at most
ROW_BYTES = 256  # memory of a row beside its numbers
_BY_XARRAY = 'xarray.open_zarr("{store}").to_netcdf("{path}")'
_BY_EXPORT = "halocline export {store} fields.pvd"
OTHER_FORMATS = {
    **dict.fromkeys((".nc", ".nc4", ".cdf", ".netcdf"), ("NetCDF", _BY_XARRAY)),
    **dict.fromkeys((".h5", ".hdf5", ".he5"), ("HDF5", _BY_XARRAY)),
    **dict.fromkeys((".vtk", ".vti", ".vtr", ".vtu", ".pvd", ".xdmf", ".xmf"), ("VTK or XDMF", _BY_EXPORT)),
    **dict.fromkeys((".npy", ".npz"), ("NumPy", "numpy.save with sim.gather(field)")),
}  # formats that a run does not write, with the way to get them


@dataclass(frozen=True)
class Output:
    """What a run writes as it goes on, into a Zarr store: ``xarray.open_zarr(path)`` opens it.

    Parameters
    ----------
    path : str or path
        The store, a folder; by custom its name ends in .zarr.
    fields : sequence of Field, or mapping of str to expression, optional
        What is written, by name: fields, expressions of them such as ``{"speed": hc.sqrt(u**2 + v**2)}``,
        and numbers such as ``{"energy": hc.sum(0.5 * u**2)}``. All fields of the user by default.
    every : float, hc.steps or str, optional
        Interval between two rows: a float is simulated time, ``hc.steps(5)`` or "5 steps" a number of steps,
        and a text such as "30 min" wall-clock time. At a time that no step meets, the run writes after the
        first step past it. It writes the state at the start too. Without an interval, the run writes the
        start and the end.
    exact : bool
        Shorten steps to meet these times instead, which changes the result; for times only.
    region : Slice, Box, Coarsen or Points, optional
        The part of the grid that is written; all of it by default.
    window : {"output", "run"}
        What statistics over time, such as ``hc.time_mean(T)``, cover: the steps since the last output, or
        all since the start.
    dtype : {"float64", "float32"} or NumPy dtype, optional
        On disk; that of the fields by default.
    compression : {"zstd", "none"}
        Both are lossless.
    units : mapping of str to str, optional
        The units of what is written, and of "time", "x", "y", "z".
    overwrite : bool
        Whether a store that another run left there may be removed.
    io_threads : int
        Threads of each rank that compress and write while the run goes on.

    Raises
    ------
    InputError
        A number or name that cannot be.
    """

    path: str | Path
    fields: Sequence[Any] | Mapping[str, Any] | None = None
    every: Every | float | str | None = None
    exact: bool = False
    region: Region = field(default_factory=Whole)
    window: str = "output"
    dtype: Any = None
    compression: str = "zstd"
    units: Mapping[str, str] = field(default_factory=dict)
    overwrite: bool = False
    io_threads: int = 1

    def __post_init__(self) -> None:
        path = as_path(self.path, "the path of an output")
        check_text(path)
        _check_format(path)
        object.__setattr__(self, "io_threads", IO_THREADS.check("io_threads", self.io_threads))
        if self.every is not None:
            Every.parse("every", self.every)
        if self.dtype is not None:
            object.__setattr__(self, "dtype", dtype_name(self.dtype))
            if self.dtype not in DTYPES:
                raise unknown("dtype", self.dtype, DTYPES)
        if not isinstance(self.units, Mapping):
            raise InputError(
                f'units is {shown(self.units)}; expected a mapping such as {{"T": "K", "x": "m"}}'
            )
        for name, unit in self.units.items():
            if not (isinstance(name, str) and isinstance(unit, str)):
                raise InputError(
                    f'units has {name!r}: {unit!r}; expected texts on both sides, such as {{"T": "K"}}. Use '
                    '"1" for a number without a unit.'
                )
        if not isinstance(plain(self.overwrite), bool):
            raise InputError(f"overwrite is {shown(self.overwrite)}; expected True or False")
        chosen("window", self.window, WINDOWS)
        chosen("compression", self.compression, COMPRESSIONS)
        if not isinstance(self.region, Region):
            raise InputError(
                f"region is {shown(self.region)}; expected hc.Slice, hc.Box, hc.Coarsen or hc.Points"
            )


def _check_format(path: Path) -> None:
    """Raise InputError for a path whose name is that of another format."""
    if path.suffix.lower() not in OTHER_FORMATS:
        return
    name = path.with_suffix(".zarr")
    kind, text = OTHER_FORMATS[path.suffix.lower()]
    raise InputError(
        f"output {path} has the name of a {kind} file, but a run writes Zarr stores; expected a name such as "
        f"{name}. To convert a store, use {text.format(store=name, path=path)}"
    )


class OutputStore:
    """A store that a run writes to. All ranks call its methods.

    Parameters
    ----------
    how : Output
    fields : Fields
    program : Program
        Of the run: what the store says that it is of.
    title : str
        Of the run.
    run : str
        Which run it is; only that one goes on with a store.
    owner : str
        A name of this output that no other one of the run has; an identifier.
    number : int
        Of the output among those of the run now.
    timed : bool
        Whether the run advances in time, and not in steps alone.

    Attributes
    ----------
    count : int
        Times that are in it, or on their way.
    committed : int
        Those that readers see.
    last_step : int
        Step of the last row that this run has added; -1 before.
    synced : int
        Those that are on disk, whatever happens to the machine.
    """

    def __init__(
        self,
        how: Output,
        fields: Fields,
        program: Program,
        title: str,
        *,
        run: str,
        owner: str,
        number: int,
        timed: bool,
    ) -> None:
        self.how, self.fields, self.path, self.owner = how, fields, Path(how.path), owner
        self.comm = fields.domain.comm
        self.contents = OutputContents(
            fields,
            how.fields,
            how.region,
            owner=owner,
            number=number,
            axis=TIME if timed else STEP,
            dtype=how.dtype,
            compression=how.compression,
            units=how.units,
        )
        if how.exact and (how.every is None or Every.parse("every", how.every).time is None):
            raise InputError(
                f"output {self.path}: exact=True shortens steps to meet times, but every is "
                f"{shown(how.every)}; give a time (a float)"
            )
        self.writer = writer(self.comm, how.io_threads)
        self.count = self.committed = self.synced = 0
        self._seconds, self._go_on = 0.0, False
        self._targets: dict[str, Any] = {}  # arrays of parts, with room for more rows than they have
        self._room = 0  # rows of these
        self.last_step = -1
        described = self.contents.described(program)
        if self.contents.statistics is not None:
            described["window"] = how.window
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._series = Series(
            self.path,
            SeriesSpec(self.contents.specs, self.contents.coordinates(), described),
            run,
            {
                "Conventions": "CF-1.11",
                "title": title,
                "source": f"Halocline {__version__}",
                "history": f"{now}: {shlex.join(command_line())}",
                "equations": equations.equations(program),
            },
            axis=self.contents.axis,
            time_units=how.units.get("time"),
        )
        self._lock: FolderLock | None = None
        self._infinite: dict[int, dict[str, int]] = {}  # values that became infinite, by step and array
        self._warned = False
        self._rows: list[tuple[float, int, Sequence[float]]] = []  # not committed yet

    def check(self, saved: Saved | None) -> None:
        """Check that the output can be created or continued; nothing is changed.

        Parameters
        ----------
        saved : Saved or None
            The checkpoint that the run goes on from, where this is the first time that it writes here.

        Raises
        ------
        InputError
            The path holds something else, or the output is damaged.
        RunError
            This process is a fork of one that has written stores.
        """
        before = (0, 0) if saved is None else (saved.step, saved.facts.get("rows", {}).get(self.owner, 0))
        with self.comm.agreement(f"look at output {self.path}"):
            if self.comm.rank == 0:
                forks.check(forks.STORES)
                self._go_on = self._series.check(overwrite=self.how.overwrite, before=before)
        self._go_on = self.comm.bcast(self._go_on)
        statistics = self.contents.statistics
        if self._go_on and saved is not None and statistics is not None and not statistics.known(saved.facts):
            raise InputError(
                f"output {self.path} has statistics over time, but checkpoint {saved.folder} is of a run "
                "that did not write this output: choose another path"
            )

    def lock(self) -> None:
        """Make the folder, and let no other process write there.

        Raises
        ------
        InputError
            Another one does so.
        RunError
            Nothing can be written there.
        """
        with self.comm.agreement(f"prepare output {self.path}"):
            if self.comm.rank == 0:
                self._lock = FolderLock(self.path, "output")

    def begin(self, step: int, saved: Saved | None) -> None:
        """Make the store, or go on with the one that this run has left.

        Parameters
        ----------
        step : int
            Of the run now: what the store has of later steps is removed.
        saved : Saved or None
            As for `check`.

        Raises
        ------
        RunError
            Nothing can be written there.
        """
        note = {"version": __version__, "command": command_line(), "parameters": dict(self.fields.parameters)}
        note["owner"] = self.owner
        with self.comm.agreement(f"prepare output {self.path}"):
            if self.comm.rank == 0:
                self.count = self._series.open(step, note, go_on=self._go_on)
        self.count = self.committed = self.synced = self.comm.bcast(self.count)
        if self.contents.statistics is not None:
            if saved is not None and self._go_on:
                self.contents.take_over(saved)
            elif self.count == 0:
                self.fields.values[self.contents.statistics.weight.name] = 0.0

    def write(self, time: float, step: int) -> None:
        """Begin to write the present state; `poll` and `finish` let readers see it."""
        began = perf_counter()
        numbers = self.contents.compute()
        if self.contents.narrows:
            self._count_numbers(step, numbers)
        statistics = self.contents.statistics
        if statistics is not None and self.how.window == "output":
            self.fields.values[statistics.weight.name] = 0.0
        if self.contents.parts and self.count >= self._room:
            self._attach()
        for name, part in self.contents.parts.items():
            selection, kept = part.chosen.selection, list(part.chosen.kept)
            inner = dict(zip(kept, part.spec.chunk[1:], strict=True))
            grid = ChunkGrid(selection.shape, tuple(inner.get(a, 1) for a in range(len(selection.shape))))
            for lo, found in assembled(self.fields.store, part.field, grid, selection):
                array = found.reshape([1, *(found.shape[axis] for axis in kept)])
                first = (self.count, *(lo[axis] for axis in kept))
                values, infinite = narrowed(array, part.spec.dtype)
                self._count_infinite(name, step, infinite)
                self.writer.write(self._targets[name], first, values)
        self._seconds += perf_counter() - began
        self._add([(time, step, numbers)])

    @property
    def recorded(self) -> Recorded | None:
        """Numbers that steps can compute and the run keeps, where the output is of these alone."""
        numbers = self.contents.numbers
        steps = None if self.how.every is None else Every.parse("every", self.how.every).steps
        return None if steps is None or numbers is None else Recorded(steps, numbers)

    def add(self, times: NDArray[Any], steps: NDArray[Any], numbers: NDArray[Any]) -> None:
        """Add rows that steps have computed.

        Parameters
        ----------
        times, steps : array (rows)
        numbers : array (rows, numbers)
        """
        began = perf_counter()
        rows = list(zip(times.tolist(), map(int, steps.tolist()), numbers.tolist(), strict=True))
        if self.contents.narrows:
            for _, step, values in rows:
                self._count_numbers(step, values)
        self._seconds += perf_counter() - began
        self._add(rows)

    def _add(self, rows: Sequence[tuple[float, int, Sequence[float]]]) -> None:
        """Add rows of time, step and numbers."""
        if not rows:
            return
        self._rows += rows
        self.count += len(rows)
        self.last_step = rows[-1][1]
        if self.is_full:
            self._commit()

    @property
    def is_full(self) -> bool:
        """True where the rows that wait to be published fill their memory; the same on all ranks."""
        return len(self._rows) * (ROW_BYTES + self.contents.number_bytes) >= BUFFER_BYTES

    def _attach(self) -> None:
        """Attach the arrays of parts with room for more rows."""
        self._room = (self.count // ROWS + 1) * ROWS
        specs = self._series.specs(self._room)
        with self.comm.agreement(f"write output {self.path}"):
            for name in self.contents.parts:
                self._targets[name] = self.writer.attach(self.path / name, specs[name])

    @property
    def writing(self) -> Writing:
        """What it took of the run."""
        return Writing(self.writer.written, self._seconds, self.writer.waited)

    def poll(self) -> None:
        """Let readers see the rows whose chunks are on disk.

        Raises
        ------
        RunError
            A chunk cannot be written.
        """
        if not self._rows:
            return
        began = perf_counter()
        self._warn()
        self._commit_complete()
        self._seconds += perf_counter() - began
        if self.comm.most(self.writer.failure is not None):
            self._commit()

    def finish(self) -> None:
        """Wait until all is on disk, whatever happens to the machine, and let readers see it.

        Raises
        ------
        RunError
            It cannot be written; readers see what there was before.
        """
        self._commit()
        if self.synced == self.count:
            return
        began = perf_counter()
        with self.comm.agreement(f"write output {self.path}"):
            if self.comm.rank == 0:
                self._series.sync(self.synced)
        self.synced = self.count
        self._seconds += perf_counter() - began

    def _commit(self) -> None:
        """Wait until the chunks of all rows are on disk, and let readers see the rows."""
        if not self._rows:
            return
        began = perf_counter()
        self._warn()
        try:
            with self.comm.agreement(f"write output {self.path}"):
                self.writer.finish()
        except RunError:
            with suppress(RunError):  # the first error counts
                self._commit_complete()
            self._rows, self.count = [], self.committed
            raise
        self._commit_complete()
        self._seconds += perf_counter() - began

    def _commit_complete(self) -> None:
        """Let readers see the rows whose chunks, and those of earlier rows, are on disk on all ranks."""
        first_open = self.writer.first_open
        complete = -self.comm.most(-(self.count if first_open is None else first_open))
        rows = self._rows[: complete - self.committed]
        if not rows:
            return
        try:
            with self.comm.agreement(f"write output {self.path}"):
                if self.comm.rank == 0:
                    values = columns(rows, self.contents.widths, self.contents.axis)
                    self._series.commit(self.committed, values)
        except RunError:
            self._rows, self.count = [], self.committed
            raise
        self._rows, self.committed = self._rows[len(rows) :], complete

    def _count_numbers(self, step: int, numbers: Sequence[float]) -> None:
        """Count the numbers of a step that become infinite in the precision of the store."""
        import numpy as np

        if self.comm.rank != 0:  # the other ranks have no values at points
            return
        at = 0
        for name, (width, dtype, _) in self.contents.widths.items():
            self._count_infinite(name, step, narrowed(np.array(numbers[at : at + width]), dtype)[1])
            at += width

    def _count_infinite(self, name: str, step: int, infinite: int) -> None:
        """Count finite values of an array that become infinite in the precision of the store."""
        if infinite and not self._warned:
            counts = self._infinite.setdefault(step, {})
            counts[name] = counts.get(name, 0) + infinite

    def _warn(self) -> None:
        """Warn once of values that became infinite, with the first such step and the number of values."""
        if self._warned or not self.contents.narrows:
            return
        rank_counts = self.comm.allgather(self._infinite)
        step = min((step for by_step in rank_counts for step in by_step), default=None)
        self._infinite = {}
        if step is None:
            return
        self._warned = True
        if self.comm.rank == 0:
            counts: dict[str, int] = {}
            for by_step in rank_counts:
                for name, count in by_step.get(step, {}).items():
                    counts[name] = counts.get(name, 0) + count
            log.warning(
                "output %s: at step %d, finite values beyond the range of %s are written as infinity: %s. "
                'Choose dtype="float64" for this output; later steps are not reported',
                self.path, step, self.how.dtype or "float32",
                ", ".join(f"{n} of {name}" for name, n in counts.items()),
            )  # fmt: skip

    def close(self) -> None:
        """Let other processes write there, and give memory back."""
        self.contents.release()
        if self._lock is not None:
            self._lock.free()
            self._lock = None
