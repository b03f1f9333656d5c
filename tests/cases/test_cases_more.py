"""Further tests of the cases: exact shocks, the onset of convection, and runs in three dimensions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.problems.problem import Problem
from halocline.problems.result import Result

Array = NDArray[np.float64]

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, n: list[int], settings: dict[str, float] | None = None, **options: Any) -> Result:
    return Problem(name, n, settings).run(**{"threads": 1, **options})


# -- shock tube ----------------------------------------------------------------------------------------


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the density of the exact solution."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import sod_exact

    yield sod_exact.density
    for name in ("sod_exact", "gas"):
        sys.modules.pop(name)


def tube(n: int, **settings: float) -> tuple[Array, Array, Any]:
    """Return x and density of the right half of the box, and the simulation, at the time 0.2."""
    sim = run("shock-tube", [2 * n], settings, until=0.2).simulation
    x = (np.arange(n) + 0.5) / n
    return x, np.exp(sim["lnrho"][n:]), sim


def crossing(x: Array, rho: Array, level: float, between: tuple[float, float]) -> float:
    """Return the place at which the density falls through a level."""
    inside = (x > between[0]) & (x < between[1])
    at = np.flatnonzero(rho[inside] < level)[0]
    (x0, x1), (r0, r1) = x[inside][at - 1 : at + 1], rho[inside][at - 1 : at + 1]
    return float(x0 + (r0 - level) / (r0 - r1) * (x1 - x0))


def test_a_shock_tube_matches_the_exact_solution(exact: Any):
    n = 200
    x, rho, sim = tube(n)
    # plateaux of Sod's problem: density left and right of the contact, velocity between the waves
    for between, expected in (((0.55, 0.63), 0.42632), ((0.74, 0.80), 0.26557)):
        inside = (x > between[0]) & (x < between[1])
        assert rho[inside] == pytest.approx(expected, rel=0.02)
        assert exact(x[inside], 0.2) == pytest.approx(expected, rel=1e-4)
        assert sim["u_x"][n:][inside] == pytest.approx(0.92745, rel=0.01)
    # the head of the rarefaction is at 0.263, the contact at 0.685, the shock at 0.850
    assert crossing(x, rho, 0.195, (0.75, 0.95)) == pytest.approx(0.5 + 0.2 * 1.75216, abs=1.5 / n)
    assert crossing(x, rho, 0.346, (0.60, 0.76)) == pytest.approx(0.5 + 0.2 * 0.92745, abs=2 / n)
    fan = (x > 0.31) & (x < 0.45)
    assert rho[fan] == pytest.approx(exact(x[fan], 0.2), rel=0.025)
    coarse_x, coarse, _ = tube(n // 2)
    errors = [np.abs(f - exact(at, 0.2)).mean() for at, f in ((coarse_x, coarse), (x, rho))]
    assert errors[1] < 0.005
    assert errors[1] < 0.6 * errors[0]
    # no oscillations: no value exceeds those of the two gases by more than a percent
    assert rho.max() < 1.005
    assert rho.min() > 0.124


def test_a_mirrored_shock_tube_has_the_mirrored_solution():
    sim = run("shock-tube", [64], steps=20).simulation
    assert sim["lnrho"] == pytest.approx(sim["lnrho"][::-1], abs=1e-11)
    assert sim["u_x"] == pytest.approx(-sim["u_x"][::-1], abs=1e-11)


def test_a_shock_tube_without_shock_viscosity_oscillates():
    """The shock viscosity is the term that suppresses the oscillations."""
    _, rho, _ = tube(100)
    _, bare, _ = tube(100, nu_shock=0.05)
    wiggles = [np.abs(np.diff(f, 2))[72:84].max() for f in (rho, bare)]
    assert wiggles[1] > 3 * wiggles[0]


@pytest.mark.ranks(1, 2, 4, long=(1, 2))
def test_bits_of_a_shock_tube_do_not_depend_on_ranks():
    from mpi4py import MPI

    result = run("shock-tube", [48], steps=6, patch=5).record
    alone = run("shock-tube", [48], steps=6, communicator=MPI.COMM_SELF).record
    assert result.checksum == alone.checksum


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"density_left": 0.0}, "density_left"),
        ({"pressure_right": -1.0}, "pressure_right"),
        ({"width": 0.0}, "width"),
        ({"gamma": 1.0}, "gamma"),
    ],
)
def test_a_shock_tube_without_density_or_pressure_is_rejected(settings: dict[str, float], message: str):
    with pytest.raises(InputError, match=f"{message} is .* expected a number"):
        _ = Problem("shock-tube", [32], settings).program


# -- energy --------------------------------------------------------------------------------------------


# -- convection ----------------------------------------------------------------------------------------
