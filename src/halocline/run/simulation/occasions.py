"""What happens in a run again and again: looks, outputs, checkpoints; and how far the run goes in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from halocline.run.output.every import Every
from halocline.run.simulation.requests import Alarm

# a time counts as reached from so much of an interval before it on: rounding adds up over steps
EARLY = 1e-6


@dataclass(frozen=True)
class Moment:
    """Where a run is."""

    time: float
    step: int


class Occasion:
    """Something that happens at whole multiples of an interval, whenever and however often the run was
    stopped and continued; or of wall-clock time since it last happened.

    Parameters
    ----------
    every : Every
    act : callable
        What happens, on all ranks.
    exact : bool
        Whether steps are shortened to meet times; else the first step past one counts.
    alarm : Alarm, optional
        Needed for wall-clock time.
    """

    def __init__(
        self, every: Every, act: Callable[[], None], *, exact: bool = False, alarm: Alarm | None = None
    ) -> None:
        self.every, self.act, self.exact, self.alarm = every, act, exact, alarm
        self._passed = 0  # intervals

    def begin(self, now: Moment) -> None:
        """Count from here on: what was due before does not happen."""
        self._passed = self._count(now)
        self._wind()

    def next(self, now: Moment, until: float) -> tuple[float, float, float]:
        """How far a run may go before it is due: the time that a step is shortened to end at, at most
        `until`, that from which on no step begins, and a step."""
        if self.every.steps is not None:
            return until, until, (self._count(now) + 1) * self.every.steps
        if self.every.time is None:
            return until, until, math.inf
        due = (self._count(now) + 1) * self.every.time
        if self.exact:
            return min(until, due), min(until, due), math.inf
        return until, min(until, due - EARLY * self.every.time), math.inf

    def happen(self, now: Moment) -> bool:
        """Act where it is due; whether it was. All ranks call this."""
        if self.alarm is not None:
            due = self.alarm.rang
        else:
            due, self._passed = self._count(now) > self._passed, self._count(now)
        if due:
            self.act()
            self._wind()
        return due

    def _count(self, now: Moment) -> int:
        """Intervals that have passed."""
        if self.every.steps is not None:
            return now.step // self.every.steps
        return 0 if self.every.time is None else math.floor(now.time / self.every.time + EARLY)

    def _wind(self) -> None:
        if self.alarm is not None:
            assert self.every.seconds is not None
            self.alarm.wind(self.every.seconds)


def limits(
    occasions: Iterable[Occasion], now: Moment, until: float, last: float
) -> tuple[float, float, float]:
    """How far a run may go before the next occasion, or ends by itself at a time or step; see
    `Occasion.next`."""
    found = [(until, until, last), *(each.next(now, until) for each in occasions)]
    targets, pauses, steps = zip(*found, strict=True)
    return min(targets), min(*targets, *pauses), min(steps)
