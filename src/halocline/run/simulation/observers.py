"""Observers of the problems that this process creates and runs, for example a command that runs a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.every import Every
from halocline.run.output.output import Output
from halocline.run.simulation.progress import in_notebook


class RunArguments(NamedTuple):
    """Arguments of `Simulation.run` or `LinearProblem.solve` that an observer may replace.

    For a solve, `steps` is the number of iterations. Only a solve uses `resume` and `rtol`. Only a simulation
    uses `until`, `every`, `exact` and `callback`.
    """

    until: float | None = None
    steps: int | None = None
    every: Every | float | str | None = None
    exact: bool = False
    callback: Callable[..., Any] | None = None
    output: Output | Sequence[Output] | None = ()
    checkpoint: Checkpoint | None = None
    on_progress: Callable[[int], None] | None = None
    resume: str | Path | None = None
    rtol: float | None = None


class Observer:
    """Observer of the most recently created problem and of its runs.

    Parameters
    ----------
    execution : mapping, optional
        Options of `halocline.Execution`, and a communicator, that override those of the problem.

    Attributes
    ----------
    problem : Simulation, LinearProblem or None
        Most recently created problem, held by a strong reference.
    """

    def __init__(self, execution: Mapping[str, Any] | None = None) -> None:
        self.execution = dict(execution or {})
        self.problem: Any = None

    def replace_options(self, function: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options with which a problem is created; by default, `options` unchanged.

        Parameters
        ----------
        function : callable or None
            Equations or program of a simulation; None for a linear problem.
        """
        return options

    def on_created(self, problem: Any) -> None:
        """Store a new problem, before it allocates memory."""
        self.problem = problem

    def run(self, problem: Any, arguments: RunArguments, proceed: Callable[[RunArguments], Any]) -> Any:
        """Run a problem by ``proceed(arguments)``, possibly with other arguments or in parts.

        Returns
        -------
        Outcome or Solution
        """
        return proceed(arguments)

    def facts(self, problem: Any) -> dict[str, Any]:
        """Return the facts that checkpoints of a problem store for this observer, as JSON data."""
        return {}


_observers: list[Observer] = []


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Notify `observer` of the problems that are created or run inside the block."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def options(function: Any, problem_options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a problem, with those of observers (see `Observer.replace_options`)."""
    merged = dict(problem_options)
    for observer in _observers:
        merged = observer.replace_options(function, merged) | observer.execution
    return merged


def wrap_run(problem: Any, proceed: Callable[[RunArguments], Any]) -> Callable[[RunArguments], Any]:
    """Return the function that runs a problem: `proceed`, wrapped in the `run` methods of all observers.

    In a notebook, the runs show their progress.
    """
    if "IPython" in sys.modules and in_notebook():
        from halocline.run.simulation.notebook import show_progress

        proceed = partial(show_progress, problem, proceed=proceed)
    for observer in _observers:
        proceed = partial(observer.run, problem, proceed=proceed)
    return proceed


def facts(problem: Any) -> dict[str, Any]:
    """Return the facts that checkpoints of a problem store for all observers, as JSON data."""
    return {name: value for observer in _observers for name, value in observer.facts(problem).items()}


def notify_created(problem: Any) -> None:
    """Notify the observers of a new problem, before it allocates memory."""
    for observer in _observers:
        observer.on_created(problem)
