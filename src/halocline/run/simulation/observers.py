"""Observers of the problems that this process makes and runs, such as the command that runs a user's file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.every import Every
from halocline.run.output.output import Output


class RunArguments(NamedTuple):
    """Arguments of `Simulation.run` that an observer may replace."""

    until: float | None
    steps: int | None
    every: Every | float | str | None
    exact: bool
    callback: Callable[..., Any] | None
    output: Output | Sequence[Output] | None
    checkpoint: Checkpoint | None


class SolveArguments(NamedTuple):
    """Arguments of `LinearProblem.solve` that an observer may replace."""

    output: Output | Sequence[Output]
    checkpoint: Checkpoint | None
    resume: str | Path | None


class Observer:
    """Observer of the last problem that was made, and of its runs.

    Parameters
    ----------
    execution : mapping, optional
        Options of `halocline.Execution`, and a communicator, that problems take instead of their own.

    Attributes
    ----------
    problem : Simulation, LinearProblem or None
        It is kept alive until the next one is made.
    runs : list of (int, Outcome or Solution)
        Steps or iterations of each run, and its result.
    """

    def __init__(self, execution: Mapping[str, Any] | None = None) -> None:
        self.execution = dict(execution or {})
        self.problem: Any = None
        self.runs: list[tuple[int, Any]] = []

    def made(self, problem: Any) -> None:
        """Note a new problem, before it takes memory."""
        self.problem, self.runs = problem, []

    def run_arguments(self, problem: Any, arguments: RunArguments) -> RunArguments:
        """Return the arguments for a run that is about to begin; by default they are unchanged."""
        return arguments

    def solve_arguments(self, problem: Any, arguments: SolveArguments) -> SolveArguments:
        """Return the arguments for a solve that is about to begin; by default they are unchanged."""
        return arguments

    def facts(self, problem: Any) -> dict[str, Any]:
        """Return the facts that checkpoints of a problem store for this observer, as JSON data."""
        return {}

    def ran(self, problem: Any, steps: int, outcome: Any) -> None:
        """Note the end of a run."""
        if problem is self.problem:
            self.runs.append((steps, outcome))


_observers: list[Observer] = []


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Notify an observer during the block."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def options(problem_options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a problem; those of the observers take precedence."""
    merged = dict(problem_options)
    for observer in _observers:
        merged |= observer.execution
    return merged


def run_arguments(problem: Any, arguments: RunArguments) -> RunArguments:
    """Return the arguments of a run, as the observers replace them."""
    for observer in _observers:
        arguments = observer.run_arguments(problem, arguments)
    return arguments


def solve_arguments(problem: Any, arguments: SolveArguments) -> SolveArguments:
    """Return the arguments of a solve, as the observers replace them."""
    for observer in _observers:
        arguments = observer.solve_arguments(problem, arguments)
    return arguments


def facts(problem: Any) -> dict[str, Any]:
    """Return the facts that checkpoints of a problem store for the observers, as JSON data."""
    return {name: value for observer in _observers for name, value in observer.facts(problem).items()}


def made(problem: Any) -> None:
    """Notify the observers of a problem that has taken no memory yet."""
    for observer in _observers:
        observer.made(problem)


def ran(problem: Any, steps: int, outcome: Any) -> None:
    """Notify the observers of the end of a run."""
    for observer in _observers:
        observer.ran(problem, steps, outcome)
