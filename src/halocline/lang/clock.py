"""Time of a run: program statements that advance the time, and the same arithmetic in Python.

With a constant time step, the time after a step is ``start + (step - first) * dt``, rounded once. The step at
which a time is reached is computed with rational numbers, without rounding. With a varying time step, the
time is a running sum. Each step sets the scalar `REACHED`, which then decides when a time is reached.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from halocline.lang.expression import where
from halocline.lang.program import Program, Scalar, internal_name

# A time is reached if less than this share of a step remains until this time. In runs of up to 1e9 steps,
# rounding errors are smaller than this share.
TOLERANCE = 1e-6
PARTS = 10**6  # 1 / TOLERANCE, exactly
# The last step is a full step if the remaining time is close to a full step. The maximum difference is this
# number of units in the last place of the time.
ROUNDING = 4
MOST_STEPS = 2**53  # Beyond this number, float64 does not represent every integer.

PAUSE = internal_name("pause")  # No step begins at or after this time.
CONSTANT_STEP = internal_name("dt_wanted")  # Constant time step.
NEXT_STEP = internal_name("dt_next")  # Length of the next step, for a delayed time step.
REACHED = internal_name("t_reached")  # Latest reached time, for a varying time step.
START = internal_name("t_start")  # Time from which steps of constant length are counted.
FIRST = internal_name("step_start")  # Number of completed steps at time `START`.
END = internal_name("step_end")  # Number of completed steps at time `until`.
LAST_STEP = internal_name("dt_last")  # Length of the step that ends at `until`.

# values of the scalars in a run without an end time
ENDLESS: Mapping[str, float] = {
    **dict.fromkeys(("until", PAUSE, END, LAST_STEP), math.inf),
    **dict.fromkeys((REACHED, START, FIRST), 0.0),
}
STATE = (START, FIRST, REACHED)  # scalars of `ENDLESS` that one step passes to the next


# -- statements ----------------------------------------------------------------------------------------------


def begin_step(program: Program, dt: Scalar, step: Scalar) -> Scalar:
    """Record the statements that set the length of a step, for a constant time step.

    Returns
    -------
    Scalar
        Time at the end of the step.
    """
    ends = step + 1.0 >= program.internal_scalar("step_end")
    constant_dt, until = program.internal_scalar("dt_wanted"), program.parameter("until")
    start, first, time = (
        program.internal_scalar("t_start"),
        program.internal_scalar("step_start"),
        program.internal_scalar("t_next"),
    )
    time.set(where(ends, until, start + (step + 1.0 - first) * constant_dt))
    # dt is assigned twice, as for a varying time step: the order of terms in formulas that contain dt
    # depends on the number of assignments.
    dt.set(constant_dt)
    dt.set(where(ends, program.internal_scalar("dt_last"), dt))
    return time


def shorten_step(program: Program, t: Scalar, dt: Scalar, full_step: Scalar) -> Scalar:
    """Record the statements that set the length of a step, so that it ends at `until` or before.

    The last step ends exactly at `until`, so that rounding errors do not cause an additional, very short
    step.

    Parameters
    ----------
    t, dt : Scalar
        Time and length of the step.
    full_step : Scalar
        Length of a step that is not shortened; it may be `dt`.

    Returns
    -------
    Scalar
        Time at the end of the step.
    """
    until, time = program.parameter("until"), program.internal_scalar("t_next")
    remaining = until - t
    time.set(where(remaining < full_step * (1.0 + TOLERANCE), until, t + full_step))
    dt.set(where(time >= until, remaining, full_step))
    return time


def reach(reached: Scalar, before: Scalar, after: Scalar) -> None:
    """Record the statement that sets the reached time from the times before and after a step."""
    reached.set(after + TOLERANCE * (after - before))


# -- the same arithmetic in Python ---------------------------------------------------------------------------


class Limits(NamedTuple):
    """Bounds of a run.

    Attributes
    ----------
    until : float
        End time of the last step.
    pause : float
        Time at or after which no step begins.
    last : float
        Maximum number of steps.
    """

    until: float = math.inf
    pause: float = math.inf
    last: float = math.inf

    def within(self, other: Limits) -> Limits:
        """Return the bounds that consist of the smaller value of each attribute."""
        return Limits(*map(min, self, other))


@dataclass(frozen=True)
class ConstantStepClock:
    """Clock of a run with a constant time step.

    Parameters
    ----------
    time : float
    step : int
    dt : float
        Time step.
    start : float
        Time from which steps of length `dt` are counted.
    first : int
        Number of completed steps at time `start`.
    """

    time: float
    step: int
    dt: float
    start: float
    first: int

    def step_at(self, time: float) -> float:
        """Return the number of the first step that reaches a time; inf beyond `MOST_STEPS`."""
        return _step_at(time, self.start, self.first, self.dt)

    def has_reached(self, time: float) -> bool:
        """Return True if a time is reached: no further step begins before this time."""
        return self.step_at(time) <= self.step

    def next_multiple(self, interval: float) -> float:
        """Return the first multiple of `interval` that the time has not reached."""
        reached = _exact_after(self.step - self.first, self.start, self.dt) + Fraction(self.dt) / PARTS
        return _next_multiple(reached, interval)

    def limits(self, time: float) -> Limits:
        """Return the bounds of a run that ends with the first step that reaches a time."""
        return Limits(last=self.step_at(time))

    def shortest_step(self, until: float) -> float:
        """Return the minimum length of a step that changes the time, for times up to `until`."""
        return max(TOLERANCE * self.dt, _resolution(self.time, until))

    def scalars_for(self, until: float, pause: float, steps: float) -> dict[str, float]:
        """Return the values of scalars for a run of the program.

        Parameters
        ----------
        until : float
            End time of the last step.
        pause : float
            Time at or after which no step begins, for a varying time step.
        steps : float
            Maximum number of steps.
        """
        end, last_step = self.step_at(until), self.dt
        if math.isfinite(end):
            last_step = _last_step(until, self.start, int(end) - self.first, self.dt)
        return {
            "until": until,
            END: float(end),
            LAST_STEP: last_step,
            START: self.start,
            FIRST: float(self.first),
            "steps": max(min(steps, end - self.step), 0.0),
        }

    def state(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the values of `START` and `FIRST` after a run.

        After a shortened step, steps are counted from the end of this step.

        Parameters
        ----------
        values : mapping of str to float
            Scalars that `scalars_for` returned, with their values after the run.
        """
        step = values["step"]
        if step >= values[END] and step > self.step and values[LAST_STEP] != self.dt:
            return {START: values["t"], FIRST: step}
        return {START: self.start, FIRST: float(self.first)}


@dataclass(frozen=True)
class VaryingStepClock:
    """Clock of a run with a varying time step, or without a time step.

    Parameters
    ----------
    time : float
    step : int
    reached : float
        Latest reached time.
    """

    time: float
    step: int
    reached: float

    def has_reached(self, time: float) -> bool:
        """Return True if a time is reached. The program makes the same comparison."""
        return self.reached >= time

    def next_multiple(self, interval: float) -> float:
        """Return the first multiple of `interval` that the time has not reached."""
        if math.isinf(self.reached):
            return self.reached
        return _next_multiple(Fraction(self.reached), interval)

    def limits(self, time: float) -> Limits:
        """Return the bounds of a run that pauses after the first step that reaches a time."""
        return Limits(pause=time)

    def shortest_step(self, until: float) -> float:
        """Return the minimum length of a step; see `ConstantStepClock`."""
        return _resolution(self.time, until)

    def scalars_for(self, until: float, pause: float, steps: float) -> dict[str, float]:
        """Return the values of scalars for a run of the program; see `ConstantStepClock`."""
        return {"until": until, PAUSE: min(pause, until), REACHED: self.reached, "steps": steps}

    def state(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the value of `REACHED` after a run."""
        return {REACHED: values.get(REACHED, self.reached)}


Clock: TypeAlias = ConstantStepClock | VaryingStepClock


def clock_of(values: Mapping[str, float]) -> Clock:
    """Return the clock of a state.

    A state lacks the scalars of `STATE` if it is new or if its time or time step was set. The clock of such a
    state counts steps from the time of the state.

    Parameters
    ----------
    values : mapping of str to float
        Scalars of the state, including "t" and "step".
    """
    time, step = values["t"], int(values["step"])
    if CONSTANT_STEP not in values:
        reached = values.get(REACHED, time + TOLERANCE * values.get("dt", 0.0))
        return VaryingStepClock(time, step, reached)
    start, first = values.get(START, time), int(values.get(FIRST, step))
    return ConstantStepClock(time, step, values[CONSTANT_STEP], start, first)


@lru_cache(maxsize=64)  # each event of a run asks for the steps at the same times
def _step_at(time: float, start: float, first: int, dt: float) -> float:
    """Return the number of the first step that reaches a time; inf beyond `MOST_STEPS`."""
    if math.isinf(time):
        return time
    # first + ceil((time - start) / dt - 1 / PARTS), as ratios of integers, which are faster than Fraction
    (a, b), (c, d), (e, f) = (number.as_integer_ratio() for number in (time, start, dt))
    denominator = b * d * e
    step = first - (denominator - (a * d - c * b) * f * PARTS) // (denominator * PARTS)
    if abs(step) > MOST_STEPS:
        return math.inf if step > 0 else -math.inf
    return step


def _exact_after(steps: int, start: float, dt: float) -> Fraction:
    return Fraction(start) + steps * Fraction(dt)


def _as_float(number: Fraction) -> float:
    """Return the nearest float64; inf or -inf beyond its range."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


@lru_cache(maxsize=64)
def _last_step(until: float, start: float, steps: int, dt: float) -> float:
    """Return the length of the last of `steps` steps that begin at `start` and end at `until`."""
    before = _exact_after(steps - 1, start, dt)
    length = Fraction(until) - before
    rounding = Fraction(ROUNDING * math.ulp(max(abs(until), abs(start))))
    if abs(length - Fraction(dt)) <= rounding:
        return dt
    remaining = until - _as_float(before)  # in float64, the time before the step plus this length is `until`
    if remaining > 0.0:
        return min(remaining, sys.float_info.max)  # the difference of two finite times may be infinite
    return float(length)


def _next_multiple(reached: Fraction, interval: float) -> float:
    """Return the first multiple of an interval beyond the reached time.

    If the interval is below the resolution of float64, return the next larger number of float64.
    """
    count = reached // Fraction(interval) + 1
    for multiple in (count, count + 1):  # the first multiple may be rounded to the reached time
        time = _as_float(multiple * Fraction(interval))
        if time > reached:
            return time
    time = _as_float(reached)
    return time if time > reached else math.nextafter(time, math.inf)


def _resolution(time: float, until: float) -> float:
    """Return the minimum length of a step, which is above the rounding errors of times up to `until`."""
    return 2.0 * ROUNDING * math.ulp(max(abs(time), abs(until) if math.isfinite(until) else 0.0))
