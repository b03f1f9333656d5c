"""Progress of runs in a notebook, with a stand-in for IPython."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import halocline as hc
from halocline.run.simulation import progress
from halocline.run.simulation.notebook import show_progress
from halocline.run.simulation.observers import RunArguments


class Cell:
    """Output of a cell: all states of the displayed object."""

    def __init__(self) -> None:
        self.outputs: list[Any] = []

    def display(self, thing: Any, *, display_id: bool) -> Cell:
        assert display_id
        self.outputs.append(thing)
        return self

    def update(self, thing: Any) -> None:
        self.outputs.append(thing)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """Return the output of a cell in a stand-in for a notebook."""
    output = Cell()
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    pages = SimpleNamespace(display=output.display, HTML=lambda text: f"HTML {text}")
    monkeypatch.setitem(sys.modules, "IPython", kernel)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", pages)  # type: ignore[arg-type]
    return output


def decay() -> hc.Simulation:
    grid = hc.Grid(8, periodic=True)
    u = grid.field("u")
    sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.125)
    sim[u] = 1.0
    return sim


def percent(bar: Any) -> float:
    """Return the completed part of a bar."""
    return float(bar.tasks[0].percentage)


def test_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not progress.in_notebook()
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", shell)  # type: ignore[arg-type]
    assert not progress.in_notebook()


def test_a_long_run_shows_a_bar_and_removes_it(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "NOTEBOOK_DELAY", 0.0)
    sim = decay()

    def proceed(arguments: RunArguments) -> str:
        assert arguments.on_progress is not None
        for done in (0, 4, 8):
            sim.values["t"] = done * 0.125
            arguments.on_progress(done)
        return "the outcome"

    monkeypatch.setattr(hc.Simulation, "present_scalars", lambda sim: {})
    assert show_progress(sim, RunArguments(until=2.0, steps=16), proceed) == "the outcome"
    *bars, last = cell.outputs
    assert [percent(bar) for bar in bars] == [0.0, 25.0, 50.0]
    assert bars[-1].tasks[0].fields["count"].startswith("8 steps, t = 1")
    assert last == "HTML "


def test_a_short_run_shows_nothing(cell: Cell) -> None:
    sim = decay()
    assert sim.run(steps=2).reason == "completed"
    assert cell.outputs == []


def test_a_run_of_a_notebook_reports_its_last_step(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "NOTEBOOK_DELAY", 0.0)
    decay().run(until=1.0)
    *bars, last = cell.outputs
    assert percent(bars[-1]) == 100.0
    assert last == "HTML "


def test_a_solve_shows_its_iterations(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "NOTEBOOK_DELAY", 0.0)
    grid = hc.Grid((15, 15), walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    solution = hc.solve(lambda u: -hc.laplacian(u), u, 1.0)
    *bars, _ = cell.outputs
    assert bars[-1].tasks[0].fields["count"] == f"{solution.iterations} iterations"


def test_a_run_with_its_own_progress_shows_no_bar(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "NOTEBOOK_DELAY", 0.0)
    steps: list[int] = []
    decay().run(steps=3, on_progress=steps.append)
    assert steps[-1] == 3
    assert cell.outputs == []
