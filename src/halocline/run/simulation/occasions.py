"""Recurring events of a run: callbacks, outputs, checkpoints; and the bounds of the run between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from halocline.errors import InputError
from halocline.lang.clock import Clock, Limits
from halocline.run.output.every import Every
from halocline.run.simulation.requests import Alarm

NEVER = Every()  # interval of an event that occurs at the end alone
MOST_ROWS = 1 << 16  # steps that a run records in one go


class Occasion:
    """Recurring event of a run.

    An event of simulated time or steps occurs at whole multiples of its interval, however often the run was
    stopped and continued. An event of wall-clock time occurs when its interval has passed since the last one.

    Parameters
    ----------
    every : Every
    act : callable
        Action, on all ranks.
    exact : bool
        True to shorten steps so that they end at the multiples; otherwise the event follows the first step
        that reaches one.
    alarm : Alarm, optional
        Alarm of an event of wall-clock time.
    last_recorded : callable, optional
        Returns the last step at which the steps themselves acted. The event occurs only where they did not.
    at_end : bool
        True to act at the end of the run too, where the event has not just occurred.
    at_stop : bool
        True to do so also where the program itself ends the run.
    """

    def __init__(
        self,
        every: Every,
        act: Callable[[], None],
        *,
        exact: bool = False,
        alarm: Alarm | None = None,
        last_recorded: Callable[[], int] | None = None,
        at_end: bool = False,
        at_stop: bool = False,
    ) -> None:
        self.every, self.act, self.exact, self.alarm = every, act, exact, alarm
        self.last_recorded, self.at_end, self.at_stop = last_recorded, at_end, at_stop
        self._due: float = math.inf  # time or step; infinite for wall-clock time

    def begin(self, clock: Clock, until: float) -> None:
        """Wait for the first multiple after the present time or step.

        Raises
        ------
        InputError
            The interval is too short for steps that end at its multiples up to a time.
        """
        if self.exact and self.every.time is not None:
            least = clock.shortest_step(until)
            if self.every.time < least:
                raise InputError(
                    f"every is {self.every.time:g} with exact=True, which shortens all steps to that; "
                    f"expected at least {least:.3g}, so that each step changes the time"
                )
        self._wait(clock)

    def limits(self, clock: Clock, until: float) -> Limits:
        """Return the bounds of a run up to the next event, or to a time where that is earlier."""
        if self.last_recorded is not None:
            return Limits(until, until, clock.step + MOST_ROWS)
        if self.every.time is None:
            return Limits(until, until, self._due)
        if self.exact:
            return Limits(min(until, self._due), until)
        return clock.limits(self._due).within(Limits(until, until))

    def happen(self, clock: Clock) -> bool:
        """Act where the event is due, and return whether it was. All ranks call this."""
        if self.alarm is not None:
            due = self.alarm.rang
        elif self.every.steps is not None:
            if self.last_recorded is not None:
                self._due = max(self._due, _next(self.last_recorded(), self.every.steps))
            due = clock.step >= self._due
        else:
            due = clock.has_reached(self._due)
        if due:
            self.act()
            self._wait(clock)
        return due

    def _wait(self, clock: Clock) -> None:
        if self.alarm is not None:
            assert self.every.seconds is not None
            self.alarm.wind(self.every.seconds)
        elif self.every.steps is not None:
            self._due = _next(clock.step, self.every.steps)
        elif self.every.time is not None:
            self._due = clock.next_multiple(self.every.time)


def _next(step: int, interval: int) -> int:
    """Return the first multiple of an interval after a step."""
    return (step // interval + 1) * interval


def limits(occasions: Iterable[Occasion], clock: Clock, until: float, last: float) -> Limits:
    """Return the bounds of a run up to the next event, or up to a time or step."""
    bounds = Limits(until, until, last)
    for occasion in occasions:
        bounds = bounds.within(occasion.limits(clock, until))
    return bounds
