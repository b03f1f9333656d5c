"""The course of a run: how far it goes at a time, and what happens in between."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from halocline.errors import HaloclineError, RunError, Stopped
from halocline.lang.clock import Clock, Limits
from halocline.run.engine.outcome import Outcome
from halocline.run.engine.watch import STOPPING, noting, stopping_on
from halocline.run.output.checkpoint import MARGIN
from halocline.run.output.every import Every
from halocline.run.output.ledger import RunFiles
from halocline.run.output.output_store import OutputStore
from halocline.run.simulation.occasions import NEVER, Occasion, limits
from halocline.run.simulation.requests import Requests
from halocline.run.simulation.session import Session

log = logging.getLogger("halocline")

WRITES = 3.0  # time that a run keeps free at its end, in durations of the longest checkpoint
PUBLISH = 1.0  # seconds until readers see a row; until a run checks whether a checkpoint is whole


class Course:
    """A run from here to its end. All ranks call its methods.

    Parameters
    ----------
    session : Session
    files : RunFiles
        What it writes.
    recorded : sequence of OutputStore
        Outputs whose numbers the steps compute.
    """

    def __init__(self, session: Session, files: RunFiles, recorded: Sequence[OutputStore] = ()) -> None:
        self.session, self.outputs, self.checkpoints = session, files.outputs, files.checkpoints
        self.occasions: list[Occasion] = []
        self._saving: Occasion | None = None  # of checkpoints
        self._in_callback = False
        checkpoints = self.checkpoints
        stop_file = time_limit = None
        if checkpoints is not None:
            stop_file, time_limit = checkpoints.stop_file, checkpoints.how.time_limit
        comm = session.fields.domain.comm
        self.requests = Requests(
            comm, lambda: session.prepared.made, stop_file, time_limit, ends=checkpoints is not None
        )
        self._look = self.requests.alarm() if files.outputs or checkpoints is not None else None
        self._is_recording = bool(recorded)
        self._patience = PUBLISH  # seconds to the next check of a checkpoint that is being written
        for output in self.outputs:
            every = NEVER if output.how.every is None else Every.parse("every", output.how.every)
            act = partial(self._write, output)
            if output in recorded:
                self.add(every, act, last_recorded=partial(getattr, output, "last_step"))
            else:
                last = every is NEVER
                self.add(every, act, exact=output.how.exact, at_end=last, at_stop=last)

    def _write(self, output: OutputStore) -> None:
        output.write(self.session.time, self.session.step)

    def call(self, callback: Callable[[], Any]) -> None:
        """Call a function of the user, which may raise an error on this rank alone."""
        self._in_callback = True
        callback()
        self._in_callback = False

    def add(self, every: Every, act: Callable[[], None], **how: Any) -> None:
        """Add a recurring event; see `Occasion`."""
        self.occasions.append(self._occasion(every, act, **how))

    def _occasion(self, every: Every, act: Callable[[], None], **how: Any) -> Occasion:
        alarm = None if every.seconds is None else self.requests.alarm()
        return Occasion(every, act, alarm=alarm, **how)

    def run(self, until: float, last: float, on_progress: Callable[[int], None] | None = None) -> Outcome:
        """Run to a time or a step; see `Simulation.run`."""
        checkpoints = self.checkpoints
        if checkpoints is not None and checkpoints.how.every is not None:
            self._saving = self._occasion(Every.parse("every", checkpoints.how.every), self._checkpoint)
        for occasion in self._all:
            occasion.begin(self.session.clock, until)
        total: Outcome | None = None
        with self._under_way():
            for output in self.outputs:
                if output.count == 0:
                    self._write(output)
            self._look_after_files()
            while True:
                bounds, before = limits(self._all, self.session.clock, until, last), self.session.step
                outcome = self.session.advance(*bounds, on_progress)
                total = outcome if total is None else total.followed_by(outcome)
                clock = self.session.clock
                is_stopped = outcome.reason not in ("completed", "paused")
                self.requests.ring()
                self._publish()
                is_over = is_stopped or clock.step >= last or clock.has_reached(until)
                past_events = [event for event in self.occasions if event.happen(clock)]
                if is_over:
                    for event in self.occasions:
                        if event.at_end and event not in past_events and (event.at_stop or not is_stopped):
                            event.act()
                    self._finish()
                    return replace(total, reason="completed") if total.reason == "paused" else total
                why = self.requests.agreed()
                if why is not None:
                    self._end(why)
                # the checkpoint comes last, so that it includes the other events
                is_saved = self._saving is not None and self._saving.happen(clock)
                self._look_after_files()
                if not (past_events or is_saved or clock.step > before or outcome.reason == "paused"):
                    raise RunError(_stuck(clock, bounds))

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """Turn requests to end the run into pauses of the engine, and save files where the run fails."""
        # where there is a checkpoint to leave, a signal is a request like others, for whole steps
        signals = stopping_on() if self.checkpoints is None else noting((*STOPPING, signal.SIGUSR1))
        with signals, self.requests.listening():
            try:
                yield
            except (Exception, KeyboardInterrupt) as error:
                alone = self.session.fields.domain.comm.size == 1
                agreed = isinstance(error, (HaloclineError, KeyboardInterrupt)) and not self._in_callback
                if alone or agreed:
                    self._save_what_is_under_way()
                else:  # nobody knows where the other ranks are
                    self._wait_for_writers()
                raise

    @property
    def _all(self) -> list[Occasion]:
        return self.occasions if self._saving is None else [*self.occasions, self._saving]

    def _checkpoint(self) -> None:
        assert self.checkpoints is not None
        self.checkpoints.write()
        self._patience = PUBLISH

    def _publish(self) -> None:
        """Let readers see rows, and name a checkpoint that is whole the newest, when the time has come."""
        if self._look is not None and self._look.rang:
            self._look.put_off()
            for output in self.outputs:
                output.poll()
            if self.checkpoints is not None:
                self.checkpoints.poll()
                self._patience *= 2

    def _look_after_files(self) -> None:
        """Set the time at which rows are published, and a checkpoint is named the newest."""
        if self._look is None:
            return
        if self.checkpoints is not None:
            self.requests.margin = max(MARGIN, WRITES * self.checkpoints.longest)
        if not self._look.is_wound:
            # the engine has rows of its own that `count` does not include
            if self._is_recording or any(output.committed < output.count for output in self.outputs):
                self._look.wind(PUBLISH)
            elif self.checkpoints is not None and self.checkpoints.is_open:
                self._look.wind(self._patience)

    def _finish(self) -> None:
        """Leave a last checkpoint, and wait until all is on disk."""
        for output in self.outputs:
            output.finish()
        if self.checkpoints is not None:
            self.checkpoints.write_last()

    def _save_what_is_under_way(self) -> None:
        """Of a run that has failed."""
        calls = [output.finish for output in self.outputs]
        if self.checkpoints is not None:
            calls.append(self.checkpoints.finish)
        for call in calls:
            try:
                call()
            except HaloclineError as error:  # on all ranks; the first error counts
                if self.session.fields.domain.comm.rank == 0:
                    log.warning("%s", error)

    def _wait_for_writers(self) -> None:
        """Of this rank: what is on its way is written, though readers do not see it."""
        writers = [output.writer for output in self.outputs]
        if self.checkpoints is not None:
            writers.append(self.checkpoints.writer)
        for writer in writers:
            with suppress(RunError):
                writer.finish()

    def _end(self, why: str) -> None:
        """Leave a checkpoint and end before the end."""
        assert self.checkpoints is not None
        self._finish()
        self.requests.forget()
        session, path = self.session, self.checkpoints.how.path
        where = f"after step {session.step} (time {session.time:g})"
        how = f"go on with --resume {path}, or sim.resume({str(path)!r}) in Python"
        if not why:
            raise KeyboardInterrupt(f"interrupted {where}; {how}")
        raise Stopped(f"stopped {where}: {why}; {how}")


def _stuck(clock: Clock, bounds: Limits) -> str:
    """Return the message for a run that makes no progress."""
    return (
        f"the run makes no progress after step {clock.step} (time {clock.time!r}): time "
        f"{min(bounds.until, bounds.pause)!r} or step {bounds.last:g} is due, and no step begins. This is an "
        "error of Halocline: please report it with the time step and the values of every= and until="
    )
