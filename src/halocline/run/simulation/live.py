"""Progress line of a run: time, step and its limit, speed, and remaining time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic

OVER = 10.0  # length in seconds of the interval over which the speed is averaged
LEAST = 0.5  # seconds before the speed is shown


@dataclass
class LiveLine:
    """Callable that returns the progress line after a number of steps. Another thread calls it.

    Parameters
    ----------
    scalars : callable
        Returns the present scalars of the run.
    cells : int
        Number of cells that a step computes.
    until : float, optional
        Time at which the run ends.
    last : int, optional
        Step at which the run ends.
    limiter : callable, optional
        Function of the scalars that returns the name of the limit of the time step.
    progress : callable, optional
        Function of the scalars that returns a text, which replaces time and time step.
    bound_cells_per_second : float, optional
        Upper bound of the speed in cells per second, from the memory bandwidth.
    """

    scalars: Callable[[], Mapping[str, float]]
    cells: int
    until: float | None
    last: int | None
    limiter: Callable[[Mapping[str, float]], str] | None = None
    progress: Callable[[Mapping[str, float]], str] | None = None
    bound_cells_per_second: float | None = None
    _samples: deque[tuple[float, int, float]] = field(default_factory=deque)  # clock, step, simulated time

    def __call__(self, step: int) -> str:
        """Return the progress line after a number of steps."""
        values = self.scalars()
        time, dt = values.get("t", math.nan), values.get("dt", math.nan)
        parts = []
        if self.progress is not None:
            parts.append(self.progress(values))
        elif math.isfinite(time):
            parts.append(f"t = {time:.4g}")
            if math.isfinite(dt) and dt > 0 and step:
                limit = self.limiter(values) if self.limiter is not None else ""
                parts.append(f"dt = {dt:.3g}" + (f" ({limit})" if limit else ""))
        clock_time = monotonic()
        self._samples.append((clock_time, step, time))
        while self._samples[-1][0] - self._samples[0][0] > OVER and len(self._samples) > 2:
            self._samples.popleft()
        began, before, earlier = self._samples[0]
        if clock_time - began >= LEAST and step > before:
            rate = (step - before) / (clock_time - began)
            speed = f"{_short(rate * self.cells)} cells/s"
            if self.bound_cells_per_second:
                speed += f", {rate * self.cells / self.bound_cells_per_second:.0%} of the bound"
            parts.append(speed)
            remaining = self._remaining_seconds(step, rate, time, (time - earlier) / (clock_time - began))
            if remaining is not None:
                parts.append(f"{clock(remaining)} left")
        return ", ".join(part for part in parts if part)

    def _remaining_seconds(
        self, step: int, steps_a_second: float, time: float, time_a_second: float
    ) -> float | None:
        """Return the remaining seconds until the last step or the end time, at the given speed."""
        ends = []
        if self.last is not None:
            ends.append((self.last - step) / steps_a_second)
        if self.until is not None and time_a_second > 0:
            ends.append((self.until - time) / time_a_second)
        return max(0.0, min(ends)) if ends else None


def _short(number: float) -> str:
    """Return a large number with three digits and a unit prefix."""
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:.3g} {letter}"
    return f"{number:.3g}"


def clock(seconds: float) -> str:
    """Return hours, minutes and seconds, such as "2:03:04"."""
    whole = int(seconds + 0.5)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
