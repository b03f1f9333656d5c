"""Steps of a simulation towards a time, with checks for values that are not finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from time import perf_counter
from typing import Any, Protocol

from numpy.typing import NDArray

from halocline.compile.schedule import AROUND
from halocline.errors import HaloclineError, InputError, RunError
from halocline.lang import equations
from halocline.lang.clock import ENDLESS, NEXT_STEP, STATE, Clock, clock_of
from halocline.lang.grid import Field
from halocline.lang.program import OWN_SCALARS
from halocline.lang.stepping import BAD_STEP, Stepping
from halocline.run.engine.prepare import prepare
from halocline.run.engine.prepared import Outcome, Prepared, interruption
from halocline.run.fields.fields import Fields

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


class Session:
    """Fields and scalars, and the program that advances them in steps. All ranks call its methods.

    Parameters
    ----------
    fields : Fields
        Fields that the program advances, with the values of its scalars.
    stepping : Stepping
    prepared : Prepared, optional
        The program, ready to run.

    Attributes
    ----------
    program : Program
        The program without what it counts beside.
    ran_with : dict of str to float
        Parameters that belong to the scalars which one step leaves for the next.
    replay : Replay or None
        Finds out where a run failed.
    keep_rows : callable or None
        Takes the history of the steps, where they compute numbers of output.
    is_under_way : bool
        True during a run.
    last_run : (int, float)
        Steps of the last run, and their seconds.
    """

    def __init__(self, fields: Fields, stepping: Stepping, prepared: Prepared | None = None) -> None:
        self.fields, self.stepping, self.program = fields, stepping, stepping.program
        self.prepared = _ready(fields, stepping) if prepared is None else prepared
        self.timed = stepping.timed
        self.ran_with: dict[str, float] = {}
        self.replay: Replay | None = None
        self.keep_rows: Callable[[NDArray[Any]], None] | None = None
        self.is_under_way = False
        self.last_run = 0, 0.0
        self._first: Prepared | None = None  # program that computes the first delayed time step
        self._began: Clock  # clock at the start of the last run
        self.forget_checks()

    # --- fields and scalars ---

    @property
    def clock(self) -> Clock:
        """Clock with the time and step reached; it decides which times count as reached."""
        return clock_of(self.fields.values)

    @property
    def time(self) -> float:
        """Simulated time reached."""
        return self.fields.values["t"]

    @property
    def step(self) -> int:
        """Number of steps done."""
        return int(self.fields.values["step"])

    @cached_property
    def identity(self) -> dict[str, str]:
        """Texts of the grid, the fields and the equations, which must be equal for a run to restart."""
        grid, program = self.fields.grid, self.program
        return {
            "grid": equations.grid_text(grid),
            "fields": equations.fields(grid, program),
            "equations": equations.equations(program),
        }

    @property
    def held(self) -> list[Field]:
        """Fields of the program, also those of the scheme."""
        names = {info.name for info in self.prepared.schedule.fields}
        return [f for f in self.fields.grid.fields.values() if f.name in names]

    @property
    def _machine_scalars(self) -> set[str]:
        """Names of the scalars that the grid and the machine determine."""
        return {*self.fields.grid.scalar_values(), AROUND}

    def scalars(self) -> dict[str, float]:
        """Return all scalars of the program except those of grid and machine.

        Another thread may call this during a run: some scalars may then be of a later step than others.
        """
        left_out = self._machine_scalars
        return {name: value for name, value in self.prepared.scalars().items() if name not in left_out}

    def set_scalars(self, values: Mapping[str, float]) -> None:
        """Set scalars of the program, also those that only its statements set."""
        left_out = self._machine_scalars
        self.prepared.set_scalars({name: value for name, value in values.items() if name not in left_out})

    def use(self, prepared: Prepared) -> None:
        """Continue with another program that reads and sets the same scalars."""
        scalars = self.scalars()
        self.prepared = prepared
        self.set_scalars(scalars)

    @contextmanager
    def using(
        self, stepping: Stepping, keep_rows: Callable[[NDArray[Any]], None] | None = None
    ) -> Iterator[None]:
        """Advance with another program in the block, whose steps do the same beside what they count.

        Parameters
        ----------
        stepping : Stepping
        keep_rows : callable, optional
            Takes the history of the steps.
        """
        before, prepared = self.stepping, self.prepared
        self.use(_ready(self.fields, stepping))
        self.stepping, self.keep_rows = stepping, keep_rows
        try:
            yield
        finally:
            self.use(prepared)
            self.stepping, self.keep_rows = before, None

    def replace(self, prepared: Prepared) -> None:
        """Advance with the same program prepared anew, for a store that has changed."""
        self.prepared, self._first = prepared, None
        self.forget_step()
        self.forget_checks()

    def forget_step(self) -> None:
        """Make a delayed time step exact once more, after fields were set."""
        self.fields.values.pop(NEXT_STEP, None)

    def restart(self) -> None:
        """Forget earlier steps, after the time and the step were set."""
        self.forget_step()
        self.last_run = 0, 0.0
        self.fields.values.pop("dt", None)  # there is no last step
        self.forget_time_steps()
        self.forget_checks()

    def forget_time_steps(self) -> None:
        """Restart the count of time steps, after the time or the time step was set."""
        for name in STATE:
            self.fields.values.pop(name, None)

    def forget_checks(self) -> None:
        """Begin anew to find out how often fields are to be checked for finite values."""
        self._kept_for: Any = None  # purpose of the last copy for a replay
        self._due = FIRST_CHECK  # steps from one check to the next
        self._since, self._took, self._checking = 0, 0.0, 0.0  # steps since; seconds of these, and of checks

    def release(self) -> None:
        """Free the engines of the program; the next run makes others."""
        for prepared in (self.prepared, self._first):
            if prepared is not None:
                prepared.release()

    def forget_copy(self) -> None:
        """Take a new copy for a replay before the next step, after subdomains have moved."""
        self._kept_for = None

    # --- running ---

    def advance(
        self,
        until: float,
        pause: float,
        last: float,
        on_progress: Callable[[int], None] | None = None,
    ) -> Outcome:
        """Run until a time or a step, and check the result now and then.

        Parameters
        ----------
        until : float
            The last step is shortened to end at this time.
        pause : float
            No step begins at this time or later, where the time step varies; at most `until`.
        last : float
            The number of steps that is not exceeded.
        on_progress : callable, optional
            Called with the number of steps done, a few times a second, from another thread.

        Raises
        ------
        RunError
            A field is not finite, or the time step is not positive.
        KeyboardInterrupt
        """
        total: Outcome | None = None
        is_over = False
        while not is_over:
            before = self.step
            steps = min(last - before, self.unchecked(until))
            inputs = self.inputs(until, pause, steps)
            report = None if on_progress is None else partial(_report, on_progress, before)
            outcome = self.take(inputs, self.prepared.run(inputs, report))
            total = outcome if total is None else total.followed_by(outcome)
            self.check(before, outcome)
            ended = outcome.reason != "completed" or outcome.loops[0] == "condition"
            is_over = ended or self.step >= last or self.clock.has_reached(until)
        assert total is not None
        return total

    def inputs(self, until: float, pause: float, steps: float) -> dict[str, float]:
        """Return the values of scalars for a run; see `advance`."""
        self._began = self.clock
        return {**self.fields.values, **self._began.scalars_for(until, pause, steps)}

    def take(self, inputs: Mapping[str, float], outcome: Outcome) -> Outcome:
        """Take over the result of a run with these inputs.

        Raises
        ------
        KeyboardInterrupt
            SIGINT or SIGTERM came.
        """
        values, until = self.fields.values, inputs["until"]
        for name in (*OWN_SCALARS, NEXT_STEP, *self.stepping.sets):
            if name in outcome.scalars:
                values[name] = outcome.scalars[name]
        values.update(self._began.state({**inputs, **outcome.scalars}))
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
        values, now = self.fields.values, dict(self.fields.parameters)
        if self.stepping.first is None or (NEXT_STEP in values and now == self.ran_with):
            return
        if self._first is None:
            self._first = prepare(self.fields.store, self.stepping.first, ("dt", *values))
        scalars = self._first.run({"dt": 0.0, **values}).scalars
        values[NEXT_STEP], self.ran_with = scalars[NEXT_STEP], now

    # --- checks for finite values ---

    def unchecked(self, until: float) -> float:
        """Return the number of steps until fields are checked.

        Where enough was done since the last copy, or the purpose changes, a replay copies the state: a later
        error is searched for from here on.
        """
        self._begin_delayed()
        purpose, due = (until, dict(self.fields.parameters)), self._since >= self._due
        if not due and purpose == self._kept_for:
            return self._due - self._since
        began = perf_counter()
        if self.replay is not None:
            self.replay.keep(until)
        if due:
            checking = max(self.fields.domain.comm.allgather(self._checking + perf_counter() - began))
            seconds = max(CHECK_SECONDS, checking / CHECK_SHARE)
            most = int(seconds * self._since / max(self._took, 1e-9))
            self._due = max(FIRST_CHECK, min(2 * self._due, most))
        self._kept_for, self._since, self._took = purpose, 0, 0.0
        return self._due

    def check(self, before: int, outcome: Outcome) -> None:
        """Raise RunError where the steps after step `before` left values or a time step that cannot be."""
        began = perf_counter()
        try:
            self.check_after(before)
            if outcome.reason == BAD_STEP:
                dt = self.fields.values["dt"]
                is_short = 0.0 < dt < math.inf
                short = f"the time step is {dt:g}, which is too short to change the time"
                reason = short if is_short else f"{BAD_STEP} but {dt:g}"
                raise RunError(f"{reason} after step {self.step} (time {self.time:g})")
        except RunError as error:
            raise self.explained(error) from None
        self._checking = perf_counter() - began
        self._since += self.step - before
        self._took += outcome.loop_seconds

    def check_after(self, before: int) -> None:
        """Raise RunError where fields hold values that are not finite, and were finite after step
        `before`."""
        when = f"after step {self.step} (time {self.time:g}), but was finite after step {before}"
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


def _ready(fields: Fields, stepping: Stepping) -> Prepared:
    """Prepare a program that advances the state of these fields."""
    return prepare(fields.store, stepping.program, (*fields.values, *ENDLESS, "steps"))
