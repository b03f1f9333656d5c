"""Whether computing and messages overlap: as a user asks, or as the first passes of a loop show.

Overlap wins where messages progress by themselves, and can lose where they do not: the cavity code of
Virginia Tech ran 20 to 30 % slower with it. So it is measured. Kernels change fields, and no copy of these is
made: what is measured are the program's own passes, some with overlap and some without, since no bit depends
on it.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from math import ceil

ROUNDS = 5  # pieces of a run with overlap, and as many without
LEAST = 2e-3  # seconds of a piece, if passes are short
MOST = 64  # passes of a piece


@dataclass(frozen=True)
class Overlap:
    """Whether patches that need no message run before all messages have come, and why.

    Attributes
    ----------
    on : bool
    why : str
    seconds_on, seconds_off : float or None
        Of a sweep with overlap and without, on the slowest rank; medians. None where that was not measured.
    """

    on: bool
    why: str
    seconds_on: float | None = None
    seconds_off: float | None = None

    def __str__(self) -> str:
        return f"{'on' if self.on else 'off'}, {self.why}"


class OverlapTrial:
    """The choice for one program, which may take several of its runs.

    All ranks see the same times, those of the slowest, so that they decide alike without a word.

    Parameters
    ----------
    asked : {"auto", True, False}
    needless : str
        Why nothing is measured where "auto" is asked for; empty where it is.

    Attributes
    ----------
    choice : Overlap
        What holds now.
    open : bool
        Whether it is still measured.
    """

    def __init__(self, asked: bool | str, needless: str = "") -> None:
        self.open = asked == "auto" and not needless
        self._passes = 0  # of a piece; 0 before the first one
        self._times: dict[bool, list[float]] = {True: [], False: []}
        if asked != "auto":
            self.choice = Overlap(bool(asked), "as asked for")
        else:
            self.choice = Overlap(True, needless or "not decided: the run was too short to measure it")

    def piece(self) -> tuple[bool, int]:
        """Return True where the next piece overlaps, and its passes, while the choice is still measured."""
        # there and back, so that neither always comes first
        return sum(map(len, self._times.values())) % 4 in (0, 3), self._passes or 1

    def note(self, seconds: float, sweeps: int) -> None:
        """Note the seconds of a piece on the slowest rank, and its sweeps."""
        if not self._passes:  # the first pass finds cold caches: it says how long about the others take
            self._passes = min(MOST, ceil(LEAST / max(seconds, LEAST / MOST)))
            return
        # loops within a pass may take more sweeps in one than in another
        self._times[self.piece()[0]].append(seconds / max(1, sweeps))
        if min(map(len, self._times.values())) < ROUNDS:
            return
        on, off = (statistics.median(self._times[kind]) for kind in (True, False))
        what = f"{1e3 * on:.3g} ms a sweep with it, {1e3 * off:.3g} ms without"
        self.choice = Overlap(on <= off, f"decided by measuring: {what}", on, off)
        self.open = False
