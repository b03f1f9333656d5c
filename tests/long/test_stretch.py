"""Stretched axes: positions of the map, differences of second order, walls, identical bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import halocline as hc
from stretched_axes import convection, wall_map

STRETCHED = st.integers(4, 40), st.floats(-0.8, 0.8), st.sampled_from(["face", "node"])


@settings(max_examples=4, deadline=None)
@given(*STRETCHED)
@example(4, -0.8, "node")
@example(4, 0.8, "face")
def test_differences_are_exact_for_low_polynomials(n: int, amount: float, walls: str) -> None:
    """First differences are exact for straight lines, and second ones for parabolas, between any points."""
    check_differences(n, amount, walls)


@settings(max_examples=50, deadline=None)
@given(*STRETCHED)
def test_differences_of_many_grids_are_exact_for_low_polynomials(n: int, amount: float, walls: str) -> None:
    check_differences(n, amount, walls)


def check_differences(n: int, amount: float, walls: str) -> None:
    grid = hc.Grid(n, extent=2.0, stretch={"x": wall_map(amount, 2.0)}, walls=walls)
    x = grid.positions()[0]
    u, v = grid.field("u"), grid.field("v")
    for field in (u, v):
        field.boundary.update({"x-": hc.Extrapolate(1), "x+": hc.Extrapolate(1)})
    sim = hc.Simulation(grid, hc.program(lambda u, v: u.set(u)), threads=1)
    sim[u], sim[v] = 3.0 - 2.0 * x, 1.0 + x - 4.0 * x**2
    inside = slice(1, -1)
    np.testing.assert_allclose(sim.gather(hc.derivative(u, 0))[inside], -2.0, rtol=1e-11)
    np.testing.assert_allclose(sim.gather(hc.second(v, 0))[inside], -8.0, rtol=1e-9)
    np.testing.assert_allclose(sim.gather(hc.second(u, 0))[inside], 0.0, atol=1e-9)


@pytest.mark.usefixtures("opencl")
def test_bits_do_not_depend_on_the_device() -> None:
    assert convection(device="opencl:0") == convection(threads=1)
