"""Store that a run writes its output to, which xarray opens."""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline import __version__, forks
from halocline.archive.arrays import narrowed
from halocline.archive.integrity import STEP, TIME
from halocline.archive.series import ROWS, Series
from halocline.errors import InputError, RunError
from halocline.lang import equations
from halocline.lang.program import Program
from halocline.lang.stepping import Recorded
from halocline.run.fields.fields import Fields
from halocline.run.host.process import command_line
from halocline.run.output.every import Every
from halocline.run.output.output import Output
from halocline.run.output.restart import Saved
from halocline.run.output.store import RunStore
from halocline.run.output.variables import OutputContents
from halocline.words import shown

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
        attributes = {
            "Conventions": "CF-1.11",
            "title": title,
            "source": f"Halocline {__version__}",
            "history": f"{now}: {shlex.join(command_line())}",
            "equations": equations.equations(program),
        }
        self._series = Series(
            self.path, self.contents.specs, self.contents.coordinates(), described,
            run=run, attributes=attributes, axis=self.contents.axis, time_units=how.units.get("time"),
        )  # fmt: skip
        self._infinite = Counter[tuple[int, str]]()  # values that became infinite, by step and array
        self._warned = False
        self._rows: list[NDArray[Any]] = []  # not committed yet

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
                self.count = self._series.open(step, note)
        self.count = self.committed = self.synced = self.comm.bcast(self.count)
        if self.contents.statistics is not None:
            if self._saved is not None and self._is_continued:
                self.contents.take_over(self._saved)
            elif self.count == 0:
                self.fields.values[self.contents.statistics.weight.name] = 0.0

    def write(self, time: float, step: int) -> None:
        """Begin to write the present state; `poll` and `finish` let readers see it."""
        with self.timing():
            row = np.array([[time, step, *self.contents.compute()]])
            statistics = self.contents.statistics
            if statistics is not None and self.how.window == "output":
                self.fields.values[statistics.weight.name] = 0.0
            if self.contents.parts and self.count >= self._room:
                self._make_room()
            for name, part in self.contents.parts.items():
                self._count_infinite(name, step, self.put(name, part, (self.count,)))
        self.add(row)

    @property
    def recorded(self) -> Recorded | None:
        """Numbers that steps can compute and the run keeps; None where the output has other arrays."""
        numbers = self.contents.numbers
        steps = None if self.how.every is None else Every.parse("every", self.how.every).steps
        return None if steps is None or numbers is None else Recorded(steps, numbers)

    def add(self, rows: NDArray[Any]) -> None:
        """Add rows, whose fields are on their way to disk.

        Parameters
        ----------
        rows : array (rows, 2 + numbers)
            Time, step, and numbers in the order of the columns. With values at points, ranks other than the
            first have no numbers.
        """
        if not len(rows):
            return
        with self.timing():
            if self.contents.narrows and self.comm.rank == 0:
                self._count_numbers(rows)
        self._rows.append(rows)
        self.count += len(rows)
        self.last_step = int(rows[-1, 1])
        if self.is_full:
            self._commit()

    @property
    def is_full(self) -> bool:
        """True where the rows that wait to be published fill their memory; the same on all ranks."""
        return (self.count - self.committed) * (ROW_BYTES + self.contents.number_bytes) >= BUFFER_BYTES

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
        if self.count == self.committed:
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
        if self.count == self.committed:
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
        if complete <= self.committed:
            return
        rows = np.concatenate(self._rows)
        try:
            with self.comm.agreement(f"write output {self.path}"):
                if self.comm.rank == 0:
                    self._series.commit(self.committed, rows[: complete - self.committed])
        except RunError:
            self._rows, self.count = [], self.committed
            raise
        self._rows, self.committed = [rows[complete - self.committed :]], complete

    def _count_numbers(self, rows: NDArray[Any]) -> None:
        """Count the numbers of rows that become infinite in the precision of the store."""
        at = 2
        for name, spec in self.contents.columns.items():
            for row in rows:
                infinite = narrowed(row[at : at + spec.row_size], spec.dtype)[1]
                self._count_infinite(name, int(row[1]), infinite)
            at += spec.row_size

    def _count_infinite(self, name: str, step: int, infinite: int) -> None:
        """Count finite values of an array that become infinite in the precision of the store."""
        if infinite and not self._warned:
            self._infinite[step, name] += infinite

    def _warn(self) -> None:
        """Warn once of values that became infinite, with the first such step and the number of values."""
        if self._warned or not self.contents.narrows:
            return
        counts = sum(self.comm.allgather(self._infinite), Counter[tuple[int, str]]())
        self._infinite.clear()
        if not counts:
            return
        self._warned = True
        if self.comm.rank == 0:
            first, names = min(step for step, _ in counts), (*self.contents.columns, *self.contents.parts)
            log.warning(
                "output %s: at step %d, finite values beyond the range of %s are written as infinity: %s. "
                'Choose dtype="float64" for this output; later steps are not reported',
                self.path, first, self.how.dtype or "float32",
                ", ".join(f"{n} of {name}" for name in names if (n := counts[first, name])),
            )  # fmt: skip

    def close(self) -> None:
        """Let other processes write to the store, and free the memory of computed fields."""
        self.contents.release()
        super().close()
