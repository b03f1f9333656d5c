"""Output: what a run leaves of its fields and numbers over time, as a store that xarray opens."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from halocline import __version__
from halocline.archive.arrays import COMPRESSIONS
from halocline.archive.series import FACTS, Series, columns
from halocline.archive.writer import Writing
from halocline.errors import InputError
from halocline.lang import equations
from halocline.lang.grid import DTYPES, unknown
from halocline.lang.program import Program
from halocline.plan.chunks import ChunkGrid
from halocline.ranges import IO_THREADS
from halocline.run.assembly import assembled
from halocline.run.checkpoint import Saved
from halocline.run.every import Every
from halocline.run.fields import Fields
from halocline.run.output_contents import Contents
from halocline.run.regions import Region, Whole
from halocline.run.writers import writer

WINDOWS = ("output", "run")


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
    every : float, int or str, optional
        How often: a float is simulated time, an int a number of steps, a text such as "30 min" wall-clock
        time. At a time that no step meets it is written after the first step past it. The state at the start
        is written too. Without it, what is written is the start and the end.
    exact : bool
        Shorten steps to meet these times instead, which changes the result.
    region : Slice, Box, Coarsen or Points, optional
        The part of the grid that is written; all of it by default.
    window : {"output", "run"}
        What statistics over time, such as ``hc.time_mean(T)``, are of: the steps since the last output, or
        all since the start.
    dtype : {"float64", "float32"}, optional
        On disk; that of the fields by default.
    compression : {"zstd", "none"}
        Both lose nothing.
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
    every: float | int | str | None = None
    exact: bool = False
    region: Region = field(default_factory=Whole)
    window: str = "output"
    dtype: str | None = None
    compression: str = "zstd"
    units: Mapping[str, str] = field(default_factory=dict)
    overwrite: bool = False
    io_threads: int = 1

    def __post_init__(self) -> None:
        IO_THREADS.check("io_threads", self.io_threads)
        if self.every is not None:
            Every.parse("every", self.every)
        if self.dtype is not None and self.dtype not in DTYPES:
            raise unknown("dtype", self.dtype, DTYPES)
        if self.window not in WINDOWS:
            raise unknown("window", self.window, WINDOWS)
        if self.compression not in COMPRESSIONS:
            raise unknown("compression", self.compression, COMPRESSIONS)
        if not isinstance(self.region, Region):
            raise InputError(f"region is {self.region!r}; expected hc.Slice, hc.Box, hc.Coarsen or hc.Points")


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

    Attributes
    ----------
    count : int
        Times that are in it, or on their way.
    """

    def __init__(self, how: Output, fields: Fields, program: Program, title: str) -> None:
        self.how, self.fields, self.path = how, fields, Path(how.path)
        self.comm = fields.domain.comm
        self.contents = Contents(
            fields,
            how.fields,
            how.region,
            owner=re.sub(r"\W", "_", self.path.stem),
            dtype=how.dtype,
            compression=how.compression,
            units=how.units,
        )
        self.writer = writer(self.comm, how.io_threads)
        self.count, self._seconds = 0, 0.0
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._series = Series(
            self.path,
            self.contents.specs,
            self.contents.coordinates(),
            {
                "Conventions": "CF-1.11",
                "title": title,
                "source": f"Halocline {__version__}",
                "history": f"{now}: {' '.join(sys.argv)}",
                FACTS: {
                    "contents": self.contents.described(program),
                    "equations": equations.equations(program),
                    "parameters": dict(fields.parameters),
                },
            },
            how.units.get("time"),
        )
        self._rows: list[tuple[float, int, list[float]]] = []  # that readers do not see yet

    def begin(self, step: int, ours: bool) -> None:
        """Make the store, or go on with the one that this run has left.

        Parameters
        ----------
        step : int
            Of the run now: what the store has of later steps is removed.
        ours : bool
            Whether the run goes on from an earlier one.

        Raises
        ------
        InputError
            There is something else.
        RunError
            Nothing can be written there.
        """
        with self.comm.agreement(f"prepare output {self.path}"):
            if self.comm.rank == 0:
                self.count = self._series.open(step, ours=ours, overwrite=self.how.overwrite)
        self.count = self.comm.bcast(self.count)

    def write(self, time: float, step: int) -> None:
        """Begin to write what there is now; `poll` and `finish` let readers see it."""
        self.poll()
        began = perf_counter()
        self._rows.append((time, step, self.contents.compute()))
        statistics = self.contents.statistics
        if statistics is not None and self.how.window == "output":
            self.fields.values[statistics.weight.name] = 0.0
        specs = self._series.specs(self.count + 1)
        targets: dict[str, Any] = {}
        with self.comm.agreement(f"write output {self.path}"):
            for name in self.contents.parts:
                targets[name] = self.writer.attach(self.path / name, specs[name])
        for name, part in self.contents.parts.items():
            selection, kept = part.chosen.selection, list(part.chosen.kept)
            inner = dict(zip(kept, part.spec.chunk[1:], strict=True))
            grid = ChunkGrid(selection.shape, tuple(inner.get(a, 1) for a in range(len(selection.shape))))
            for lo, found in assembled(self.fields.store, part.field, grid, selection):
                array = found.reshape([1, *(found.shape[axis] for axis in kept)])
                first = (self.count, *(lo[axis] for axis in kept))
                self.writer.write(targets[name], first, array.astype(part.spec.dtype, copy=False))
        self.count += 1
        self._seconds += perf_counter() - began

    @property
    def writing(self) -> Writing:
        """What it took of the run."""
        return Writing(self.writer.written, self._seconds, self.writer.waited)

    def poll(self) -> None:
        """Let readers see what is on disk by now."""
        if self._rows and all(self.comm.allgather(self.writer.done)):
            self.finish()

    def finish(self) -> None:
        """Wait until all is on disk, and let readers see it.

        Raises
        ------
        RunError
            It cannot be written; readers see what there was before.
        """
        if not self._rows:
            return
        began = perf_counter()
        rows, self._rows = self._rows, []
        with self.comm.agreement(f"write output {self.path}"):
            self.writer.finish()
        with self.comm.agreement(f"write output {self.path}"):
            if self.comm.rank == 0:
                self._series.commit(self.count - len(rows), columns(rows, self.contents.widths))
        self._seconds += perf_counter() - began


def begun(
    given: Output | Sequence[Output],
    fields: Fields,
    program: Program,
    title: str,
    step: int,
    *,
    resumed: Saved | None,
    left: set[Path],
) -> list[OutputStore]:
    """The stores that a run writes to, ready; all ranks call this.

    Parameters
    ----------
    step : int
        Of the run now.
    resumed : Saved or None
        The checkpoint that it goes on from: then it goes on with stores that are there.
    left : set of path
        Stores that the run has left before; those of now are added.

    Raises
    ------
    InputError
        Outputs that cannot be; something else lies in the way.
    """
    made: list[OutputStore] = []
    for how in [given] if isinstance(given, Output) else given:
        if not isinstance(how, Output):
            raise InputError(f"output is {how!r}; expected an hc.Output, or a list of them")
        if Path(how.path).resolve() in {each.path.resolve() for each in made}:
            raise InputError(f"two outputs are to be in {how.path}: give one of them another path")
        made.append(OutputStore(how, fields, program, title))
    for each in made:
        path = each.path.resolve()
        each.begin(step, ours=resumed is not None or path in left)
        if resumed is not None and path not in left:
            each.contents.take_over(resumed)
        left.add(path)
    return made
