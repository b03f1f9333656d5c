"""Progress of runs in a notebook."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from halocline.run.simulation.live import LiveLine
from halocline.run.simulation.progress import progress
from halocline.words import joined


def show_progress(problem: Any, arguments: Any, proceed: Callable[[Any], Any]) -> Any:
    """Run a problem by ``proceed(arguments)``, and show its progress in the output of the cell.

    A run with its own `on_progress` shows nothing.

    Parameters
    ----------
    problem : Simulation or LinearProblem
    arguments : RunArguments
        See `halocline.run.simulation.observers`.
    proceed : callable
    """
    if arguments.on_progress is not None:
        return proceed(arguments)
    is_simulation = hasattr(problem, "present_scalars")
    title, unit = (problem.title, "steps") if is_simulation else ("solve", "iterations")
    shape = " x ".join(map(str, (problem if is_simulation else problem.fields).grid.shape))
    with progress(joined(title, shape), unit) as show:
        if show is None:
            return proceed(arguments)
        report = _simulation_reporter(problem, arguments, show) if is_simulation else show
        return proceed(arguments._replace(on_progress=report))


def _simulation_reporter(sim: Any, arguments: Any, show: Callable[..., None]) -> Callable[[int], None]:
    """Return a function of the completed steps of this run, which shows time, speed and remaining time."""
    first, start = sim.steps, sim.time
    last, until = arguments.steps, arguments.until

    def scalars() -> dict[str, float]:
        return {**dict(sim.values), **sim.present_scalars()}

    def share(done: int) -> float | None:
        """Return the completed share of the run; None for a run without an end."""
        shares = [done / last] if last else []
        if until is not None and math.isfinite(until) and until > start:
            shares.append((scalars().get("t", start) - start) / (until - start))
        return min(1.0, max(shares)) if shares else None

    line = LiveLine(scalars, sim.grid.size, until=until, last=None if last is None else first + last)
    return lambda done: show(done, line(first + done), share(done))
