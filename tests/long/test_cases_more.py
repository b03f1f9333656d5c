"""Further tests of the cases: exact shocks, the onset of convection, and runs in three dimensions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halocline.problems.files import CASES
from halocline.problems.problem import Problem
from halocline.problems.result import Result


def run(name: str, n: list[int], settings: dict[str, float] | None = None, **options: Any) -> Result:
    return Problem(name, n, settings).run(**{"threads": 1, **options})


# -- convection ----------------------------------------------------------------------------------------


def test_convection_runs_in_three_dimensions():
    series = run("convection", [12, 12, 8], {"amplitude": 0.05}, steps=60, every=20).record.series
    first, last = series[0], series[-1]
    assert last["mass"] == pytest.approx(first["mass"], rel=1e-3)
    assert last["u_rms"] > 0
    assert last["T_max"] < first["T_max"] * 1.05
    assert last["T_min"] > first["T_min"] * 0.95


def test_rolls_along_the_third_axis_agree_with_two_dimensions(tmp_path: Path):
    """Without random initial values the third axis changes the results by rounding only."""
    text, noise = (CASES / "convection.py").read_text(), " + (hc.random(seed, 0, grid.cell_number()) - 0.5)"
    assert noise in text
    (tmp_path / "even.py").write_text(text.replace(noise, ""))
    results = []
    for n in ([12, 8], [12, 8, 8]):
        ready = Problem(str(tmp_path / "even.py"), n, {"amplitude": 0.05, "dt": 0.01})
        results.append(ready.run(steps=30, threads=1).simulation)
    flat, deep = results
    pairs = {"lnrho": "lnrho", "s": "s", "u_x": "u_x", "u_z": "u_y"}
    for name, flat_name in pairs.items():
        assert np.abs(deep[name] - flat[flat_name][:, None, :]).max() < 1e-13, name
    assert np.abs(deep["u_y"]).max() < 1e-14


# -- helical turbulence --------------------------------------------------------------------------------


def test_helical_turbulence_runs_in_three_dimensions():
    settings = {"seed_field": 1e-3}
    series = run("helical-turbulence", [16], settings, steps=40, every=20).record.series
    assert series[-1]["kinetic_helicity"] > 0  # the same helicity as that of the forcing
    assert series[-1]["E_kin"] > series[1]["E_kin"] > 0
    assert series[-1]["mass"] == pytest.approx(1.0, abs=1e-5)
    assert all(row["divB_max"] < 1e-12 * row["B_max"] for row in series)
