"""Store that a run writes its output to, which xarray opens."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from halocline import __version__, forks
from halocline.archive.arrays import narrowed
from halocline.archive.integrity import STEP, TIME
from halocline.archive.series import ROWS, Series, SeriesSpec, columns
from halocline.errors import InputError, RunError
from halocline.lang import equations
from halocline.lang.program import Program
from halocline.lang.stepping import Recorded
from halocline.run.fields.fields import Fields
from halocline.run.host.command_line import command_line
from halocline.run.output.every import Every
from halocline.run.output.output import Output
from halocline.run.output.saved import Saved
from halocline.run.output.store import RunStore
from halocline.run.output.variables import OutputContents
from halocline.words import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

log = logging.getLogger("halocline")

BUFFER_BYTES = 8 << 20  # most memory of the rows that wait to be published
ROW_BYTES = 256  # memory of a row beside its numbers


class OutputStore(RunStore):
    """Store that a run writes to over time. All ranks call its methods.

    Parameters
    ----------
    how : Output
    fields : Fields
    program : Program
        Program of the run, which the store describes.
    title : str
        Title of the run.
    run : str
        Identifier of the run; only the same run continues a store.
    owner : str
        Name of this output that no other output of the run has; an identifier.
    number : int
        Number of the output among those of the run.
    timed : bool
        True where the run advances in time, and not in steps alone.
    saved : Saved, optional
        Checkpoint that the run restarts from, where the run has not yet begun this output since.

    Attributes
    ----------
    count : int
        Rows that are in the store, or on their way.
    committed : int
        Rows that readers see.
    synced : int
        Rows that are on disk, also if the machine fails.
    last_step : int
        Step of the last row that this run has added; -1 before.
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
        saved: Saved | None = None,
    ) -> None:
        super().__init__(how.path, "output", fields.store, how.io_threads)
        self.how, self.fields, self.owner, self._saved = how, fields, owner, saved
        self.contents = OutputContents(how, fields, owner, number, axis=TIME if timed else STEP)
        if how.exact and (how.every is None or Every.parse("every", how.every).time is None):
            raise InputError(
                f"output {self.path}: exact=True shortens steps to meet times, but every is "
                f"{shown(how.every)}; give a time (a float)"
            )
        self.count = self.committed = self.synced = 0
        self._is_continued = False
        self._room = 0  # rows of the arrays that are open for writing
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
        self._infinite: dict[int, dict[str, int]] = {}  # values that became infinite, by step and array
        self._warned = False
        self._rows: list[tuple[float, int, Sequence[float]]] = []  # not committed yet

    def check(self) -> None:
        """Check that the output can be created or continued; nothing is changed.

        Raises
        ------
        InputError
            The path holds something else, or the output is damaged.
        RunError
            This process is a fork of a process that has written stores.
        """
        saved, statistics = self._saved, self.contents.statistics
        before = (0, 0) if saved is None else (saved.step, saved.facts.get("rows", {}).get(self.owner, 0))
        with self.comm.agreement(f"look at output {self.path}"):
            if self.comm.rank == 0:
                forks.check(forks.STORES)
                self._is_continued = self._series.check(overwrite=self.how.overwrite, before=before)
        self._is_continued = self.comm.bcast(self._is_continued)
        is_known = saved is None or statistics is None or statistics.known(saved.facts)
        if self._is_continued and saved is not None and not is_known:
            raise InputError(
                f"output {self.path} has statistics over time, but checkpoint {saved.folder} is of a run "
                "that did not write this output: choose another path"
            )

    def begin(self, step: int) -> None:
        """Create the store, or continue the one that this run has left.

        Parameters
        ----------
        step : int
            Step of the run now; rows of later steps are removed.

        Raises
        ------
        RunError
            The store cannot be written.
        """
        note = {"version": __version__, "command": command_line(), "parameters": dict(self.fields.parameters)}
        note["owner"] = self.owner
        with self.comm.agreement(f"prepare output {self.path}"):
            if self.comm.rank == 0:
                self.count = self._series.open(step, note, is_continued=self._is_continued)
        self.count = self.committed = self.synced = self.comm.bcast(self.count)
        if self.contents.statistics is not None:
            if self._saved is not None and self._is_continued:
                self.contents.take_over(self._saved)
            elif self.count == 0:
                self.fields.values[self.contents.statistics.weight.name] = 0.0

    def write(self, time: float, step: int) -> None:
        """Begin to write the present state; `poll` and `finish` let readers see it."""
        with self.timing():
            numbers = self.contents.compute()
            if self.contents.narrows:
                self._count_numbers(step, numbers)
            statistics = self.contents.statistics
            if statistics is not None and self.how.window == "output":
                self.fields.values[statistics.weight.name] = 0.0
            if self.contents.parts and self.count >= self._room:
                self._make_room()
            for name, part in self.contents.parts.items():
                self._count_infinite(name, step, self.put(name, part, (self.count,)))
        self._add([(time, step, numbers)])

    @property
    def recorded(self) -> Recorded | None:
        """Numbers that steps can compute and the run keeps; None where the output has other arrays."""
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
        with self.timing():
            rows = list(zip(times.tolist(), map(int, steps.tolist()), numbers.tolist(), strict=True))
            if self.contents.narrows:
                for _, step, values in rows:
                    self._count_numbers(step, values)
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

    def _make_room(self) -> None:
        """Open the arrays of parts for more rows."""
        self._room = (self.count // ROWS + 1) * ROWS
        specs = self._series.specs(self._room)
        with self.comm.agreement(f"write output {self.path}"):
            self.attach(self.path, {name: specs[name] for name in self.contents.parts})

    def poll(self) -> None:
        """Let readers see the rows whose chunks are on disk.

        Raises
        ------
        RunError
            A chunk cannot be written.
        """
        if not self._rows:
            return
        with self.timing():
            self._warn()
            self._commit_complete()
        if self.comm.most(self.writer.failure is not None):
            self._commit()

    def finish(self) -> None:
        """Wait until all rows are on disk, also if the machine fails, and let readers see them.

        Raises
        ------
        RunError
            A row cannot be written; readers see the rows before it.
        """
        self._commit()
        if self.synced == self.count:
            return
        with self.timing():
            with self.comm.agreement(f"write output {self.path}"):
                if self.comm.rank == 0:
                    self._series.sync(self.synced)
            self.synced = self.count

    def _commit(self) -> None:
        """Wait until the chunks of all rows are on disk, and let readers see the rows."""
        if not self._rows:
            return
        with self.timing():
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
                    values = columns(rows, self.contents.columns, self.contents.axis)
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
        for name, spec in self.contents.columns.items():
            width = spec.row_size
            self._count_infinite(name, step, narrowed(np.array(numbers[at : at + width]), spec.dtype)[1])
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
        """Let other processes write to the store, and free the memory of computed fields."""
        self.contents.release()
        super().close()
