"""Measurements by the command."""

from __future__ import annotations

import json

from halocline.study.layout import Layout
from halocline.study.measuring.command import Command, measure


def test_measure_runs_the_command(monkeypatch):
    monkeypatch.setenv("OMP_PLACES", "cores")
    case = Command("run", "poisson", {"dim": 1, "steps": 9}, ("method=cg",))
    result = measure(case, 40, Layout(1, 1), repeat=2)
    assert (result["n"], result["dof"], result["iterations"], result["converged"]) == (40, 40, 9, False)
    assert result["command"] == (
        "halocline run poisson --n 40 --dim 1 --steps 9 --ranks 1 --threads 1 --set method=cg"
    )
    assert len(result["times"]) == 2
    assert result["seconds"] == sum(result["times"]) / 2
    assert result["environment"]["OMP_PLACES"] == "cores"
    assert result["machine"]["compiler_version"]
    json.dumps(result, allow_nan=False)
