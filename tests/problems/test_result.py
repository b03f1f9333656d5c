"""Results of a file: the fields of its problem, and their state in a file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import halocline as hc
from halocline.problems.names import Names
from halocline.problems.result import Result, fields_of, results


def simulation() -> hc.Simulation:
    """Return a simulation of two fields, one of them on faces."""
    grid = hc.Grid((3, 4), periodic=(True, False))
    grid.field("u")
    grid.field("v", location="face-y", boundary=hc.Value(0.0))
    sim = hc.Simulation(grid, lambda u, v: {u: -u, v: -v}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim["u"] = np.arange(12.0).reshape(3, 4)
    return sim


def test_fields_of_a_result_are_those_of_the_file() -> None:
    sim: Any = simulation()
    assert fields_of(sim) is sim
    assert fields_of(SimpleNamespace(fields=sim)) is sim
    assert [field.name for field in results(sim)] == ["u", "v"]


def test_the_state_is_written_with_coordinates(tmp_path: Path) -> None:
    sim = simulation()
    observer = SimpleNamespace(problem=sim)
    result = Result(None, None, None, observer, Names())
    assert result.simulation is sim
    result.write_state(tmp_path / "state.npz")
    with np.load(tmp_path / "state.npz") as state:
        assert len(state.files) == 4
        assert np.array_equal(state["u"], np.arange(12.0).reshape(3, 4))
        assert state["v"].shape == sim.grid.fields["v"].points
        places = {name: state[name].tolist() for name in state.files if name not in ("u", "v")}
    assert sorted(places.values()) == [[False, False], [False, True]]
