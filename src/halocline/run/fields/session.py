"""Session, which advances a simulation in steps and checks for non-finite values."""

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
from halocline.lang.program import TIME_SCALARS
from halocline.lang.stepping import BAD_STEP, Stepping
from halocline.run.engine.prepare import prepare
from halocline.run.engine.prepared import Outcome, Prepared, interruption
from halocline.run.fields.fields import Fields

# Fields are first checked for non-finite values after FIRST_CHECK steps. The interval then doubles at each
# check, up to CHECK_SECONDS. If checks would then take more than CHECK_SHARE of the time, the interval
# becomes longer.
FIRST_CHECK = 64
CHECK_SECONDS = 10.0
CHECK_SHARE = 0.01


class Replay(Protocol):
    """Protocol of the search for the cause of a failure; see `halocline.run.simulation.replay`."""

    def keep(self, until: float) -> None:
        """Copy the current state of a run that ends at time `until`. All values of this state are finite."""

    def explained(self, error: HaloclineError) -> HaloclineError:
        """Return the error, extended by its cause."""


class Session:
    """Fields, scalars, and the program that advances them in steps.

    All methods are collective unless stated otherwise.

    Parameters
    ----------
    fields : Fields
        Fields that the program advances. They also contain the values of the scalars of the program.
    stepping : Stepping
        Program of the steps.
    prepared : Prepared, optional
        Program of `stepping`, already bound to the engine.

    Attributes
    ----------
    program : Program
        Program of the steps, without the statements for statistics and output values.
    ran_with : dict of str to float
        Parameters with which the last step computed the delayed time step of the next step.
    replay : Replay or None
        Search for the cause of a failure.
    keep_rows : callable or None
        Function that receives the history of the steps: one row of output values per recorded step. None if
        the steps compute no output values.
    is_under_way : bool
        True during a run.
    last_run : (int, float)
        Number of steps of the last run, and their duration in seconds.
    last_share : float or None
        Measured share of the memory bandwidth in the last run; None before a measurement.
    """

    def __init__(self, fields: Fields, stepping: Stepping, prepared: Prepared | None = None) -> None:
        self.fields, self.stepping, self.program = fields, stepping, stepping.program
        self.prepared = _prepare_stepping(fields, stepping) if prepared is None else prepared
        self.has_time_step = stepping.has_time_step
        self.ran_with: dict[str, float] = {}
        self.replay: Replay | None = None
        self.keep_rows: Callable[[NDArray[Any]], None] | None = None
        self.is_under_way = False
        self.last_run = 0, 0.0
        self.last_share: float | None = None
        self._first: Prepared | None = None  # program for the first delayed time step
        self._began: Clock  # clock at the start of the last run
        self.forget_checks()

    # --- fields and scalars ---

    @property
    def clock(self) -> Clock:
        """Clock at the current time and step. The clock decides whether a time counts as reached."""
        return clock_of(self.fields.values)

    @property
    def time(self) -> float:
        """Simulated time."""
        return self.fields.values["t"]

    @property
    def step(self) -> int:
        """Number of completed steps."""
        return int(self.fields.values["step"])

    @cached_property
    def identity(self) -> dict[str, str]:
        """Texts of the grid, fields and equations. A restart requires equal texts in the checkpoint."""
        grid, program = self.fields.grid, self.program
        return {
            "grid": equations.grid_text(grid),
            "fields": equations.fields(grid, program),
            "equations": equations.equations(program),
        }

    @property
    def program_fields(self) -> list[Field]:
        """Fields of the program, including those of the scheme."""
        names = {info.name for info in self.prepared.schedule.fields}
        return [f for f in self.fields.grid.fields.values() if f.name in names]

    @property
    def _machine_scalars(self) -> set[str]:
        """Names of the scalars whose values the grid and the machine determine."""
        return {*self.fields.grid.scalar_values(), AROUND}

    def scalars(self) -> dict[str, float]:
        """Return the scalars of the program by name, without scalars of the grid and the machine.

        Another thread may call this method during a run. The returned values may then belong to different
        steps.
        """
        excluded = self._machine_scalars
        return {name: value for name, value in self.prepared.scalars().items() if name not in excluded}

    def set_scalars(self, values: Mapping[str, float]) -> None:
        """Set scalars of the program, including scalars that usually only its statements set."""
        excluded = self._machine_scalars
        self.prepared.set_scalars({name: value for name, value in values.items() if name not in excluded})

    def use(self, prepared: Prepared) -> None:
        """Continue with another program that reads and sets the same scalars."""
        scalars = self.scalars()
        self.prepared = prepared
        self.set_scalars(scalars)

    @contextmanager
    def use_program(
        self, stepping: Stepping, keep_rows: Callable[[NDArray[Any]], None] | None = None
    ) -> Iterator[None]:
        """Use another program for steps inside the with block.

        The steps of this program compute the same fields, and in addition statistics or output values.

        Parameters
        ----------
        stepping : Stepping
        keep_rows : callable, optional
            Function that receives the history of the steps: one row of output values per recorded step.
        """
        before, prepared = self.stepping, self.prepared
        self.use(_prepare_stepping(self.fields, stepping))
        self.stepping, self.keep_rows = stepping, keep_rows
        try:
            yield
        finally:
            self.use(prepared)
            self.stepping, self.keep_rows = before, None

    def replace(self, prepared: Prepared) -> None:
        """Replace the prepared program by the same program, prepared again after a change of the store."""
        self.prepared, self._first = prepared, None
        self.forget_step()
        self.forget_checks()

    def forget_step(self) -> None:
        """Discard the delayed time step, because fields were set. The next run computes it again."""
        self.fields.values.pop(NEXT_STEP, None)

    def forget_earlier_steps(self) -> None:
        """Discard all values from earlier steps, because the time and the step were set."""
        self.forget_step()
        self.last_run, self.last_share = (0, 0.0), None
        self.fields.values.pop("dt", None)  # no step has been run
        self.forget_time_steps()
        self.forget_checks()

    def forget_time_steps(self) -> None:
        """Restart the count of steps of constant length, because the time or the time step was set."""
        for name in STATE:
            self.fields.values.pop(name, None)

    def forget_checks(self) -> None:
        """Reset the interval between checks for non-finite values."""
        self._kept_for: Any = None  # end time and parameters at the last copy for a replay
        self._due = FIRST_CHECK  # number of steps between two checks
        # number of steps since the last check, their duration, and the duration of the last check, in seconds
        self._since, self._took, self._checking = 0, 0.0, 0.0

    def release(self) -> None:
        """Free the engines of the program. The next run creates new engines."""
        for prepared in (self.prepared, self._first):
            if prepared is not None:
                prepared.release()

    def forget_copy(self) -> None:
        """Require a new copy for the replay before the next step, because subdomains have moved."""
        self._kept_for = None

    # --- running ---

    def advance(
        self,
        until: float,
        pause: float,
        last: float,
        on_progress: Callable[[int], None] | None = None,
    ) -> Outcome:
        """Run to a time or a step, with checks for non-finite values.

        Parameters
        ----------
        until : float
            Final time; the last step is shortened to end at this time.
        pause : float
            With a varying time step, no step begins at or after this time. `pause` is at most `until`.
        last : float
            Number of completed steps at which the run ends at the latest.
        on_progress : callable, optional
            Function of the number of completed steps, called from another thread a few times per second.

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
            steps = min(last - before, self.steps_until_check(until))
            inputs = self.inputs(until, pause, steps)
            report = None if on_progress is None else partial(_report, on_progress, before)
            outcome = self.store_outcome(inputs, self.prepared.run(inputs, report))
            total = outcome if total is None else total.followed_by(outcome)
            self.check(before, outcome)
            ended = outcome.reason != "completed" or outcome.loops[0] == "condition"
            is_over = ended or self.step >= last or self.clock.has_reached(until)
        assert total is not None
        return total

    def inputs(self, until: float, pause: float, steps: float) -> dict[str, float]:
        """Return the values of all scalars at the start of a run; see `advance`."""
        self._began = self.clock
        return {**self.fields.values, **self._began.scalars_for(until, pause, steps)}

    def store_outcome(self, inputs: Mapping[str, float], outcome: Outcome) -> Outcome:
        """Store the scalars and output rows of a run that began with `inputs`, and return its outcome.

        Raises
        ------
        KeyboardInterrupt
            The process received SIGINT or SIGTERM.
        """
        values, until = self.fields.values, inputs["until"]
        for name in (*TIME_SCALARS, NEXT_STEP, *self.stepping.carried_scalars):
            if name in outcome.scalars:
                values[name] = outcome.scalars[name]
        values.update(self._began.state({**inputs, **outcome.scalars}))
        if values["t"] < until < math.inf and self.clock.has_reached(until):
            values["t"] = until  # t differs from `until` only by rounding of a varying time step
        if self.keep_rows is not None:
            history = outcome.history  # array (steps, columns)
            if len(history) and history[-1, 1] == values["step"]:
                history[-1, 0] = values["t"]
            self.keep_rows(history)
            outcome = replace(outcome, history=history[:0, :0])
        if outcome.reason == "interrupted":
            raise interruption()
        return outcome

    def _begin_delayed(self) -> None:
        """Compute the delayed time step before the first step, and after changes of fields or parameters."""
        values, parameters = self.fields.values, dict(self.fields.parameters)
        if self.stepping.first is None or (NEXT_STEP in values and parameters == self.ran_with):
            return
        if self._first is None:
            self._first = prepare(self.fields.store, self.stepping.first, ("dt", *values))
        scalars = self._first.run({"dt": 0.0, **values}).scalars
        values[NEXT_STEP], self.ran_with = scalars[NEXT_STEP], parameters

    # --- checks for finite values ---

    def steps_until_check(self, until: float) -> float:
        """Return the number of steps until the next check.

        If the last interval is complete, or if the end time or a parameter has changed, the replay copies the
        state. A later search for the cause of a failure starts at this state.
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
            limit = int(seconds * self._since / max(self._took, 1e-9))
            self._due = max(FIRST_CHECK, min(2 * self._due, limit))
        self._kept_for, self._since, self._took = purpose, 0, 0.0
        return self._due

    def check(self, before: int, outcome: Outcome) -> None:
        """Raise RunError if non-finite values or an invalid time step have occurred since step `before`."""
        began = perf_counter()
        try:
            self.check_after(before)
            if outcome.reason == BAD_STEP:
                dt = self.fields.values["dt"]
                is_short = 0.0 < dt < math.inf
                short = f"the time step {dt:g} is too short to change the time"
                reason = short if is_short else f"{BAD_STEP} but {dt:g}"
                raise RunError(f"{reason} after step {self.step} (time {self.time:g})")
        except RunError as error:
            raise self.explained(error) from None
        self._checking = perf_counter() - began
        self._since += self.step - before
        self._took += outcome.loop_seconds

    def check_after(self, before: int) -> None:
        """Raise RunError if a field has non-finite values. All fields were finite after step `before`."""
        when = f"after step {self.step} (time {self.time:g}), but was finite after step {before}"
        try:
            self.fields.check_all(when)
        except InputError as error:
            failure = RunError(f"{error}; a smaller time step may help")
            failure.place = error.place
            raise failure from None

    def explained(self, error: HaloclineError) -> HaloclineError:
        """Return the error, extended by its cause if the replay can determine the cause."""
        self.keep_rows = None  # The replay repeats steps whose rows are already stored.
        return error if self.replay is None else self.replay.explained(error)


def _report(on_progress: Callable[[int], None], before: int, done: int) -> None:
    on_progress(before + done)


def _prepare_stepping(fields: Fields, stepping: Stepping) -> Prepared:
    """Return the program of the steps, bound to the engine."""
    return prepare(fields.store, stepping.program, (*fields.values, *ENDLESS, "steps"))
