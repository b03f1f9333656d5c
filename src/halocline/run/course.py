"""The course of a run: how far it goes at a time, and what happens in between."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Protocol

from halocline.archive.writer import Writing
from halocline.errors import HaloclineError, Stopped
from halocline.native import native
from halocline.run import restart
from halocline.run.checkpoint import Checkpoint, CheckpointFolder
from halocline.run.every import Every
from halocline.run.occasions import Moment, Occasion, limits
from halocline.run.outcome import Outcome
from halocline.run.output import OutputStore
from halocline.run.prepared import Prepared
from halocline.run.requests import MARGIN, Requests
from halocline.run.restart import Resumable
from halocline.run.watch import STOPPING, stopping_on

WRITES = 3.0  # so many times as long as the longest checkpoint took a run keeps free at the end of its time


class Advancing(Resumable, Protocol):
    """What a course is of.

    Attributes
    ----------
    at_checks : list of callable
        What it calls now and then while it advances.
    """

    at_checks: list[Callable[[], None]]

    @property
    def prepared(self) -> Prepared:
        """What runs now."""

    def advance(
        self, until: float, pause: float, last: float, on_progress: Callable[[int], None] | None
    ) -> Outcome:
        """Run to a time or step; see `Session.advance`."""


class Checkpoints:
    """Checkpoints of a session. All ranks call its methods.

    Parameters
    ----------
    how : Checkpoint
    session : Advancing
    parameters : mapping of str to float
        As the run was given them.
    ours : bool
        Whether the session has gone on from checkpoints in this folder, or has left some there.

    Attributes
    ----------
    also : callable or None
        Returns what else a checkpoint is to hold, for JSON.
    """

    def __init__(
        self, how: Checkpoint, session: Advancing, parameters: Mapping[str, float], *, ours: bool
    ) -> None:
        self.how, self.session, self.parameters = how, session, dict(parameters)
        self.folder = CheckpointFolder(how, session.fields.store)
        self.folder.begin(ours)
        self.also: Callable[[], Mapping[str, Any]] | None = None
        self._step = session.step if ours else -1  # of the last one

    def write(self) -> None:
        """Begin to write one."""
        session = self.session
        also = {} if self.also is None else self.also()
        facts = restart.facts(session, self.parameters, also)
        self.folder.write(session.step, session.state.fields, facts)
        self._step = session.step

    def write_last(self) -> None:
        """Write one where there is none of this step, and wait until it is whole."""
        if self._step != self.session.step:
            self.session.fields.check_all("before a checkpoint was written")
            self.write()
        self.folder.finish()


class Course:
    """A run from here to its end. All ranks call its methods.

    Parameters
    ----------
    session : Advancing
    checkpoints : Checkpoints, optional
    outputs : sequence of OutputStore
        That have begun.
    """

    def __init__(
        self,
        session: Advancing,
        checkpoints: Checkpoints | None = None,
        outputs: Sequence[OutputStore] = (),
    ) -> None:
        self.session, self.checkpoints, self.outputs = session, checkpoints, tuple(outputs)
        self.occasions: list[Occasion] = []
        self._at_end: list[tuple[Occasion | None, Callable[[], None]]] = []
        comm = session.fields.domain.comm
        stop_file = time_limit = None
        if checkpoints is not None:
            stop_file, time_limit = checkpoints.folder.stop_file, checkpoints.how.time_limit
        self.requests = Requests(
            comm, lambda: session.prepared.running, stop_file, time_limit, ends=checkpoints is not None
        )

        for output in self.outputs:
            every = None if output.how.every is None else Every.parse("every", output.how.every)
            self.add(every, partial(self._write, output), exact=output.how.exact, at_end=every is None)

    def _write(self, output: OutputStore) -> None:
        output.write(self.session.time, self.session.step)

    def add(
        self, every: Every | None, act: Callable[[], None], *, exact: bool = False, at_end: bool = False
    ) -> None:
        """Let something happen so often, and perhaps at the end too, where it has not just happened."""
        occasion = None
        if every is not None:
            alarm = None if every.seconds is None else self.requests.alarm()
            occasion = Occasion(every, act, exact=exact, alarm=alarm)
            self.occasions.append(occasion)
        if at_end:
            self._at_end.append((occasion, act))

    @property
    def writing(self) -> Writing:
        """What output and checkpoints took of the run."""
        parts = [output.writing for output in self.outputs]
        if self.checkpoints is not None:
            parts.append(self.checkpoints.folder.writing)
        return sum(parts, Writing())

    @property
    def now(self) -> Moment:
        """Where the run is."""
        return Moment(self.session.time, self.session.step)

    def run(self, until: float, last: float, on_progress: Callable[[int], None] | None = None) -> Outcome:
        """Run to a time or a step; see `Simulation.run`."""
        if self.checkpoints is not None and self.checkpoints.how.every is not None:
            # last: what else happens then is in the checkpoint
            self.add(Every.parse("every", self.checkpoints.how.every), self.checkpoints.write)
        signals = STOPPING if self.checkpoints is None else (*STOPPING, signal.SIGUSR1)
        for occasion in self.occasions:
            occasion.begin(self.now)
        with ExitStack() as stack:
            stack.enter_context(stopping_on(signals))
            stack.enter_context(self.requests.listening())
            polls = [output.poll for output in self.outputs]
            if self.checkpoints is not None:
                polls.append(self.checkpoints.folder.poll)
            self.session.at_checks += polls
            for poll in polls:
                stack.callback(self.session.at_checks.remove, poll)
            for output in self.outputs:
                if output.count == 0:
                    self._write(output)
            try:
                return self._run(until, last, on_progress)
            except (HaloclineError, KeyboardInterrupt):  # on all ranks
                self._finish()
                raise

    def _run(self, until: float, last: float, on_progress: Callable[[int], None] | None) -> Outcome:
        whole: Outcome | None = None
        while True:
            try:
                outcome = self.session.advance(*limits(self.occasions, self.now, until, last), on_progress)
            except KeyboardInterrupt:
                if self.checkpoints is None:
                    raise
                self._end(self._signal())
            whole = outcome if whole is None else whole.followed_by(outcome)
            now = self.now
            stopped = outcome.reason not in ("completed", "paused")
            why = self.requests.agreed()
            ended = stopped or now.step >= last or now.time >= until
            happened = [] if stopped else [each for each in self.occasions if each.happen(now)]
            if ended:
                for occasion, act in self._at_end if not stopped else ():
                    if occasion not in happened:
                        act()
                self._finish()
                if self.checkpoints is not None:
                    self.checkpoints.write_last()
                return whole
            if why:
                self._end(why)
            if self.checkpoints is not None:
                self.requests.margin = max(MARGIN, WRITES * self.checkpoints.folder.seconds)

    def _finish(self) -> None:
        """Wait for what is being written."""
        for output in self.outputs:
            output.finish()

    def _signal(self) -> str:
        """The signal that came, in words; "" for Ctrl-C."""
        comm = self.session.fields.domain.comm
        number = max(comm.allgather(native().take_signal()))
        return "" if number in (0, signal.SIGINT) else f"{signal.Signals(number).name} came"

    def _end(self, why: str) -> None:
        """Leave a checkpoint and end before the end."""
        assert self.checkpoints is not None
        self._finish()
        self.checkpoints.write_last()
        session, path = self.session, self.checkpoints.how.path
        where = f"after step {session.step} (time {session.time:g}); go on with --resume {path}"
        if not why:
            raise KeyboardInterrupt(f"interrupted {where}")
        raise Stopped(f"stopped, since {why}, {where}")
