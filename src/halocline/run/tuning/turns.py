"""Measurements in turn."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def in_turn(
    timers: Mapping[T, Callable[[], float]],
    rounds: int,
    on_progress: Callable[[int], None] | None = None,
) -> dict[T, list[float]]:
    """Measure several times in turn, since the speed of a machine drifts; all ranks call this.

    Parameters
    ----------
    timers : mapping to callable
        Each returns seconds.
    rounds : int
        Measurements of each. Every second round runs in reverse order.
    on_progress : callable, optional
        Called with the number of rounds done.
    """
    times: dict[T, list[float]] = {name: [] for name in timers}
    for number in range(rounds):
        names: Iterable[T] = timers if number % 2 == 0 else reversed(list(timers))
        for name in names:
            times[name].append(timers[name]())
        if on_progress is not None:
            on_progress(number + 1)
    return times
