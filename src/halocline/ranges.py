"""Valid ranges of integer options, for the command and for Python.

A number that is too large for any machine or problem is rejected at input, before memory or time is spent.
The code that uses the number checks later if the actual machine has the required capacity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import index

from halocline.errors import InputError
from halocline.words import short_repr


@dataclass(frozen=True)
class Range:
    """Integers from `least` to `most`.

    Parameters
    ----------
    least, most : int
        Inclusive bounds.
    """

    least: int
    most: int

    def __str__(self) -> str:
        return f"a whole number from {self.least:,} to {self.most:,}"

    def check(self, name: str, value: object) -> int:
        """Return `value` as an int.

        Raises
        ------
        InputError
            The value is not an integer, or is out of range. The message begins with `name`.
        """
        try:
            number = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
        except TypeError:
            number = None
        if number is None or not self.least <= number <= self.most:
            raise InputError(f"{name} is {short_repr(value)}; expected {self}")
        return number


COUNTABLE = 2**53  # scalars are float64, which represents all integers up to this one

AXES = Range(1, 3)  # number of axes of a grid
POINTS = Range(1, 2**31 - 2**16)  # points or cells along an axis; kernels use 32-bit indices, also for halos
FIELDS = Range(1, 1024)  # number of fields in a benchmark; programs have no limit
RADIUS = Range(1, 64)  # halo layers
ORDER = Range(2, 64)  # order of accuracy of differences
STEPS = Range(0, COUNTABLE)  # steps or iterations
SOME_STEPS = Range(1, COUNTABLE)  # for commands that need at least one step
REPEATS = Range(1, 1_000_000)  # per measurement

RANKS = Range(1, 10_000_000)
RANK = Range(0, RANKS.most - 1)  # index of a rank
RANKS_PER_NODE = Range(1, 65_536)
NODES = Range(1, 1_000_000)
MODELLED_RANKS = Range(1, 1_000_000)  # limited, because the model executes the plan of each rank
THREADS = Range(1, 4096)  # per rank
SUBDOMAINS = Range(1, 4096)  # per rank or device
MAILBOXES = Range(1, 256)  # per message
CHECKPOINTS = Range(1, 10_000)  # retained on disk
IO_RANKS = Range(0, 65_536)
IO_THREADS = Range(1, 256)  # writer threads per rank
PATCHES = Range(1, 20_000_000)  # per subdomain: each patch has a row in a table


def whole_numbers(text: str, option: str, numbers: Range) -> list[int]:
    """Return the integers of a list such as "256,512", each within a range.

    Raises
    ------
    InputError
        An entry is not an integer, is out of range, or is repeated. The message names the option.
    """
    numbers_read = []
    for part in map(str.strip, text.split(",")):
        if not is_whole(part):
            raise InputError(
                f"{option} {text}: {part!r} is not a whole number; expected a list such as 1,2,4"
            )
        numbers_read.append(numbers.check(f"{option} {text}: a number", int(part)))
    for number in numbers_read:
        if numbers_read.count(number) > 1:
            raise InputError(f"{option} {text}: {number} is given twice. Leave one out.")
    return numbers_read


def is_whole(text: str) -> bool:
    """Return True if a text is an integer of at most 40 digits."""
    return re.fullmatch(r"[+-]?[0-9]{1,40}", text.strip()) is not None
