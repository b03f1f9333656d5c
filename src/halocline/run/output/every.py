"""How often something happens in a run: after steps, simulated time, or wall-clock time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from operator import index

from halocline.errors import InputError
from halocline.lang.values import plain

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d)")


def wall_clock(name: str, text: str) -> float:
    """Seconds of a text such as "30 min" or "11 h 50 min"; `name` is what the user calls it.

    Raises
    ------
    InputError
        It is none.
    """
    if not isinstance(text, str):
        raise InputError(f'{name} is {text!r}; expected a text such as "30 min" (s, min, h, d)')
    parts = _PART.findall(text)
    whole = "".join(number + unit for number, unit in parts) == "".join(text.split())
    seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
    if not (parts and whole and 0 < seconds < math.inf):
        raise InputError(
            f'{name} is {text!r}; expected a time such as "30 min" or "1 h 30 min" (s, min, h, d)'
        )
    return seconds


@dataclass(frozen=True)
class Every:
    """An interval; one of the three is given.

    Attributes
    ----------
    steps : int or None
    time : float or None
        Simulated time.
    seconds : float or None
        Wall-clock time.
    """

    steps: int | None = None
    time: float | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, name: str, given: object) -> Every:
        """The interval that a user gives: a float is simulated time, an int a number of steps, a text such as
        "30 min" wall-clock time. Scalars of NumPy count as the Python numbers of the same value.

        Raises
        ------
        InputError
            It is none of these; `name` is what the user calls it.
        """
        given = plain(given)
        if isinstance(given, str):
            return cls(seconds=wall_clock(name, given))
        if isinstance(given, float):
            if 0 < given < math.inf:
                return cls(time=given)
        elif hasattr(given, "__index__") and not isinstance(given, bool) and index(given) > 0:
            return cls(steps=index(given))
        raise InputError(
            f"{name} is {given!r}; expected a positive time such as 0.5, a number of steps such as 50, or a "
            'wall-clock time such as "30 min" (s, min, h, d)'
        )
