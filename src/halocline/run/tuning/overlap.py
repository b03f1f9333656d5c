"""Choice of overlap between computation and messages, by the user or by a measurement.

Overlap is faster if messages progress in the background, and can be slower otherwise. The cavity code of
Virginia Tech ran 20 to 30 % slower with overlap. Therefore the choice is measured. A separate trial run would
change the fields, or need a copy of the fields. Therefore the measurement uses the first passes of a loop of
the program itself, some with overlap and some without. Results are bit-for-bit identical in both cases.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from math import ceil

# Number of pieces that are measured in each of two cases, with and without overlap. A piece is a series of
# passes that are timed together.
ROUNDS = 5
# Minimum duration of a piece in seconds, if passes are short.
LEAST = 2e-3
# Maximum number of passes of a piece.
MOST = 64


@dataclass(frozen=True)
class Overlap:
    """Choice of overlap and its reason.

    With overlap, patches that need no message run while messages are in transit.

    Attributes
    ----------
    on : bool
        True if computation and messages overlap.
    reason : str
        Reason for the choice.
    seconds_on, seconds_off : float or None
        Median time of a sweep with and without overlap, on the slowest rank. None without a measurement.
    """

    on: bool
    reason: str
    seconds_on: float | None = None
    seconds_off: float | None = None

    def __str__(self) -> str:
        return f"{'on' if self.on else 'off'}, {self.reason}"


class OverlapTrial:
    """Measurement of overlap for one program, which may extend over several runs.

    All ranks receive the times of the slowest rank. Therefore all ranks make the same choice without
    communication.

    Parameters
    ----------
    option : {"auto", True, False}
        Choice of the user.
    reason : str
        Reason why "auto" needs no measurement; "" if a measurement is needed.

    Attributes
    ----------
    choice : Overlap
        Current choice.
    open : bool
        True while the measurement is incomplete.
    """

    def __init__(self, option: bool | str, reason: str = "") -> None:
        self.open = option == "auto" and not reason
        self._passes = 0  # number of passes of a piece; 0 before the first piece
        self._times: dict[bool, list[float]] = {True: [], False: []}
        if option != "auto":
            self.choice = Overlap(bool(option), "as requested")
        else:
            self.choice = Overlap(True, reason or "not decided: the run was too short to measure it")

    def piece(self) -> tuple[bool, int]:
        """Return whether the next piece uses overlap (True or False), and its number of passes.

        The result is meaningful only while the measurement is incomplete.
        """
        # order: on, off, off, on, so that neither case is always first
        return sum(map(len, self._times.values())) % 4 in (0, 3), self._passes or 1

    def note(self, seconds: float, sweeps: int) -> None:
        """Add the time of a piece in seconds on the slowest rank, and the number of sweeps."""
        if not self._passes:  # the caches are cold, so this pass only sets the length of pieces
            self._passes = min(MOST, ceil(LEAST / max(seconds, LEAST / MOST)))
            return
        # Passes with inner loops may differ in the number of sweeps.
        self._times[self.piece()[0]].append(seconds / max(1, sweeps))
        if min(map(len, self._times.values())) < ROUNDS:
            return
        on, off = (statistics.median(self._times[kind]) for kind in (True, False))
        comparison = f"{1e3 * on:.3g} ms per sweep with overlap, {1e3 * off:.3g} ms without"
        self.choice = Overlap(on <= off, f"decided by measurement: {comparison}", on, off)
        self.open = False
