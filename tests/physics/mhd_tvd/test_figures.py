"""Figures of cases with shocks: the plotted data, compared with the expected data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from halocline.io.figure import Lines, Map
from halocline.physics.mhd_tvd import tubes
from halocline.physics.mhd_tvd.checks import primitives
from halocline.physics.mhd_tvd.converged import DATA
from halocline.run.ranks.mpi import world
from standing_problems import figure_of, standing, state_of
from suites import cases

# -- the figures of cases ------------------------------------------------------------------------------------


def test_profiles_of_a_tube_are_drawn() -> None:
    """At half the time the waves are at half their final distance."""
    done = standing("rj2a", (40,), time=0.1, start=True)
    actual = figure_of(done, "rj2a", "profiles")
    state, sim = state_of(done), done.simulation
    expected = [
        state["rho"],
        state["p"],
        sim.gather("E"),
        *(state[f"v_{a}"] for a in "xyz"),
        state["B_y"],
        state["B_z"],
    ]
    x, exact = tubes.reference("rj2a")
    converged = [exact["rho"], exact["p"], None, *(exact[q] for q in ("u", "v", "w", "By", "Bz"))]
    assert len(actual.panels) == len(expected) == 8
    for panel, values, profile in zip(actual.panels, expected, converged, strict=True):
        assert isinstance(panel, Lines)
        run, line = panel.curves
        assert (run.points, run.label, line.points, line.label) == (
            True,
            "40 cells",
            False,
            "converged solution",
        )
        assert np.array_equal(run.x, sim.grid.positions()[0])
        assert np.allclose(run.y, values, rtol=1e-13, atol=1e-15)
        if profile is not None:
            at = np.linspace(-0.24, 0.24, 97)
            assert np.allclose(np.interp(at, line.x, line.y), np.interp(2.0 * at, x, profile), atol=1e-12)
            assert (line.x[0], line.x[-1]) == (-0.5, 0.5)  # to the points with the initial state
            assert (line.y[0], line.y[-1]) == (profile[0], profile[-1])
    energy = actual.panels[2]
    assert isinstance(energy, Lines)
    left = energy.curves[1].y[0]
    assert left == pytest.approx(energy.curves[0].y[0], rel=1e-6)  # the energy of the left state, in float32
    other = figure_of(standing("rj2a", (40,), 0.1, {"gamma": 1.4}), "rj2a", "profiles")
    assert all(len(panel.curves) == 1 for panel in other.panels if isinstance(panel, Lines))


def test_the_brio_wu_tube_shows_the_internal_energy() -> None:
    result = figure_of(standing("brio-wu", (40,), time=0.08, start=True), "brio-wu", "profiles")
    rho, p, heat = (panel.curves for panel in result.panels[:3] if isinstance(panel, Lines))
    for k in range(2):
        assert np.allclose(heat[k].y, p[k].y / rho[k].y, rtol=1e-13)  # γ is 2
    assert result.panels[2].title == "P / ((γ - 1) ρ)"


def test_profiles_of_an_oblique_tube_are_drawn() -> None:
    """The profiles have a cell of every layer, three times as many as on the diagonal."""
    done = standing("rj4a", (12, 12, 12), time=0.15)
    done.simulation["rho"] = np.indices((12, 12, 12)).sum(0) + 1.0  # the number of the layer
    rho = figure_of(done, "rj4a", "profiles").panels[0]
    assert isinstance(rho, Lines)
    s, values = rho.curves[0].x, rho.curves[0].y
    assert np.array_equal(values, np.arange(34) + 1.0)
    assert np.allclose(s, (np.arange(34) - 16.5) * 2.0 / 12)
    on_diagonal = tubes.profile(done.simulation)
    assert on_diagonal is not None
    assert np.array_equal(on_diagonal[0], s[::3])
    assert np.array_equal(on_diagonal[1]["rho"], values[::3])
    assert rho.coordinate == "$x_1$, along the normal"
    assert rho.span == tubes.LOOKED_AT


def test_a_converged_row_on_the_same_grid_is_unchanged() -> None:
    done = standing("orszag-tang", (192, 192), time=0.5)
    with np.load(DATA / "orszag-tang.npz") as converged_file:
        for panel, row in zip(figure_of(done, "orszag-tang", "maps").panels[4:], (82, 59), strict=True):
            assert isinstance(panel, Lines)
            assert np.allclose(panel.curves[1].y, converged_file["p"][:, row], rtol=1e-9)


def test_maps_and_cuts_of_the_rotor_are_drawn() -> None:
    done = standing("rotor", (20, 20), time=0.15)
    result = figure_of(done, "rotor", "maps")
    state = state_of(done)
    mach = result.panels[2]
    assert isinstance(mach, Map)
    speed = np.sqrt(sum(state[f"v_{a}"] ** 2 for a in "xyz"))
    assert np.allclose(mach.section.values, speed / np.sqrt(1.4 * state["p"] / state["rho"]), rtol=1e-12)
    B_y, B_x = result.panels[4:]
    assert isinstance(B_y, Lines)
    assert isinstance(B_x, Lines)
    assert (B_y.coordinate, B_x.coordinate) == ("x", "y")
    assert np.allclose(B_y.curves[0].y, state["B_y"][:, 9])
    assert np.allclose(B_x.curves[0].y, state["B_x"][9])
    with np.load(DATA / "rotor.npz") as converged_file:
        assert np.allclose(B_y.curves[1].y, converged_file["B_y"].astype(float)[:, 94:96].mean(1), rtol=1e-6)
        assert np.allclose(B_x.curves[1].y, converged_file["B_x"].astype(float)[94:96].mean(0), rtol=1e-6)


def test_the_figure_of_a_loop_includes_the_initial_state() -> None:
    done = standing("field-loop", (24, 12), time=2.0, start=True)
    state = state_of(done)
    for a in "xy":
        done.simulation[f"b_{a}"] = 0.0
    before, after = figure_of(done, "field-loop", "maps").panels
    assert isinstance(before, Map)
    assert isinstance(after, Map)
    squares = (state["B_x"] ** 2 + state["B_y"] ** 2)[6:18]  # of the middle square
    assert np.allclose(before.section.values, squares, rtol=1e-12, atol=1e-20)
    assert before.section.span == ((-0.5, 0.5), (-0.5, 0.5))
    assert before.section.values.max() > 5e-7
    assert not after.section.values.any()
    assert before.limits == after.limits == (0.0, pytest.approx(1e-6))
    assert after.title == "$B^2$ at t = 2"


@cases("n", [(32,), (24, 12), (12, 8), (12, 6, 6)], default=[(24, 12)])
def test_a_polarised_wave_is_drawn_along_its_direction(n: tuple[int, ...]) -> None:
    """At the start the field of all cells is on the exact curve, except for means over faces."""
    done = standing("cp-alfven", n, time=0.0, start=True)
    (panel,) = figure_of(done, "cp-alfven", "wave").panels
    assert isinstance(panel, Lines)
    cells, exact = panel.curves
    assert len(cells.x) == np.prod(n)
    assert np.abs(cells.x).max() < panel.span[1]
    most = 0.1 * (2 * math.pi / min(n)) ** 2
    assert np.abs(cells.y - np.interp(cells.x, exact.x, exact.y)).max() < most
    result = done.call("profile", done.simulation)
    assert result is not None
    assert done.call("scatter", n, result[1]) < 1e-14
    off = result[1].copy()
    off.flat[5] += 1e-3
    if len(n) > 1:
        assert done.call("scatter", n, off) == pytest.approx(1e-3)


def test_the_exact_wave_has_moved_against_the_mean_field() -> None:
    for v, phase in ((0.0, 0.25), (0.5, 0.375)):
        done = standing("cp-alfven", (16, 8), time=0.25, settings={"v": v})
        (panel,) = figure_of(done, "cp-alfven", "wave").panels
        assert isinstance(panel, Lines)
        exact = panel.curves[1]
        assert np.allclose(exact.y, 0.1 * np.sin(2 * math.pi * (exact.x + phase)))


@pytest.mark.ranks(2)
def test_the_first_of_two_ranks_draws_the_figure() -> None:
    done = standing("rotor", (20, 20), time=0.15)
    result = done.problem.known.figures["maps"](done.simulation)
    state = primitives(done.simulation, done.problem.values["gamma"])
    assert (result is None) == (state is None) == (world().rank > 0)
    if result is not None and state is not None:
        cut_of = result.panels[4]
        assert isinstance(cut_of, Lines)
        assert np.allclose(cut_of.curves[0].y, state["B_y"][:, 9])
        assert isinstance(result.panels[0], Map)
        assert np.array_equal(result.panels[0].section.values, state["rho"])


# -- from the command, and from Python -----------------------------------------------------------------------
