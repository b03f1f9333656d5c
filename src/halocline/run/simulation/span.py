"""How far a run goes, and how often it calls its user on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass

from halocline.errors import InputError
from halocline.lang.values import as_quantity
from halocline.ranges import STEPS
from halocline.run.output.every import Every
from halocline.words import shown


@dataclass(frozen=True)
class Span:
    """What a run is to do.

    Attributes
    ----------
    until : float
        The time to reach; inf where only steps count.
    steps : float
        The greatest number of steps; inf where only the time counts.
    often : Every or None
        How often the user is called.
    """

    until: float
    steps: float
    often: Every | None


def finite_time(name: str, value: object) -> float:
    """Return a time as a float.

    Raises
    ------
    InputError
        The value is not a finite number.
    """
    time = as_quantity(value)
    if time is None or not math.isfinite(time):
        raise InputError(f"{name} is {shown(value)}; expected a finite time")
    return time


def span_of(
    until: float | None,
    steps: int | None,
    every: Every | float | str | None,
    *,
    exact: bool,
    called: bool,
    timed: bool,
) -> Span:
    """What the arguments of `Simulation.run` ask for.

    Parameters
    ----------
    called : bool
        Whether there is a callback.
    timed : bool
        Whether the program advances in time, and not in steps alone.

    Raises
    ------
    InputError
        They do not fit each other, or the program.
    """
    if until is not None:
        until = finite_time("until", until)
    if steps is not None:
        STEPS.check("steps", steps)
    often = None if every is None else Every.parse("every", every)
    if often is not None and not called:
        raise InputError(f"every is {shown(every)}, but there is no callback to call so often")
    if exact and (often is None or often.time is None):
        raise InputError(
            f"exact=True shortens steps to meet times, but every is {shown(every)}; give a time (a float)"
        )
    if not timed and (until is not None or (often is not None and often.time is not None)):
        raise InputError(
            f"{'every' if until is None else 'until'} is given, but this program has no time: give dt=, "
            "let it set t, or run a number of steps"
        )
    if until is None and steps is None:
        if every is not None:
            raise InputError("every is given without an end: give until or steps too")
        steps = 1
    return Span(math.inf if until is None else until, math.inf if steps is None else steps, often)
