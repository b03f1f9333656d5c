"""Who wants to know which problems this process makes and runs, such as a command that runs a user's file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Observer:
    """Notes the last problem that was made, and what was run of it.

    Attributes
    ----------
    problem : Simulation, LinearProblem or None
        It is kept alive until the next one is made.
    runs : list of (int, Outcome or Solution)
        Steps or iterations of each run, and what came of it.
    """

    def __init__(self) -> None:
        self.problem: Any = None
        self.runs: list[tuple[int, Any]] = []

    def made(self, problem: Any) -> None:
        """Called when a problem is known, before it takes memory."""
        self.problem, self.runs = problem, []

    def ran(self, problem: Any, steps: int, outcome: Any) -> None:
        """Called after a run."""
        if problem is self.problem:
            self.runs.append((steps, outcome))


_observers: list[Observer] = []


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Let an observer know meanwhile."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def made(problem: Any) -> None:
    """A problem is known, and has taken no memory yet."""
    for each in _observers:
        each.made(problem)


def ran(problem: Any, steps: int, outcome: Any) -> None:
    """A problem has run."""
    for each in _observers:
        each.ran(problem, steps, outcome)
