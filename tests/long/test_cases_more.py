"""Further tests of the cases: exact shocks, the onset of convection, and runs in three dimensions."""

from __future__ import annotations

import math
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


@pytest.mark.usefixtures("opencl")
def test_bits_of_a_shock_tube_do_not_depend_on_the_device():
    alone = run("shock-tube", [48], steps=6).record
    assert run("shock-tube", [48], steps=6, device="opencl:0,1").record.checksum == alone.checksum


def drift(zeta: float) -> float:
    """Return the change of the total energy in a transonic vortex over the loss of flow and field."""
    settings = {"nu": 0.05, "eta": 0.05, "K": 0.05, "zeta": zeta, "cs0": 1.0}
    first, *_, last = run("orszag-tang-resistive", [48], settings, until=0.5, every=20).record.series
    energy = [row["E_kin"] + row["E_mag"] + row["E_th"] for row in (first, last)]
    lost = first["E_kin"] + first["E_mag"] - last["E_kin"] - last["E_mag"]
    return abs(energy[1] - energy[0]) / lost


def test_bulk_viscosity_conserves_energy_except_for_the_omitted_term():
    """ζ ∇(∇·u) without ζ (∇·u) ∇ln ρ is not the divergence of a stress over ρ."""
    assert drift(0.0) < 1e-4
    assert 3e-3 < drift(0.3) < 3e-2


def growth(rayleigh: float) -> float:
    """Return the growth of the rolls in a thin layer, in which a gas behaves as a liquid."""
    settings = {"rayleigh": rayleigh, "contrast": 0.1, "amplitude": 1e-4}
    series = run("convection", [20, 10], settings, until=120.0, every=200).record.series
    late = [row for row in series if row["time"] > 60]
    return float(np.polyfit([e["time"] for e in late], [math.log(e["u_rms"]) for e in late], 1)[0])


def test_convection_sets_in_at_the_critical_rayleigh_number_of_linear_theory():
    """The limit is 27 π⁴ / 4 = 657.5 for frictionless walls of fixed temperature (Rayleigh 1916)."""
    critical = 27 * math.pi**4 / 4
    below, above = 0.8 * critical, 1.2 * critical
    rates = [growth(below), growth(above)]
    assert rates[0] < 0 < rates[1]
    result = below - rates[0] * (above - below) / (rates[1] - rates[0])
    assert result == pytest.approx(critical, rel=0.05)
