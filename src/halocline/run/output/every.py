"""Intervals of recurring events in a run: steps, simulated time, or wall-clock time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from halocline.errors import InputError
from halocline.lang.axes import whole_number
from halocline.lang.values import plain
from halocline.ranges import SOME_STEPS
from halocline.run.host.streams import say_once
from halocline.words import short_repr

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_STEPS = re.compile(r"\s*([0-9]{1,40})\s*steps?\s*")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d)")


def wall_clock(name: str, text: str, alternative: str = "") -> float:
    """Return the number of seconds for a text such as "30 min" or "11 h 50 min".

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    text : str
    alternative : str
        Other accepted values of the argument, for messages.

    Raises
    ------
    InputError
        The text is not a wall-clock time.
    """
    if not isinstance(text, str):
        raise InputError(f'{name} is {short_repr(text)}; expected a text such as "30 min" (s, min, h, d)')
    parts = _PART.findall(text)
    is_complete = "".join(number + unit for number, unit in parts) == "".join(text.split())
    seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
    if not (parts and is_complete and 0 < seconds < math.inf):
        raise InputError(
            f'{name} is {short_repr(text)}; expected a time such as "30 min" or "1 h 30 min" (s, min, h, d)'
            + alternative
        )
    return seconds


@dataclass(frozen=True, repr=False)
class Every:
    """Interval in steps, simulated time or wall-clock time. At most one of the attributes is set.

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

    @property
    def text(self) -> str:
        """Interval in the notation of command options: "5 steps", "0.5" or "30 s"."""
        if self.steps is not None:
            return f"{self.steps} steps"
        return repr(self.time) if self.seconds is None else f"{self.seconds:g} s"

    def __repr__(self) -> str:
        if self.steps is not None:
            return f"hc.steps({self.steps})"
        return repr(self.time) if self.seconds is None else f"'{self.seconds:g} s'"

    @classmethod
    def parse(cls, name: str, value: object) -> Every:
        """Return the interval for a value from the user.

        Parameters
        ----------
        name : str
            Name of the argument, for messages.
        value : Every, float, str or int
            A float is simulated time. A text is a number of steps, "5 steps", or wall-clock time, "30 min".
            An integer is a number of steps; see `warn_of_number`. NumPy scalars are treated as Python
            numbers.

        Raises
        ------
        InputError
            The value is not an accepted interval.
        """
        if isinstance(value, Every):
            return value
        value = plain(value)
        if isinstance(value, str):
            match = _STEPS.fullmatch(value)
            if match is None:
                return cls(seconds=wall_clock(name, value, ', or a number of steps such as "5 steps"'))
            count: int | None = int(match[1])
        else:
            count = whole_number(value)
        if count is not None and SOME_STEPS.least <= count <= SOME_STEPS.most:
            return cls(steps=count)
        if isinstance(value, float) and 0 < value < math.inf:
            return cls(time=value)
        raise InputError(
            f"{name} is {short_repr(value)}; expected a positive time such as 0.5, a number of steps such as "
            'hc.steps(50) or "50 steps", or a wall-clock time such as "30 min" (s, min, h, d)'
        )


def steps(count: int) -> Every:
    """Return an interval of `count` steps, for any argument named ``every``.

    Parameters
    ----------
    count : int
        Number of steps, at least 1; for a linear problem, number of iterations.

    Raises
    ------
    InputError
        The number is not a positive integer.

    Examples
    --------
    >>> import halocline as hc
    >>> output = hc.Output("heat.zarr", every=hc.steps(5))  # or every="5 steps"
    """
    return Every(steps=SOME_STEPS.check("steps", count))


def warn_of_number(value: object) -> None:
    """Warn once per process if an interval is an integer."""
    if whole_number(value) is not None:
        say_once(
            "an integer interval such as 5 counts steps, but 5.0 is simulated time. Write "
            'hc.steps(5) or "5 steps". A later release rejects integers.'
        )
