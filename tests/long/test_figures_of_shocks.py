"""Figures of shocks in two and three dimensions."""

from __future__ import annotations

import math

import numpy as np

from halocline.io.figure import Lines, Map
from halocline.physics.mhd_tvd.checks import restricted
from halocline.physics.mhd_tvd.converged import DATA
from standing_problems import figure_of, standing, state_of


def test_the_normal_field_is_drawn_in_three_dimensions() -> None:
    done = standing("rj2a", (12, 12, 12), time=0.2, start=True)
    panels = figure_of(done, "rj2a", "profiles").panels
    across = panels[6]
    assert isinstance(across, Lines)
    assert across.title == "$B_1$"
    assert [panel.title for panel in panels[7:]] == ["$B_2$", "$B_3$"]
    for curve in across.curves:
        assert np.allclose(curve.y, 2 / math.sqrt(4 * math.pi))


def test_maps_and_cuts_of_the_vortex_are_drawn() -> None:
    """Each row of half the cells of the converged solution is between two rows of that solution."""
    n = 96
    done = standing("orszag-tang", (n, n), time=0.5)
    result = figure_of(done, "orszag-tang", "maps")
    state = state_of(done)
    kinetic = 0.5 * sum(state[f"v_{a}"] ** 2 for a in "xyz")
    magnetic = 0.5 * sum(state[f"B_{a}"] ** 2 for a in "xyz")
    titles = ["density", "gas pressure", "specific kinetic energy", "magnetic pressure"]
    for panel, title, values in zip(
        result.panels, titles, (state["rho"], state["p"], kinetic, magnetic), strict=False
    ):
        assert isinstance(panel, Map)
        assert panel.title == title
        assert np.allclose(panel.section.values, values, rtol=1e-13)
    with np.load(DATA / "orszag-tang.npz") as converged_file:
        converged = restricted(converged_file["p"].astype(np.float64), (2 * n, n))
    # the rows next to y = -0.0723 and -0.1875; the latter is a face, so that the cell below is used
    for panel, row, at in zip(result.panels[4:], (41, 29), ("-0.06771", "-0.1927"), strict=True):
        assert isinstance(panel, Lines)
        run, line = panel.curves
        assert panel.title == f"gas pressure at $y = {at}$"
        assert np.allclose(run.y, state["p"][:, row], rtol=1e-13)
        assert np.allclose(line.y, converged[:, row], rtol=1e-12)
        assert np.allclose(line.x[::2] / 2 + line.x[1::2] / 2, run.x)
    done.simulation.start_new_run(time=0.4)
    early = figure_of(done, "orszag-tang", "maps")
    assert [len(panel.curves) for panel in early.panels if isinstance(panel, Lines)] == [1, 1]


def test_a_three_dimensional_blast_is_drawn_in_its_middle_plane() -> None:
    done = standing("blast", (8, 12, 8), time=0.02)
    result = figure_of(done, "blast", "maps")
    state, titles = state_of(done), ("density", "specific kinetic energy", "magnetic energy")
    squares = [0.5 * sum(state[f"{v}_{a}"] ** 2 for a in "xyz") for v in "vB"]
    for panel, title, values in zip(result.panels, titles, (state["rho"], *squares), strict=True):
        assert isinstance(panel, Map)
        assert panel.title == title
        assert panel.section.at == (("z", -0.0625),)
        assert np.allclose(panel.section.values, values[:, :, 3], rtol=1e-13)
