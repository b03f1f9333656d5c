"""Walls of individual axes, and fields with points on a wall."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.lang.boundary import BoundaryCondition
from suites import cases


def heat(
    grid: hc.Grid, location: str, boundary: dict[str, BoundaryCondition], **options: Any
) -> hc.Simulation:
    """Return a simulation of conduction from 0 to its steady state."""
    T = grid.field("T", location=location, boundary=boundary)
    h = min(grid.spacing)
    sim = hc.Simulation(
        grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.Euler(), dt=h * h / (2.2 * grid.ndim), **options
    )
    sim[T] = 0.0
    return sim


# --- walls of individual axes ---


def test_each_axis_has_its_own_walls() -> None:
    """The solution of -Δu = f is of second order if axes have different kinds of walls.

    The exact solution is u = sin(π x) sin(π y).
    """
    errors = []
    for n in (16, 32):
        grid = hc.Grid((n, n - 1), walls=("face", "node"))
        assert grid.spacing == (1 / n, 1 / n)
        u = grid.field("u", boundary=hc.Value(0))
        solution = hc.solve(
            lambda u: -hc.laplacian(u),
            u,
            lambda x, y: 2 * math.pi**2 * np.sin(math.pi * x) * np.sin(math.pi * y),
            rtol=1e-12,
        )
        x, y = u.positions
        exact = np.sin(math.pi * x)[:, None] * np.sin(math.pi * y)
        errors.append(np.abs(solution.fields.gather(u) - exact).max())
    assert abs(math.log2(errors[0] / errors[1]) - 2) < 0.05


# --- points on walls ---


def test_points_on_a_wall_have_the_value_of_its_condition() -> None:
    """Points on a wall have the value of its condition for every form of assignment.

    If two walls meet, the condition of the higher axis counts.
    """
    grid = hc.Grid((4, 3))
    sides = {"x-": hc.Value(1.0), "x+": hc.Value(lambda x, y: x + y), "y+": hc.Value(5.0)}
    u = grid.field("u", location="node", boundary={**sides, "other": hc.Symmetric()})
    expected = np.full((5, 4), 7.0)
    expected[0], expected[-1], expected[:, -1] = 1.0, 1.0 + np.arange(4) / 3, 5.0

    def untraceable(x: Any, y: Any) -> Any:
        return np.full(len(x), 7.0)

    for value in (7.0, np.full((5, 4), 7.0), lambda x, y: 7.0 + 0.0 * x, untraceable):
        sim = hc.Simulation(grid, hc.program(lambda u: u.set(u + 1.0)))
        sim[u] = value
        np.testing.assert_allclose(sim[u], expected, rtol=1e-15)
        sim.run(steps=2)
        np.testing.assert_allclose(sim[u], np.where(expected == 7.0, 9.0, expected), rtol=1e-15)


def test_values_on_a_wall_have_the_precision_of_the_field() -> None:
    """Values on a wall have the precision of the field, for any precision of the interior points."""
    grid = hc.Grid((4, 3))
    u = grid.field("u", location="face-x", boundary=hc.Value(0.3))
    w = grid.field("w", dtype="float32", boundary=hc.Value(0.3))
    single = grid.field("single", location="face-x", dtype="float32", boundary=hc.Value(0.3))

    @hc.program
    def step(u: Any, w: Any, single: Any) -> None:
        u.set(w[-1, 0] * w)
        single.set(u)

    sim = hc.Simulation(grid, step, threads=1)
    sim[w], sim[u], sim[single] = 0.1, 0.0, 0.0
    sim.run()
    assert (sim[u][[0, -1]] == 0.3).all()
    assert (sim[u][1:-1] == np.float32(0.1) * np.float32(0.1)).all()
    assert (sim[single][[0, -1]] == np.float32(0.3)).all()


def test_points_beside_a_wall_are_not_on_it() -> None:
    for walls, location in (("face", "cell"), ("node", "cell"), ("node", "face-x")):
        grid = hc.Grid(4, walls=walls)
        u = grid.field("u", location=location, boundary=hc.Value(3.0))
        sim = hc.Simulation(grid, hc.program(lambda u: u.set(u + 1.0)))
        sim[u] = 0.0
        sim.run(steps=1)
        assert np.array_equal(sim[u], np.ones(u.points))


@cases("location", ["cell", "node", "face-x"], default=["face-x"])
def test_a_value_and_a_slope_on_opposite_walls_give_the_linear_solution(location: str) -> None:
    """The steady state is 1 + 2 x, for points on the walls, half a spacing away, or one of each."""
    grid = hc.Grid((8, 6), periodic=(False, True), extent=(1.0, 0.75))
    sim = heat(grid, location, {"x-": hc.Value(1.0), "x+": hc.Derivative(2.0)})
    sim.run(until=12.0)
    T = grid.fields["T"]
    np.testing.assert_allclose(sim[T], (1 + 2 * T.positions[0])[:, None] + np.zeros(6), rtol=1e-9)


@pytest.mark.parametrize("method", ["cg", "cg-fused"])
def test_a_linear_problem_keeps_its_walls(method: str) -> None:
    """-u'' = 2 with u(0) = 1, u(1) = 3 is exact, since differences of second order are exact."""
    grid = hc.Grid(12)
    u = grid.field("u", location="node", boundary={"x-": hc.Value(1.0), "x+": hc.Value(3.0)})
    solution = hc.solve(lambda u: -hc.laplacian(u), u, 2.0, rtol=1e-10, method=method)
    x = u.positions[0]
    assert solution.converged
    np.testing.assert_allclose(solution.fields[u], 1 + 3 * x - x * x, rtol=1e-12)
    assert solution.iterations <= 11


@pytest.mark.ranks(1, 2, 3, long=(1, 2))
def test_bits_do_not_depend_on_the_rank_of_the_walls() -> None:
    from mpi4py import MPI

    def checksum(**options: Any) -> str:
        grid = hc.Grid((9, 7, 6))
        walls = {"x-": hc.Value(1.0), "y+": hc.Value(lambda x, y, z: x * z), "other": hc.Derivative(0.5)}
        sim = heat(grid, "node", walls, **options)
        sim.run(steps=5)
        return sim.checksum("T")

    ways = ({"threads": 1}, {"threads": 2, "patch": (3, 4, 5)}, {"decomposition": "1d-z", "threads": 1})
    checksums = [checksum(**options) for options in ways]
    assert checksums == [checksum(communicator=MPI.COMM_SELF, threads=1)] * 3


def test_values_on_walls_are_restored_after_writes_through_a_view() -> None:
    grid = hc.Grid(4)
    u, v = (grid.field(name, location="node", boundary=hc.Value(2.0)) for name in "uv")
    sim = hc.Simulation(grid, hc.program(lambda u, v: v.set(u[1] + u[-1])), threads=1)
    sim[u][:] = 5.0
    sim.run(steps=1)
    assert np.array_equal(sim[u], [2.0, 5.0, 5.0, 5.0, 2.0])
    assert np.array_equal(sim[v], [2.0, 7.0, 10.0, 7.0, 2.0])


def test_a_changed_parameter_is_on_the_wall_in_the_next_solve() -> None:
    grid = hc.Grid(8)
    hot = hc.parameter("hot")
    u = grid.field("u", location="node", boundary={"x-": hc.Value(hot), "x+": hc.Value(0.0)})
    problem = hc.LinearProblem(lambda u: -hc.laplacian(u), u, 0.0, parameters={"hot": 1.0})
    for value in (1.0, 2.0, -3.0):
        problem.parameters["hot"] = value
        assert problem.solve(rtol=1e-10).converged
        np.testing.assert_allclose(problem.fields[u], value * (1 - u.positions[0]), atol=1e-9)


def test_a_changed_parameter_is_on_the_wall_in_the_next_run() -> None:
    grid = hc.Grid(4)
    u = grid.field("u", location="node", boundary=hc.Value(hc.parameter("a")))
    step = hc.program(lambda u: u.set(u[1] + u[-1]))
    sim = hc.Simulation(grid, step, parameters={"a": 1.0}, threads=1)
    sim[u] = 0.0
    sim.parameters["a"] = 5.0
    sim.run(steps=1)
    assert np.array_equal(sim[u], [5.0, 5.0, 0.0, 5.0, 5.0])


def test_reading_a_field_between_runs_does_not_change_bits() -> None:
    def checksum(pieces: int, look: bool) -> str:
        grid = hc.Grid(8)
        u = grid.field("u", location="node", boundary=hc.Value(lambda x: hc.parameter("a") * x))
        sim = hc.Simulation(
            grid, lambda u: {u: 1 + hc.laplacian(u)}, scheme=hc.RK3(), dt=1e-3, parameters={"a": 0.3}
        )
        for _ in range(pieces):
            sim.run(steps=80 // pieces)
            if look:
                sim[u].sum()
        return sim.checksum(u)

    assert checksum(1, False) == checksum(8, False) == checksum(80, True)


def test_a_wall_value_that_changes_in_a_run_is_rejected() -> None:
    grid = hc.Grid(8)
    grid.field("u", location="node", boundary=hc.Value(lambda x: hc.sin(hc.parameter("t"))))
    with pytest.raises(hc.InputError, match=r"'u' lie on a wall\. The value on this wall reads t, which"):
        hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-3)
