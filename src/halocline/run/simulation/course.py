"""Control of one run: its end, recurring events, and requests to pause or stop."""

from __future__ import annotations

import logging
import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from halocline.errors import HaloclineError, InputError, RunError, Stopped
from halocline.lang.clock import Clock, Limits
from halocline.lang.values import as_quantity
from halocline.native import native
from halocline.ranges import STEPS
from halocline.run.engine.prepared import STOPPING, Outcome, call_repeatedly, note_signals, stop_on_signals
from halocline.run.fields.session import Session
from halocline.run.output.checkpoint import MARGIN, Checkpoints
from halocline.run.output.every import Every, wall_clock
from halocline.run.output.ledger import RunFiles
from halocline.run.output.output_store import OutputStore
from halocline.run.ranks.communicator import Communicator
from halocline.run.simulation.observers import RunArguments
from halocline.words import short_repr

log = logging.getLogger("halocline")

# Time reserved at the end of a run, as a multiple of the duration of the longest checkpoint.
WRITES = 3.0
# Seconds until readers see a new row, and until a run first checks whether a checkpoint is complete.
PUBLISH = 1.0
# Interval of an event that occurs only at the end of the run.
NEVER = Every()
# Maximum number of steps recorded without a pause.
MOST_ROWS = 1 << 16


def _started() -> float:
    """Return the time of the monotonic clock at which this process began."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):  # not on Linux
        age = 0.0
    return time.monotonic() - age


STARTED = _started()


def end_of_time(time_limit: str | None, environment: Mapping[str, str] = os.environ) -> float | None:
    """Return the time of the monotonic clock by which this process must end; None without a limit.

    The limit of the user has priority over the end of the Slurm job.
    """
    if time_limit is not None:
        return STARTED + wall_clock("time_limit", time_limit)
    job = environment.get("SLURM_JOB_ID", "")
    if not job.isdigit():
        return None
    end = environment.get("SLURM_JOB_END_TIME", "")  # seconds since 1970
    if end.isdigit():
        return time.monotonic() + int(end) - time.time()
    left = _slurm_time_left(job)
    return None if left is None else time.monotonic() + left


def _slurm_time_left(job: str) -> float | None:
    """Return the seconds until a Slurm job must end; None without a limit.

    The command squeue prints the time in the form [days-][[hours:]minutes:]seconds.
    """
    try:
        process = subprocess.run(
            ["squeue", "--noheader", "--job", job, "--format=%L"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.fullmatch(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)", process.stdout.strip())
    if match is None:  # UNLIMITED, NOT_SET
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


class Requests:
    """Requests to pause or stop one run. If any rank receives a request, all ranks follow it.

    Parameters
    ----------
    comm : Communicator
    engine : callable
        Function that returns the running native engine, or None; called from another thread.
    checkpoints : Checkpoints or None
        Checkpoints of the run. With checkpoints, a signal, the stop file or the time limit ends the run.

    Attributes
    ----------
    margin : float
        Seconds between the stop of the run and the time limit.
    """

    def __init__(
        self, comm: Communicator, engine: Callable[[], Any], checkpoints: Checkpoints | None
    ) -> None:
        self.comm = comm
        self.engine = engine
        self.checkpoints = checkpoints
        self.margin = MARGIN
        self._end: float | None = None  # time limit on the monotonic clock of rank 0
        if checkpoints is not None and comm.rank == 0:
            self._end = end_of_time(checkpoints.declaration.time_limit)

    def listen(self, next_pause: Callable[[], float | None]) -> AbstractContextManager[None]:
        """Return a context manager. Inside its block, a thread asks the engine to pause when an event is due.

        Parameters
        ----------
        next_pause : callable
            Function that returns the time of the next pause on rank 0's monotonic clock. It returns None for
            a run without files and without events of wall-clock time. Called from another thread.
        """
        is_needed = self.checkpoints is not None or (self.comm.rank == 0 and next_pause() is not None)
        request = partial(self._request_pause, next_pause)
        return call_repeatedly(request, "halocline-requests") if is_needed else nullcontext()

    def _request_pause(self, next_pause: Callable[[], float | None]) -> None:
        engine = self.engine()
        pause = next_pause()
        clock_time = time.monotonic()
        is_pause = pause is not None and pause <= clock_time
        is_due = self._signal() or (self.comm.rank == 0 and (is_pause or self._stop_reason(clock_time)))
        if engine is not None and is_due:
            engine.request_pause()

    def _signal(self) -> int:
        return 0 if self.checkpoints is None else native().noted_signal()

    def _stop_reason(self, clock_time: float) -> str:
        """Return the reason for which rank 0 stops the run, or an empty string."""
        if self.checkpoints is not None and self.checkpoints.stop_file.exists():
            return f"the file {self.checkpoints.stop_file} exists"
        if self._end is not None and clock_time >= self._end - self.margin:
            return "its time limit is nearly reached"
        return ""

    def agree_on_stop(self) -> str | None:
        """Return the reason to stop, "" for Ctrl-C, or None to continue. All ranks call this method.

        A signal remains set until `forget_signal` of the native module is called.
        """
        if self.checkpoints is None:
            return None
        number = self.comm.most(self._signal())
        reason: str = self.comm.bcast(self._stop_reason(time.monotonic()) if self.comm.rank == 0 else "")
        if number:
            return "" if number == signal.SIGINT else f"{signal.Signals(number).name} arrived"
        return reason or None


@dataclass(eq=False)
class Occasion:
    """Recurring event of a run.

    If the interval is a simulated time or a number of steps, the event occurs at integer multiples of the
    interval. This also holds if the run was stopped and resumed. If the interval is a wall-clock time, the
    event occurs when this time has elapsed since the previous event.

    Parameters
    ----------
    every : Every
    act : callable
        Function that performs the action of the event. All ranks call this function.
    exact : bool
        True to shorten steps so that they end at the multiples of the interval. Otherwise the event follows
        the first step that reaches a multiple.
    recorded : OutputStore, optional
        Output to which the steps themselves add rows. The event then occurs only if the steps have not added
        the row that is due.
    at_end : bool
        True to act also at the end of the run, unless the event has just occurred.
    at_stop : bool
        True to act also if the program itself ends the run.
    read_clock : callable
        Function that returns the time of a monotonic clock, identical on all ranks.

    Attributes
    ----------
    due : float
        Simulated time, step or clock time of the next event.
    """

    every: Every
    act: Callable[[], None]
    exact: bool = False
    recorded: OutputStore | None = None
    at_end: bool = False
    at_stop: bool = False
    read_clock: Callable[[], float] = time.monotonic
    due: float = math.inf

    def begin(self, clock: Clock, until: float) -> None:
        """Set the due time to the first multiple after the current time or step.

        Raises
        ------
        InputError
            `exact` is True, and the interval is shorter than the shortest step that changes the time up to
            `until`.
        """
        if self.exact and self.every.time is not None:
            shortest = clock.shortest_step(until)
            if self.every.time < shortest:
                raise InputError(
                    f"every is {self.every.time:g} with exact=True, which limits all steps to this length; "
                    f"expected at least {shortest:.3g}, so that each step changes the time"
                )
        self._set_next_due(clock)

    def limits(self, clock: Clock, until: float) -> Limits:
        """Return the bounds of a run up to the next event, or up to `until` if `until` is earlier."""
        if self.recorded is not None:
            return Limits(until, until, clock.step + MOST_ROWS)
        if self.every.time is None:
            return Limits(until, until, math.inf if self.every.steps is None else self.due)
        if self.exact:
            return Limits(min(until, self.due), until)
        return clock.limits(self.due).within(Limits(until, until))

    def act_if_due(self, clock: Clock) -> bool:
        """Act if the event is due, and return True if it was due. All ranks call this method."""
        if self.every.seconds is not None:
            due = self.read_clock() >= self.due
        elif self.every.steps is not None:
            if self.recorded is not None:
                self.due = max(self.due, _next(self.recorded.last_step, self.every.steps))
            due = clock.step >= self.due
        else:
            due = clock.has_reached(self.due)
        if due:
            self.act()
            self._set_next_due(clock)
        return due

    def _set_next_due(self, clock: Clock) -> None:
        if self.every.seconds is not None:
            self.due = self.read_clock() + self.every.seconds
        elif self.every.steps is not None:
            self.due = _next(clock.step, self.every.steps)
        elif self.every.time is not None:
            self.due = clock.next_multiple(self.every.time)


def _next(step: int, interval: int) -> int:
    """Return the first multiple of `interval` that is greater than `step`."""
    return (step // interval + 1) * interval


def finite_time(name: str, value: object) -> float:
    """Return a time as a float.

    Raises
    ------
    InputError
        The value is not a finite number.
    """
    time = float(value) if isinstance(value, float) else as_quantity(value)
    if time is None or not math.isfinite(time):
        raise InputError(f"{name} is {short_repr(value)}; expected a finite time")
    return time


def run_bounds(arguments: RunArguments, *, timed: bool) -> tuple[float, float, Every | None]:
    """Check the arguments of `Simulation.run`, and return the bounds of the run.

    Parameters
    ----------
    arguments : RunArguments
    timed : bool
        True if the program advances in time, False if only in steps.

    Returns
    -------
    until, steps : float
        Final time and maximum number of steps; infinite if not given.
    every : Every or None
        Interval between two calls of the callback.

    Raises
    ------
    InputError
        The arguments are inconsistent with each other or with the program.
    """
    until, steps, every = arguments.until, arguments.steps, arguments.every
    if until is not None:
        until = finite_time("until", until)
    if steps is not None:
        STEPS.check("steps", steps)
    interval = None if every is None else Every.parse("every", every)
    if interval is not None and arguments.callback is None:
        raise InputError(f"argument every={short_repr(every)} needs a callback")
    if arguments.exact and (interval is None or interval.time is None):
        raise InputError(
            f"exact=True requires a time interval, but `every` is {short_repr(every)}; expected a "
            "float, such as every=0.1"
        )
    if not timed and (until is not None or (interval is not None and interval.time is not None)):
        raise InputError(
            f"{'every' if until is None else 'until'} is given, but this program has no time. Set dt=, let "
            "the program set t, or run a number of steps."
        )
    if until is None and steps is None:
        if every is not None:
            raise InputError("every is given without an end. Set until or steps too.")
        steps = 1
    return math.inf if until is None else until, math.inf if steps is None else steps, interval


class Course:
    """Control of a run up to its end. All methods are collective.

    Parameters
    ----------
    session : Session
    files : RunFiles
        Output files and checkpoints of the run.
    recorded : sequence of OutputStore
        Outputs whose values the steps compute.
    """

    def __init__(self, session: Session, files: RunFiles, recorded: Sequence[OutputStore] = ()) -> None:
        self.session, self.stores = session, files.stores
        self.outputs, self.checkpoints = files.outputs, files.checkpoints
        self.occasions: list[Occasion] = []
        self._saving: Occasion | None = None  # event that writes checkpoints
        self._in_callback = False
        self.comm = comm = session.fields.domain.comm
        self.requests = Requests(comm, lambda: session.prepared.native_engine, self.checkpoints)
        # all ranks use the clock of rank 0
        self._read_clock: Callable[[], float] = lambda: comm.bcast(time.monotonic())
        self._publish_due = math.inf  # time of the next publication of rows and checkpoints
        self._is_recording = bool(recorded)
        self._patience = PUBLISH  # seconds between checks of an incomplete checkpoint
        for output in self.outputs:
            act = partial(self._write, output)
            if output in recorded:
                self.add(output.every, act, recorded=output)
            else:
                is_final = output.declaration.every is None
                self.add(output.every, act, exact=output.declaration.exact, at_end=is_final, at_stop=is_final)

    def _write(self, output: OutputStore) -> None:
        output.write(self.session.time, self.session.step)

    def call(self, callback: Callable[[], Any]) -> None:
        """Call a function of the user, which may raise an error on this rank only."""
        self._in_callback = True
        callback()
        self._in_callback = False

    def add(self, every: Every, act: Callable[[], None], **options: Any) -> None:
        """Add a recurring event; see `Occasion`."""
        self.occasions.append(Occasion(every, act, read_clock=self._read_clock, **options))

    def _next_pause(self) -> float | None:
        """Return the time of the next pause on rank 0's clock; None without files and wall-clock events."""
        dues = [self._publish_due] if self.stores else []
        return min(
            dues + [event.due for event in self._all_occasions if event.every.seconds is not None],
            default=None,
        )

    def run(self, until: float, last: float, on_progress: Callable[[int], None] | None = None) -> Outcome:
        """Run to a time or a step; see `Simulation.run`."""
        checkpoints = self.checkpoints
        if checkpoints is not None and checkpoints.declaration.every is not None:
            every = Every.parse("every", checkpoints.declaration.every)
            self._saving = Occasion(every, self._checkpoint, read_clock=self._read_clock)
        for occasion in self._all_occasions:
            occasion.begin(self.session.clock, until)
        total: Outcome | None = None
        with self._request_handling():
            for output in self.outputs:
                if output.count == 0:
                    self._write(output)
            self._schedule_publication()
            while True:
                clock, before, bounds = self.session.clock, self.session.step, Limits(until, until, last)
                for occasion in self._all_occasions:  # the next event bounds this part of the run
                    bounds = bounds.within(occasion.limits(clock, until))
                outcome = self.session.advance(*bounds, on_progress)
                total = outcome if total is None else total.followed_by(outcome)
                clock = self.session.clock
                is_stopped = outcome.reason not in ("completed", "paused")
                self._publish()
                is_over = is_stopped or clock.step >= last or clock.has_reached(until)
                past_events = [event for event in self.occasions if event.act_if_due(clock)]
                if is_over:
                    for event in self.occasions:
                        if event.at_end and event not in past_events and (event.at_stop or not is_stopped):
                            event.act()
                    self._finish()
                    return replace(total, reason="completed") if total.reason == "paused" else total
                reason = self.requests.agree_on_stop()
                if reason is not None:
                    self._end(reason)
                # The checkpoint is written last, so that it includes the effects of the other events.
                is_saved = self._saving is not None and self._saving.act_if_due(clock)
                self._schedule_publication()
                if not (past_events or is_saved or clock.step > before or outcome.reason == "paused"):
                    raise RunError(_no_progress_message(clock, bounds))

    @contextmanager
    def _request_handling(self) -> Iterator[None]:
        """Pause the engine for stop requests during the block, and finish the files if the run fails."""
        # With checkpoints, a signal is a request that takes effect after a complete step.
        signals = stop_on_signals() if self.checkpoints is None else note_signals((*STOPPING, signal.SIGUSR1))
        with signals, self.requests.listen(self._next_pause):
            try:
                yield
            except (Exception, KeyboardInterrupt) as error:
                is_single = self.comm.size == 1
                is_collective = (
                    isinstance(error, (HaloclineError, KeyboardInterrupt)) and not self._in_callback
                )
                if is_single or is_collective:
                    self._save_files()
                else:  # the state of the other ranks is unknown
                    self._wait_for_writers()
                raise

    @property
    def _all_occasions(self) -> list[Occasion]:
        return self.occasions if self._saving is None else [*self.occasions, self._saving]

    def _checkpoint(self) -> None:
        assert self.checkpoints is not None
        self.checkpoints.write()
        self._patience = PUBLISH

    def _publish(self) -> None:
        """Publish rows to readers, and mark a complete checkpoint as the newest, if a publication is due."""
        if self._publish_due < math.inf and self._publish_due <= self._read_clock():
            self._publish_due = math.inf
            for store in self.stores:
                store.poll()
            self._patience *= 2

    def _schedule_publication(self) -> None:
        """Set the due time of the next publication of rows and checkpoints."""
        if self.checkpoints is not None:
            self.requests.margin = max(MARGIN, WRITES * self.checkpoints.longest)
        if self._publish_due == math.inf:
            # `count` does not include the rows that the engine still holds
            if self._is_recording or any(output.committed < output.count for output in self.outputs):
                self._publish_due = self._read_clock() + PUBLISH
            elif self.checkpoints is not None and self.checkpoints.is_open:
                self._publish_due = self._read_clock() + self._patience

    def _finish(self) -> None:
        """Write a last checkpoint, and wait until all files are on disk."""
        for output in self.outputs:
            output.finish()
        if self.checkpoints is not None:
            self.checkpoints.write_last()

    def _save_files(self) -> None:
        """Finish the files of a failed run. All ranks call this method."""
        for store in self.stores:
            try:
                store.finish()
            except HaloclineError as error:  # on all ranks; the run raises the first error
                if self.comm.rank == 0:
                    log.warning("%s", error)

    def _wait_for_writers(self) -> None:
        """Finish the pending writes of this rank, without publication to readers."""
        for store in self.stores:
            with suppress(RunError):
                store.writer.finish()

    def _end(self, reason: str) -> None:
        """Write a checkpoint, and end the run early."""
        assert self.checkpoints is not None
        self._finish()
        native().forget_signal()
        session, path = self.session, self.checkpoints.declaration.path
        position = f"after step {session.step} (time {session.time:g})"
        advice = f"restart with --resume {path}, or sim.resume({str(path)!r}) in Python"
        if not reason:
            raise KeyboardInterrupt(f"interrupted {position}; {advice}")
        raise Stopped(f"stopped {position}: {reason}; {advice}")


def _no_progress_message(clock: Clock, bounds: Limits) -> str:
    """Return the message for a run that makes no progress."""
    return (
        f"the run makes no progress after step {clock.step} (time {clock.time!r}): time "
        f"{min(bounds.until, bounds.pause)!r} or step {bounds.last:g} is due, but no step starts. This is a "
        "bug of Halocline: please report it with the time step and the values of every= and until=."
    )
