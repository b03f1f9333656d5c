"""Time of a run: the statements that advance it, and the same arithmetic for ends and intervals.

Where the time step is a number, the time after a step is ``start + (step - first) * dt``, rounded once. One
integer decides when a time is reached: the number of the step, computed with rational numbers. Where the
time step varies, the time is a running sum. One scalar that each step leaves decides then: `REACHED`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol

from halocline.lang.functions import where
from halocline.lang.program import Program, Scalar, own_name

# A time counts as reached where less than this share of a step is left. Rounding is less, for 1e9 steps too.
TOLERANCE = 1e-6
PARTS = 10**6  # 1 / TOLERANCE, exactly
# The last step is not shortened by fewer units in the last place of the time than this.
ROUNDING = 4
MOST_STEPS = 2**53  # Beyond it, float64 does not represent every number of steps.

PAUSE = own_name("pause")  # time from which on no step begins
WANTED_STEP = own_name("dt_wanted")  # time step, where it is a number
NEXT_STEP = own_name("dt_next")  # time step of the next step, where it is delayed
REACHED = own_name("t_reached")  # time that counts as reached, where the time step varies
START = own_name("t_start")  # time from which steps of one length are counted
FIRST = own_name("step_start")  # number of the step at that time
END = own_name("step_end")  # number of the step that ends at `until`
LAST_STEP = own_name("dt_last")  # length of the step that ends at `until`

# values of the scalars of a program whose steps do not lead to an end
ENDLESS: Mapping[str, float] = {
    **dict.fromkeys(("until", PAUSE, END, LAST_STEP), math.inf),
    **dict.fromkeys((REACHED, START, FIRST), 0.0),
}
STATE = (START, FIRST, REACHED)  # of `ENDLESS`, those that one step leaves for the next


# -- statements ----------------------------------------------------------------------------------------------


def begin_step(program: Program, dt: Scalar, step: Scalar) -> Scalar:
    """Record the length of a step, where the time step is a number.

    Returns
    -------
    Scalar
        Time at the end of the step.
    """
    ends = step + 1.0 >= program.own("step_end")
    wanted, until = program.own("dt_wanted"), program.parameter("until")
    start, first, time = program.own("t_start"), program.own("step_start"), program.own("t_next")
    time.set(where(ends, until, start + (step + 1.0 - first) * wanted))
    # twice, as a time step that varies: the order of terms depends on the number of assignments
    dt.set(wanted)
    dt.set(where(ends, program.own("dt_last"), dt))
    return time


def shorten_step(program: Program, t: Scalar, dt: Scalar, wanted: Scalar) -> Scalar:
    """Record the length of a step that ends at `until` at the latest.

    The last step ends there exactly: rounding of the time leaves no further, very short one.

    Parameters
    ----------
    t, dt : Scalar
        Time and length of the step.
    wanted : Scalar
        Length of a step that is not shortened; it may be `dt`.

    Returns
    -------
    Scalar
        Time at the end of the step.
    """
    until, time = program.parameter("until"), program.own("t_next")
    left = until - t
    time.set(where(left < wanted * (1.0 + TOLERANCE), until, t + wanted))
    dt.set(where(time >= until, left, wanted))
    return time


def reach(reached: Scalar, before: Scalar, after: Scalar) -> None:
    """Record the time that counts as reached, from the times at the start and the end of a step."""
    reached.set(after + TOLERANCE * (after - before))


# -- the same arithmetic in Python ---------------------------------------------------------------------------


class Limits(NamedTuple):
    """Bounds of a run.

    Attributes
    ----------
    until : float
        Time that the last step ends at.
    pause : float
        Time from which on no step begins.
    last : float
        Number of steps that is not exceeded.
    """

    until: float = math.inf
    pause: float = math.inf
    last: float = math.inf

    def within(self, other: Limits) -> Limits:
        """Return the narrower bounds of both."""
        return Limits(*map(min, self, other))


class Clock(Protocol):
    """Time and step of a run.

    Attributes
    ----------
    time : float
    step : int
    """

    @property
    def time(self) -> float:
        """Simulated time."""

    @property
    def step(self) -> int:
        """Number of steps done."""

    def has_reached(self, time: float) -> bool:
        """Return whether a time is reached: no step begins before it."""

    def next_multiple(self, interval: float) -> float:
        """Return the first multiple of an interval that is not reached."""

    def limits(self, time: float) -> Limits:
        """Return the bounds of a run that pauses after the first step that reaches a time."""

    def shortest_step(self, until: float) -> float:
        """Return the length below which steps up to a time are too short to change the time."""

    def scalars_for(self, until: float, pause: float, steps: float) -> dict[str, float]:
        """Return the values of scalars for a run of the program.

        Parameters
        ----------
        until : float
            Time that the last step ends at.
        pause : float
            Time from which on no step begins, where the time step varies.
        steps : float
            Greatest number of steps.
        """

    def state(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the scalars of `STATE` after a run.

        `values` are those that `scalars_for` returned and the run left.
        """


@dataclass(frozen=True)
class ConstantStepClock:
    """Clock of a run whose time step is a number.

    Parameters
    ----------
    time : float
    step : int
    dt : float
        Time step.
    start : float
        Time from which steps of this length are counted.
    first : int
        Number of the step at that time.
    """

    time: float
    step: int
    dt: float
    start: float
    first: int

    def time_at(self, step: int) -> float:
        """Return the time after a step that is not shortened, as the program computes it."""
        return _time_after(step - self.first, self.start, self.dt)

    def step_at(self, time: float) -> float:
        """Return the number of the first step that reaches a time; inf beyond `MOST_STEPS`."""
        return _step_at(time, self.start, self.first, self.dt)

    def has_reached(self, time: float) -> bool:
        """Return whether a time is reached; see `Clock`."""
        return self.step_at(time) <= self.step

    def next_multiple(self, interval: float) -> float:
        """Return the first multiple of an interval that is not reached."""
        (c, d), (e, f) = (number.as_integer_ratio() for number in (self.start, self.dt))
        steps = (self.step - self.first) * PARTS + 1
        return _next_multiple(c * f * PARTS + steps * e * d, d * f * PARTS, interval)

    def limits(self, time: float) -> Limits:
        """Return the bounds of a run up to the step that reaches a time."""
        return Limits(last=self.step_at(time))

    def shortest_step(self, until: float) -> float:
        """Return the length below which steps are too short; see `Clock`."""
        return max(TOLERANCE * self.dt, _resolution(self.time, until))

    def scalars_for(self, until: float, pause: float, steps: float) -> dict[str, float]:
        """Return the values of scalars for a run of the program; see `Clock`."""
        end = self.step_at(until)
        return {
            "until": until,
            END: float(end),
            LAST_STEP: self.dt if math.isinf(end) else self._last_step(until, int(end)),
            START: self.start,
            FIRST: float(self.first),
            "steps": max(min(steps, end - self.step), 0.0),
        }

    def _last_step(self, until: float, end: int) -> float:
        return _last_step(until, self.start, end - self.first, self.dt)

    def state(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return `START` and `FIRST` after a run; steps are counted anew from a shortened step on."""
        step = values["step"]
        if step >= values[END] and step > self.step and values[LAST_STEP] != self.dt:
            return {START: values["t"], FIRST: step}
        return {START: self.start, FIRST: float(self.first)}


@dataclass(frozen=True)
class VaryingStepClock:
    """Clock of a run whose time step varies, or of one that has none.

    Parameters
    ----------
    time : float
    step : int
    reached : float
        Time that counts as reached.
    """

    time: float
    step: int
    reached: float

    def has_reached(self, time: float) -> bool:
        """Return whether a time is reached; the program compares the same numbers."""
        return self.reached >= time

    def next_multiple(self, interval: float) -> float:
        """Return the first multiple of an interval that is not reached."""
        if math.isinf(self.reached):
            return self.reached
        return _next_multiple(*self.reached.as_integer_ratio(), interval)

    def limits(self, time: float) -> Limits:
        """Return the bounds of a run that pauses after the first step that reaches a time."""
        return Limits(pause=time)

    def shortest_step(self, until: float) -> float:
        """Return the length below which steps are too short; see `Clock`."""
        return _resolution(self.time, until)

    def scalars_for(self, until: float, pause: float, steps: float) -> dict[str, float]:
        """Return the values of scalars for a run of the program; see `Clock`."""
        return {"until": until, PAUSE: min(pause, until), REACHED: self.reached, "steps": steps}

    def state(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return `REACHED` after a run."""
        return {REACHED: values.get(REACHED, self.reached)}


def clock_of(values: Mapping[str, float]) -> ConstantStepClock | VaryingStepClock:
    """Return the clock of a state.

    A state without the scalars of `STATE` counts from its own time on: it is new, or its time or time step
    was set.

    Parameters
    ----------
    values : mapping of str to float
        Scalars of the state, "t" and "step" among them.
    """
    time, step = values["t"], int(values["step"])
    if WANTED_STEP not in values:
        before = values.get(REACHED, time + TOLERANCE * values.get("dt", 0.0))
        return VaryingStepClock(time, step, before)
    start, first = values.get(START, time), int(values.get(FIRST, step))
    return ConstantStepClock(time, step, values[WANTED_STEP], start, first)


@lru_cache(maxsize=64)  # a run asks for the same times at every event
def _step_at(time: float, start: float, first: int, dt: float) -> float:
    """Return the number of the first step that reaches a time; infinite beyond `MOST_STEPS`."""
    if math.isinf(time):
        return time
    # ceil((time - start) / dt - 1 / PARTS) of ratios of whole numbers, which is faster than Fraction
    (a, b), (c, d), (e, f) = (number.as_integer_ratio() for number in (time, start, dt))
    whole = b * d * e
    step = first - (whole - (a * d - c * b) * f * PARTS) // (whole * PARTS)
    if abs(step) > MOST_STEPS:
        return math.inf if step > 0 else -math.inf
    return step


def _exact_after(steps: int, start: float, dt: float) -> Fraction:
    return Fraction(start) + steps * Fraction(dt)


def _time_after(steps: int, start: float, dt: float) -> float:
    """Return the time after steps of one length, rounded once; infinite where float64 ends."""
    exact = _exact_after(steps, start, dt)
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@lru_cache(maxsize=64)
def _last_step(until: float, start: float, steps: int, dt: float) -> float:
    """Return the length of the step that ends at `until`, the last of so many from `start` on."""
    length = Fraction(until) - _exact_after(steps - 1, start, dt)
    rounding = Fraction(ROUNDING * math.ulp(max(abs(until), abs(start))))
    if abs(length - Fraction(dt)) <= rounding:
        return dt
    left = until - _time_after(steps - 1, start, dt)  # the time before the step plus `left` is `until`
    if left > 0.0:
        return min(left, sys.float_info.max)  # the difference of two finite times may be infinite
    return float(length)


def _next_multiple(numerator: int, denominator: int, interval: float) -> float:
    """Return the first multiple of an interval that is greater than a ratio, the time that is reached.

    Where the interval is too short for the difference to show, it is the next greater number.
    """
    a, b = interval.as_integer_ratio()
    count = numerator * b // (denominator * a) + 1
    for multiple in (count, count + 1):  # the first may be rounded down to what is reached
        try:
            time = multiple * a / b
        except OverflowError:
            return math.inf
        if _is_greater(time, numerator, denominator):
            return time
    try:
        time = numerator / denominator
    except OverflowError:
        return math.inf
    return time if _is_greater(time, numerator, denominator) else math.nextafter(time, math.inf)


def _is_greater(number: float, numerator: int, denominator: int) -> bool:
    a, b = number.as_integer_ratio()
    return a * denominator > numerator * b


def _resolution(time: float, until: float) -> float:
    """Return the length of steps that rounding of the times up to `until` cannot hide."""
    return 2.0 * ROUNDING * math.ulp(max(abs(time), abs(until) if math.isfinite(until) else 0.0))
