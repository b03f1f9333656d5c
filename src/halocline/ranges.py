"""What numbers mean something: the range of each option, for the command and for Python alike.

A number beyond what any machine has, or any problem needs, is refused where it is given, before memory is
taken or time is spent; how much of it a machine can really hold is checked by what uses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import index

from halocline.errors import InputError
from halocline.words import shown


@dataclass(frozen=True)
class Range:
    """Whole numbers from `least` to `most`.

    Parameters
    ----------
    least, most : int
    """

    least: int
    most: int

    def __str__(self) -> str:
        return f"a whole number from {self.least:,} to {self.most:,}"

    def check(self, name: str, value: object) -> int:
        """`value` as an int.

        Raises
        ------
        InputError
            It is no whole number, or out of the range; `name` says what it is.
        """
        try:
            number = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
        except TypeError:
            number = None
        if number is None or not self.least <= number <= self.most:
            raise InputError(f"{name} is {shown(value)}; expected {self}")
        return number


COUNTABLE = 2**53  # scalars are float64, which hold every whole number up to this one

AXES = Range(1, 3)  # of a grid
POINTS = Range(1, 2**31 - 2**16)  # or cells along an axis: kernels number them by 32 bits, halos included
FIELDS = Range(1, 1024)  # of a benchmark; programs have no limit
RADIUS = Range(1, 64)  # layers of halo
ORDER = Range(2, 64)  # of accuracy, of differences
STEPS = Range(0, COUNTABLE)  # or iterations
SOME_STEPS = Range(1, COUNTABLE)  # where none would be no result
REPEATS = Range(1, 1_000_000)  # of a measurement

RANKS = Range(1, 10_000_000)
RANK = Range(0, RANKS.most - 1)  # which of them
RANKS_PER_NODE = Range(1, 65_536)
NODES = Range(1, 1_000_000)
MODELLED_RANKS = Range(1, 1_000_000)  # each of them is executed by the model
THREADS = Range(1, 4096)  # of a rank
SUBDOMAINS = Range(1, 4096)  # of a rank or device
MAILBOXES = Range(1, 256)  # of a message
CHECKPOINTS = Range(1, 10_000)  # that remain
IO_RANKS = Range(0, 65_536)
IO_THREADS = Range(1, 256)  # of a rank, that write
PATCHES = Range(1, 20_000_000)  # of a rank: each has a row in a table


def whole_numbers(text: str, option: str, numbers: Range) -> list[int]:
    """The numbers of a list such as "256,512", each in a range; InputError names the option and what is
    wrong."""
    found = []
    for part in map(str.strip, text.split(",")):
        if not is_whole(part):
            raise InputError(f"{option} {text}: {part!r} is no whole number; expected a list such as 1,2,4")
        found.append(numbers.check(f"{option} {text}: a number", int(part)))
    for number in found:
        if found.count(number) > 1:
            raise InputError(f"{option} {text}: {number} is given twice; leave one out")
    return found


def is_whole(text: str) -> bool:
    """Whether a word is a whole number, of no more digits than anybody means."""
    return re.fullmatch(r"[+-]?[0-9]{1,40}", text.strip()) is not None
