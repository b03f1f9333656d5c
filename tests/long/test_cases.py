"""The cases compared with known results: exact solutions, linear theory, conservation and thresholds."""

from __future__ import annotations

import numpy as np
import pytest

from case_runs import layer, run
from halocline.errors import InputError, RunError
from halocline.problems.problem import Problem

# -- forced turbulence ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("fast_kernels")
def test_a_dynamo_grows_exponentially_in_its_kinematic_phase():
    result = run("helical-turbulence", [32], {"seed_field": 1e-8}, until=240.0, every=100)
    late = [row for row in result.record.series if row["time"] > 100]
    t, B, u = (np.array([row[name] for row in late]) for name in ("time", "B_rms", "u_rms"))
    growth, offset = np.polyfit(t, np.log(B), 1)
    scatter = np.std(np.log(B) - growth * t - offset)
    assert growth > 0.02
    assert np.log(B[-1] / B[0]) > 5 * scatter
    assert B[-1] < 0.01 * u.min()  # the front has not reached the flow yet
    assert np.all(np.array([row["kinetic_helicity"] for row in late]) > 0)


# -- energy --------------------------------------------------------------------------------------------


def test_mass_and_energy_of_a_decaying_vortex_are_conserved():
    settings = {"nu": 0.05, "eta": 0.05, "K": 0.05, "zeta": 0.02, "cp": 1.4, "gamma": 1.5, "mu0": 1.2}
    series = run("orszag-tang-resistive", [48], settings, until=1.0, every=10).record.series
    energy = [row["E_kin"] + row["E_mag"] + row["E_th"] for row in series]
    lost = series[0]["E_kin"] + series[0]["E_mag"] - series[-1]["E_kin"] - series[-1]["E_mag"]
    assert lost > 0.15
    assert max(abs(e - energy[0]) for e in energy) < 1e-3 * lost
    assert max(abs(row["mass"] - 1) for row in series) < 1e-6
    assert max(row["divB_max"] for row in series) < 1e-13


# -- convection ----------------------------------------------------------------------------------------


def test_a_layer_at_rest_stays_at_rest():
    errors = []
    for n in (12, 24):
        series = layer([2 * n, n], 2.0, amplitude=0.0, rayleigh=300.0)
        errors.append(max(row["u_max"] for row in series))
        assert series[-1]["mass"] == pytest.approx(series[0]["mass"], abs=1e-5)
    assert errors[1] < 1e-4
    assert errors[1] < errors[0] / 6


# -- failures ------------------------------------------------------------------------------------------


# separate compilation of the terms takes half a minute
def test_a_nonfinite_forcing_is_reported():
    with pytest.raises(RunError, match=r"before step 1: forcing of u_[xyz]"):
        run("helical-turbulence", [12, 16], {"force": 1e300, "dt": 0.01, "kmax": 3.5}, steps=4)


def test_a_contrast_too_large_for_ghosts_is_reported():
    for order, least in ((2, 16.0), (6, 3.2), (8, 8 / 3.5)):
        with pytest.raises(
            InputError, match=rf"contrast is {least:g}; expected a number below {least:g} with 8"
        ):
            Problem("convection", [8, 8], {"contrast": least}, order=order).run(steps=0, threads=1)
        Problem("convection", [8, 8], {"contrast": 0.99 * least}, order=order).run(steps=0, threads=1)
    # just below the limit all values beyond the wall are finite
    result = Problem("convection", [16, 8], {"contrast": 3.1, "dt": 1e-6}).run(steps=1, threads=1)
    assert all(value is not None for value in result.record.diagnostics.values())
