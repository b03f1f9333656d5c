"""Measurements of a case with every scheme."""

from __future__ import annotations

import json

import pytest

from halocline.problems.problem import Problem
from halocline.study.layout import Layout
from halocline.study.measuring.command import Command, measure


def test_all_schemes_run():
    times = {s: Problem("alfven-decay", [16], {"dt": 0.01}, scheme=s).run(steps=2, threads=1) for s in
             ("euler", "rk2", "rk3", "rk3-previous", "rk4", "ssprk3")}  # fmt: skip
    ends = {scheme: result.record.diagnostics["u_rms"] for scheme, result in times.items()}
    assert len({result.record.checksum for result in times.values()}) == len(times)
    assert ends["rk3"] == pytest.approx(ends["rk4"], rel=1e-7)
    assert ends["rk3"] == pytest.approx(ends["rk3-previous"], rel=1e-12)
    assert ends["rk3"] == pytest.approx(ends["ssprk3"], rel=1e-9)


def test_a_measurement_agrees_with_the_command():
    case = Command("run", "alfven-decay", {"order": 4, "steps": 3}, ("nu=0.1", "eta=0.1"))
    result = measure(case, (16,), Layout(1, 1), repeat=2)
    assert result["command"] == (
        "halocline run alfven-decay --n 16 --order 4 --steps 3 --ranks 1 --threads 1 --set nu=0.1 "
        "--set eta=0.1"
    )
    assert (result["shape"], result["parameters"]["nu"], result["settings"]) == ([16], 0.1, "nu=0.1 eta=0.1")
    assert len(result["times"]) == 2
    json.dumps(result, allow_nan=False)
