"""Observers of problems: options, runs and facts pass through all of them, the last one outermost."""

from __future__ import annotations

from typing import Any

from halocline.run.simulation import observers
from halocline.run.simulation.observers import Observer, RunArguments, observing


class Noting(Observer):
    """Observer that adds one step to each run."""

    def __init__(self, name: str, **execution: Any) -> None:
        super().__init__(execution)
        self.name = name

    def run(self, problem: Any, arguments: RunArguments, proceed: Any) -> Any:
        return [self.name, *proceed(arguments._replace(steps=arguments.steps + 1))]

    def facts(self, problem: Any) -> dict[str, Any]:
        return {self.name: problem}


def test_runs_without_observers_are_unchanged() -> None:
    assert observers.options(None, {"threads": 2}) == {"threads": 2}
    assert observers.facts("p") == {}

    def proceed(arguments: RunArguments) -> int | None:
        return arguments.steps

    assert observers.wrap_run("p", proceed) is proceed


def test_options_of_observers_take_precedence() -> None:
    options = {"threads": 2, "patch": 4}
    with observing(Noting("a", threads=3)), observing(Noting("b", threads=5)):
        assert observers.options(None, options) == {"threads": 5, "patch": 4}
    assert options == {"threads": 2, "patch": 4}


def test_runs_pass_through_all_observers() -> None:
    with observing(Noting("a")), observing(Noting("b")):
        run = observers.wrap_run("p", lambda arguments: [arguments.steps])
        assert run(RunArguments(steps=1)) == ["b", "a", 3]
        assert observers.facts("p") == {"a": "p", "b": "p"}


def test_an_observer_has_the_last_problem_and_ends_with_its_block() -> None:
    observer = Observer()
    try:
        with observing(observer):
            observers.notify_created("first")
            observers.notify_created("second")
            raise KeyError
    except KeyError:
        observers.notify_created("third")
    assert observer.problem == "second"
