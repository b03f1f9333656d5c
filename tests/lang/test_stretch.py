"""Stretched axes: points from the map, differences of second order, walls, identical bits everywhere."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import halocline as hc
from halocline.io.plane import draw_plane
from halocline.io.section import cut
from loops import some
from stretched_axes import convection, one_wall, wall_map
from suites import cases


def square(n: int, walls: str = "face") -> hc.Grid:
    """Return a grid with two stretched axes."""
    maps = {"x": one_wall, "y": wall_map(0.6)}
    return hc.Grid((n, n), extent=(2.0, 1.0), origin=(1.0, 0.0), walls=walls, stretch=maps)


def values(grid: hc.Grid, *expressions: Any) -> list[np.ndarray]:
    sim = hc.Simulation(grid, hc.program(lambda: hc.scalar("kept").set(0.0)), threads=1)
    return [sim.gather(e) for e in expressions]


# --- points ---


@pytest.mark.parametrize("walls", ["face", "node"])
@cases("location", ["cell", "node", "face-x"], default=["face-x"])
def test_points_have_the_coordinates_of_the_map(walls: str, location: str) -> None:
    grid = square(7, walls)
    even = hc.Grid((7, 7), extent=(2.0, 1.0), origin=(1.0, 0.0), walls=walls)
    f, e = (g.field("f", location=location) for g in (grid, even))
    expected = [one_wall(e.positions[0]), wall_map(0.6)(e.positions[1])]
    x, y = (grid.field(name, location=location) for name in "xy")
    sim = hc.Simulation(grid, hc.program(lambda x, y: hc.assign({x: f.coordinates[0], y: f.coordinates[1]})))
    sim.run(steps=1)
    np.testing.assert_allclose(sim[x], np.repeat(expected[0][:, None], sim[x].shape[1], 1), rtol=1e-14)
    np.testing.assert_allclose(sim[y], np.repeat(expected[1][None], sim[y].shape[0], 0), atol=1e-15)
    for have, want in zip(f.positions, expected, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-14, atol=1e-15)


def test_the_spacing_is_the_minimum() -> None:
    grid = square(16)
    assert grid.spacing == tuple(np.diff(line).min() for line in grid.positions())
    assert grid.spacing[0] < grid.even_spacing(0) == 0.125


# --- differences ---


@cases("location", ["cell", "node", "face-x", "face-y"], default=["cell", "face-x"])
def test_differences_are_of_second_order(location: str) -> None:
    """Differences are of second order inside; next to walls the order depends on the conditions."""
    worst = []
    for n in (32, 64):
        grid = square(n)
        u = grid.field("u", location=location, boundary=hc.Extrapolate(3))
        sim = hc.Simulation(grid, hc.program(lambda u: u.set(u)), threads=1)
        x, y = np.meshgrid(*u.positions, indexing="ij")
        sim[u] = np.sin(2 * x) * np.exp(y)
        exact = {
            hc.derivative(u, 0): 2 * np.cos(2 * x) * np.exp(y),
            hc.derivative(u, 1): np.sin(2 * x) * np.exp(y),
            hc.derivative(u, 0, 1): 2 * np.cos(2 * x) * np.exp(y),
            hc.second(u, 0): -4 * np.sin(2 * x) * np.exp(y),
            hc.laplacian(u): -3 * np.sin(2 * x) * np.exp(y),
        }
        out = grid.field("out", location=location)
        errors = []
        for expression, want in exact.items():
            sim[out] = expression
            cut = slice(n // 8, -n // 8)
            errors.append(np.abs(sim.gather(out) - want)[cut, cut].max())
        worst.append(errors)
    for coarse, fine in some(zip(*worst, strict=True)):
        assert abs(math.log2(coarse / fine) - 2) < 0.2


# --- walls ---


SMOOTH = {
    "values": {"x-": hc.Value(lambda x: np.exp(-x)), "x+": hc.Value(math.exp(-3))},
    "values of order 3": hc.Value(lambda x: np.exp(-x), order=3),
    "a slope above": {"x-": hc.Value(math.exp(-1)), "x+": hc.Derivative(-math.exp(-3))},
    "a slope below": {"x-": hc.Derivative(lambda x: -np.exp(-x)), "x+": hc.Value(math.exp(-3))},
}


def steady(n: int, walls: str, location: str, boundary: Any) -> float:
    """Return the error of the steady state of u'' = exp(-x), reached with a time step per point."""
    grid = hc.Grid(n, extent=2.0, origin=1.0, walls=walls, stretch={"x": one_wall})
    u = grid.field("u", location=location, boundary=boundary)
    (x,) = u.coordinates
    pace = 0.08 * (hc.shift(x, 0) - hc.shift(x, 0, -1)) ** 2
    sim = hc.Simulation(
        grid, lambda u: {u: pace * (hc.laplacian(u) - hc.exp(-x))}, scheme=hc.Euler(), dt=1.0, threads=1
    )
    sim[u] = lambda x: 0.3 - 0.1 * x
    sim.run(steps=25 * n * n)
    return float(np.abs(sim[u] - np.exp(-u.positions[0])).max())


@cases(
    "name, location, walls",
    itertools.product(SMOOTH, ("cell", "node"), ("face", "node")),
    lambda case: case[1:] == ("cell", "face") or case == ("values", "node", "node"),
)
def test_solutions_between_walls_are_of_second_order(walls: str, location: str, name: str) -> None:
    coarse, fine = (steady(n, walls, location, SMOOTH[name]) for n in (24, 48))
    assert math.log2(coarse / fine) > 1.8, (coarse, fine)


@cases("method", ["cg", "cg-fused"], default=["cg-fused"])
def test_a_linear_problem_may_be_scaled_by_cell_widths(method: str) -> None:
    """-Δu is symmetric only if it is multiplied by the widths of cells.

    The points on the walls have given values.
    """
    errors = []
    for n in (16, 32):
        grid = square(n)
        u = grid.field("u", location="node", boundary=hc.Value(lambda x, y: np.sin(x) * np.cos(2 * y)))
        x, y = u.coordinates
        area = 0.25 * (hc.shift(x, 0) - hc.shift(x, 0, -1)) * (hc.shift(y, 1) - hc.shift(y, 1, -1))

        def operator(u: Any, area: Any = area) -> Any:
            return -area * hc.laplacian(u)

        f = area * (5 * hc.sin(x) * hc.cos(2 * y))
        solution = hc.solve(operator, u, f, rtol=1e-10, method=method)
        assert solution.converged
        exact = np.sin(u.positions[0])[:, None] * np.cos(2 * u.positions[1])
        errors.append(np.abs(solution.fields.gather(u) - exact).max())
    assert abs(math.log2(errors[0] / errors[1]) - 2) < 0.1


# --- identical bits everywhere ---


@pytest.mark.ranks(1, 2, 3, long=(1, 2))
def test_bits_do_not_depend_on_ranks() -> None:
    from mpi4py import MPI

    ways = ({"threads": 1}, {"threads": 2, "patch": (3, 4, 5)}, {"decomposition": "1d-z", "threads": 1})
    checksums = [convection(**options) for options in ways]
    assert checksums == [convection(communicator=MPI.COMM_SELF, threads=1)] * 3


# --- invalid maps and differences ---


def grid_of(axis: str, function: Any, **options: Any) -> hc.Grid:
    return hc.Grid((8, 8), stretch={axis: function}, **options)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hc.Grid(8, stretch=wall_map(0.5)), "expected a map for each axis"),
        (lambda: grid_of("z", wall_map(0.5)), "stretch has axis 'z'; expected some of x, y"),
        (lambda: grid_of("x", 2.0), "the map of axis x is 2.0; expected a function"),
        (lambda: grid_of("x", wall_map(0.5), periodic=True), "axis x is periodic and cannot be stretched"),
        (
            lambda: grid_of("y", lambda y: 1.1 * y),
            "the map of axis y maps 1 to 1.1; expected 1, because the map must keep both",
        ),
        (
            lambda: grid_of("y", wall_map(1.2)),
            "the map of axis y does not increase from 0 to 0.0625: its values are",
        ),
        (lambda: grid_of("y", lambda y: 1.5 * y - 0.5 * y**3), "beyond the wall, where ghosts lie"),
        (
            lambda: grid_of("y", lambda y: y[:1]),
            r"returns an array of shape \(1,\) and dtype float64 for coordinates of shape \(2,\); expected",
        ),
        (lambda: grid_of("y", lambda y: y.wrong), "the map of axis y raised AttributeError"),
        (lambda: grid_of("y", lambda y: np.expm1(y) / np.expm1(1.0)), "the map of axis y cannot be traced"),
        (
            lambda: grid_of("y", lambda y: y + 0j),
            r"the map of axis y returns an array of shape \(2,\) and dtype complex128",
        ),
        (
            lambda: hc.derivative(square(8).field("u"), 0, order=4),
            "difference of order 4 along axis x, which is",
        ),
        (
            lambda: hc.laplacian(square(8).field("u"), order=6),
            "a difference of order 6 along axis x, which is",
        ),
        (
            lambda: hc.hyperdiffusion(square(8).field("u")),
            "a sixth derivative along axis x, which is stretched",
        ),
        (lambda: hc.upwinding(square(8).field("u"), (1, 1)), "upwinding along axis x, which is stretched"),
        (lambda: square(8).h(1), r"axis y is stretched: its spacing differs .* hc.shift\(y, 1\) - y"),
        (lambda: hc.derivative(square(8).x[1, 0], 0), "its location is unknown"),
        (
            lambda: hc.derivative(hc.shift(square(8).field("u", location="face-x"), 0), 0),
            "its location is unknown, because it reads at explicit offsets. Declare the location",
        ),
    ],
)
def test_invalid_stretched_axes_are_rejected(make: Any, words: str) -> None:
    with pytest.raises(hc.InputError, match=words):
        make()


def test_derivative_conditions_of_higher_order_are_rejected() -> None:
    grid = square(8)
    grid.field("u", boundary={"x-": hc.Derivative(0.0, order=3), "other": hc.Value(0.0)})
    with pytest.raises(hc.InputError, match=r"Derivative\(order=3\) on a wall of a stretched axis"):
        hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-3).run(steps=1)


def test_a_stage_uses_the_spacing_of_its_location() -> None:
    grid = hc.Grid(16, extent=2.0, origin=1.0, stretch={"x": one_wall})
    b, u = grid.field("b", location="face-x", boundary=hc.Extrapolate(3)), grid.field("u")

    def program(b: Any, u: Any) -> None:
        u.set(hc.stage(hc.derivative(hc.stage(0.5 * (b[1] + b), location="cell"), 0), location="cell"))

    sim = hc.Simulation(grid, hc.program(program), threads=1)
    sim[b] = lambda x: 3.0 * x
    sim.run(steps=1)
    edges, x = b.positions[0], u.positions[0]
    mean = 1.5 * (edges[1:] + edges[:-1])
    np.testing.assert_allclose(sim[u][1:-1], (mean[2:] - mean[:-2]) / (x[2:] - x[:-2]), rtol=1e-12)


def test_a_picture_shows_points_at_their_coordinates(tmp_path: Path) -> None:
    grid = square(16)
    u = grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(u)), threads=1)
    sim[u] = lambda x, y: x + y
    hc.picture(sim, u, tmp_path / "u.png")
    assert (tmp_path / "u.png").stat().st_size > 1000
    axes = Figure().subplots()
    drawn = cut(sim, u)
    assert drawn is not None
    mesh = draw_plane(axes, drawn).get_coordinates()
    for axis, line in enumerate(u.positions):  # points of each cell are between its edges
        edges = mesh[0, :, 0] if axis == 0 else mesh[:, 0, 1]
        assert np.all((edges[:-1] < line) & (line < edges[1:]))
        np.testing.assert_allclose(edges[1:-1], 0.5 * (line[1:] + line[:-1]), rtol=1e-14)
