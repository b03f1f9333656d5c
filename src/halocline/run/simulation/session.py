"""Running a state: step by step towards a time, and now and then checked for values that are not finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from halocline.compile.schedule import AROUND
from halocline.errors import HaloclineError, InputError, RunError
from halocline.lang.clock import ENDLESS, NEXT_STEP, STATE, Clock, clock_of
from halocline.lang.grid import Field
from halocline.lang.program import OWN_SCALARS, Program
from halocline.lang.stepping import BAD_STEP, Stepping
from halocline.run.engine.outcome import Outcome
from halocline.run.engine.prepare import prepare
from halocline.run.engine.prepared import Prepared
from halocline.run.engine.watch import interruption
from halocline.run.fields.fields import Fields
from halocline.run.fields.state import State

if TYPE_CHECKING:
    from numpy.typing import NDArray

# All fields are checked for finite values after FIRST_CHECK steps, then after twice as many, and so on, but
# at least every CHECK_SECONDS, or as often as takes CHECK_SHARE of the time if that is more seldom.
FIRST_CHECK = 64
CHECK_SECONDS = 10.0
CHECK_SHARE = 0.01


class Replay(Protocol):
    """What finds out where a run failed; see `halocline.run.simulation.replay`."""

    def keep(self, until: float) -> None:
        """Take the state as it is, which is known to be finite, on its way to a time."""

    def explained(self, error: HaloclineError) -> HaloclineError:
        """The same error with what led to it."""

    def at(self, error: InputError) -> HaloclineError:
        """The same error of a value that was set, with what is not finite in its cell."""


class Session:
    """A state, the program that advances it, and what was found of it so far. All ranks call its methods.

    Parameters
    ----------
    fields : Fields
        Those of the state.
    stepping : Stepping

    Attributes
    ----------
    state : State
    prepared : Prepared
    replay : Replay or None
        Finds out where a run failed.
    ran_with : dict of str to float
        The parameters that a delayed time step is of.
    keep_rows : callable or None
        Takes the history of the steps, where they compute numbers of output.
    """

    def __init__(self, fields: Fields, stepping: Stepping) -> None:
        self.fields, self.stepping, self._program = fields, stepping, stepping.program
        self.state = State(fields.store, fields.values)
        self.prepared = self.ready(stepping)
        self.replay: Replay | None = None
        self._first: Prepared | None = None  # what a delayed time step begins with
        self.ran_with: dict[str, float] = {}
        self.keep_rows: Callable[[NDArray[Any]], None] | None = None
        self.forget_checks()

    def ready(self, stepping: Stepping) -> Prepared:
        """A program, ready to advance this state."""
        scalar_names = (*self.fields.values, *ENDLESS, "steps")
        return prepare(self.fields.store, stepping.program, scalar_names)

    # --- the state ---

    @property
    def program(self) -> Program:
        """What advances it, without what is counted beside."""
        return self._program

    @property
    def timed(self) -> bool:
        """Whether it advances in time, and not in steps alone."""
        return self.stepping.timed

    @property
    def running(self) -> Any:
        """The native engine, where it is made; any thread may ask."""
        return self.prepared.made

    @property
    def step(self) -> int:
        """Steps done so far."""
        return int(self.state.values["step"])

    @property
    def time(self) -> float:
        """The simulated time reached."""
        return self.state.values["t"]

    @property
    def clock(self) -> Clock:
        """Clock with the time and step reached; it decides which times count as reached."""
        return clock_of(self.state.values)

    @property
    def held(self) -> list[Field]:
        """The fields of the program, those of the scheme too."""
        names = {info.name for info in self.prepared.schedule.fields}
        return [f for f in self.fields.grid.fields.values() if f.name in names]

    def scalars(self) -> dict[str, float]:
        """All scalars of the program but those of grid and machine, as they are while a run goes on, which
        another thread may read: some may be of a step later than others."""
        known = zip(self.prepared.schedule.scalars, self.prepared.values.tolist(), strict=True)
        own = {*self.fields.grid.scalar_values(), AROUND}
        return {name: value for name, value in known if name not in own}

    def set_scalars(self, values: Mapping[str, float]) -> None:
        """Set scalars of the program, those too that only its statements set."""
        for number, name in enumerate(self.prepared.schedule.scalars):
            if name in values:
                self.prepared.values[number] = values[name]

    def use(self, stepping: Stepping, prepared: Prepared) -> None:
        """Go on with another program, whose steps do the same beside what they count."""
        if prepared is not self.prepared:
            scalars = self.scalars()
            self.stepping, self.prepared = stepping, prepared
            self.set_scalars(scalars)

    @contextmanager
    def using(
        self, stepping: Stepping, keep_rows: Callable[[NDArray[Any]], None] | None = None
    ) -> Iterator[None]:
        """Go on with such another program meanwhile; `keep_rows` takes its history."""
        own, prepared = self.stepping, self.prepared
        self.use(stepping, self.ready(stepping))
        self.keep_rows = keep_rows
        try:
            yield
        finally:
            self.keep_rows = None
            self.use(own, prepared)

    def replace(self, prepared: Prepared) -> None:
        """Go on with the same program prepared anew, for a store that has changed."""
        self.prepared, self._first = prepared, None
        self.forget_step()
        self.forget_checks()

    def forget_step(self) -> None:
        """Let a delayed time step be exact once more: it was of other fields."""
        self.state.values.pop(NEXT_STEP, None)

    def restart(self) -> None:
        """Forget earlier steps, after the time and the step were set."""
        self.forget_step()
        self.state.values.pop("dt", None)  # there is no last step
        self.forget_time_steps()
        self.forget_checks()

    def forget_time_steps(self) -> None:
        """Restart the count of time steps, after the time or the time step was set."""
        for name in STATE:
            self.state.values.pop(name, None)

    def forget_checks(self) -> None:
        """Begin anew to find out how often fields are to be checked for finite values."""
        self._kept_for: Any = None  # what the last copy for a replay was kept for
        self._due = FIRST_CHECK  # steps from one check to the next
        self._since, self._took, self._checking = 0, 0.0, 0.0  # steps since; seconds of these, and of checks

    # --- running ---

    def advance(
        self,
        until: float,
        pause: float,
        last: float,
        on_progress: Callable[[int], None] | None = None,
    ) -> Outcome:
        """Run until a time or a step, and check now and then that fields are finite.

        Parameters
        ----------
        until : float
            The last step is shortened to end at this time.
        pause : float
            No step begins at this time or later, where the time step varies; at most `until`.
        last : float
            The number of steps that is not exceeded.
        on_progress : callable, optional
            Called with the steps that are done, a few times a second, from another thread.

        Raises
        ------
        RunError
            A field is not finite, or the time step is not positive.
        KeyboardInterrupt
        """
        checked = self.state.values["step"]
        total: Outcome | None = None
        self._begin_delayed()
        while True:
            self._keep(until)
            report = None if on_progress is None else partial(_report, on_progress, int(checked))
            outcome = self.go_on(until, min(last - checked, self._due - self._since), report, pause=pause)
            total = outcome if total is None else total.followed_by(outcome)
            began = perf_counter()
            try:
                self.check_after(checked)
            except RunError as error:
                raise self.explained(error) from None
            if outcome.reason == BAD_STEP:
                dt = self.state.values["dt"]
                is_short = 0.0 < dt < math.inf
                short = f"the time step is {dt:g}, which is too short to change the time"
                reason = short if is_short else f"{BAD_STEP} but {dt:g}"
                after = f"after step {self.step} (time {self.time:g})"
                raise self.explained(RunError(f"{reason} {after}"))
            self._checking = perf_counter() - began
            self._since += int(self.state.values["step"] - checked)
            self._took += outcome.loop_seconds
            checked = self.state.values["step"]
            if outcome.reason != "completed" or checked >= last or outcome.loops[0] == "condition":
                return total
            if self.clock.has_reached(until):
                return total

    def go_on(
        self,
        until: float,
        steps: float,
        on_progress: Callable[[int], None] | None = None,
        *,
        pause: float | None = None,
    ) -> Outcome:
        """Do at most `steps` steps, and do not check the result."""
        values, clock = self.state.values, self.clock
        scalars = clock.scalars_for(until, until if pause is None else pause, steps)
        outcome = self.prepared.run({**values, **scalars}, on_progress)
        for name in (*OWN_SCALARS, NEXT_STEP, *self.stepping.sets):
            if name in outcome.scalars:
                values[name] = outcome.scalars[name]
        values.update(clock.state({**scalars, **outcome.scalars}))
        if values["t"] < until < math.inf and self.clock.has_reached(until):
            values["t"] = until  # rounding of a varying time step has left out the last step
        if self.keep_rows is not None:
            history = outcome.history  # of one row for each step
            if len(history) and history[-1, 1] == values["step"]:
                history[-1, 0] = values["t"]
            self.keep_rows(history)
            outcome = replace(outcome, history=history[:0, :0])
        if outcome.reason == "interrupted":
            raise interruption()
        return outcome

    def _begin_delayed(self) -> None:
        """Know a delayed time step before the first step, or where fields or parameters were set since."""
        values, now = self.state.values, dict(self.fields.parameters)
        if self.stepping.first is None or (NEXT_STEP in values and now == self.ran_with):
            return
        if self._first is None:
            self._first = prepare(self.fields.store, self.stepping.first, ("dt", *values))
        scalars = self._first.run({"dt": 0.0, **values}).scalars
        values[NEXT_STEP], self.ran_with = scalars[NEXT_STEP], now

    # --- checks for finite values ---

    def _keep(self, until: float) -> None:
        """Where enough was done since, or something else is to come, let what goes wrong later be searched
        for from here on."""
        purpose, due = (until, dict(self.fields.parameters)), self._since >= self._due
        if not due and purpose == self._kept_for:
            return
        began = perf_counter()
        if self.replay is not None:
            self.replay.keep(until)
        if due:
            checking = max(self.fields.domain.comm.allgather(self._checking + perf_counter() - began))
            seconds = max(CHECK_SECONDS, checking / CHECK_SHARE)
            most = int(seconds * self._since / max(self._took, 1e-9))
            self._due = max(FIRST_CHECK, min(2 * self._due, most))
        self._kept_for, self._since, self._took = purpose, 0, 0.0

    def check_after(self, before: float) -> None:
        """Raise RunError where fields hold values that are not finite, and were finite after step
        `before`."""
        when = f"after step {self.step} (time {self.time:g}), but was finite after step {int(before)}"
        try:
            self.fields.check_all(when)
        except InputError as error:
            failure = RunError(f"{error}; a smaller time step may help")
            failure.place = error.place
            raise failure from None

    def explained(self, error: HaloclineError) -> HaloclineError:
        """The same error with what led to it, where that can be found out."""
        self.keep_rows = None  # the rows of the steps that a replay repeats are kept already
        return error if self.replay is None else self.replay.explained(error)


def _report(on_progress: Callable[[int], None], before: int, done: int) -> None:
    on_progress(before + done)
