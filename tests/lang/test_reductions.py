"""Reductions over points, compared with NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import halocline as hc
from small_programs import keep, run, square

# --- coordinates, places, reductions ---


def test_reductions_run_over_the_points_of_their_expression() -> None:
    """Reductions run over the points of their expression.

    A face field has one more point at the upper wall; a difference of its values belongs to cells. The result
    does not depend on an assignment to the field in the same sweep.
    """
    grid = hc.Grid((4, 3))
    u = grid.field("u", boundary=hc.Value(0.0))
    F = grid.field("F", location="face-x")

    def program() -> None:
        F.set(u - u[-1, 0] + 1.0)
        for name, e in {
            "a": F,
            "b": F[1, 0] - F,
            "c": u * 1.0,
            "d": hc.stage(F * 2.0, storage="patch"),
            "e": F[0, 0] + u,
        }.items():
            hc.scalar(f"n_{name}").set(hc.count(e < 1e9))
        hc.scalar("last").set(hc.value(F, (-1, 2)))

    sim = run(grid, program, {u: 5.0})
    assert [sim.values[f"n_{n}"] for n in "abcde"] == [15, 12, 12, 15, 12]
    assert sim.values["last"] == -5.0 - 5.0 + 1.0


def test_reductions_agree_with_numpy() -> None:
    grid, u, v = square()
    sim = hc.Simulation(grid, hc.program(keep))
    x, y = np.random.default_rng(1).uniform(-1, 1, (2, 8, 6))
    sim[u], sim[v] = x, y
    A = grid.vector("A")
    assert len(A) == 2
    results = sim.evaluate(
        hc.sum(u), hc.dot(u, v), hc.norm(u - v), hc.min(u), hc.max(abs(v)), hc.count((u > 0) & ~(v > 0)),
        hc.value(u * v, (-1, 2)), hc.norm(hc.Vector((u, v))), hc.sum(hc.dot((u, v), (v, u))),
    )  # fmt: skip
    expected = [
        math.fsum(x.ravel()), (x * y).sum(), np.linalg.norm(x - y), x.min(), abs(y).max(),
        np.count_nonzero((x > 0) & ~(y > 0)), x[-1, 2] * y[-1, 2],
        math.hypot(np.linalg.norm(x), np.linalg.norm(y)), 2 * (x * y).sum(),
    ]  # fmt: skip
    np.testing.assert_allclose(results, expected, rtol=1e-14)
    assert results[0] == expected[0]  # a sum is rounded once


def test_reductions_in_equations_see_the_values_before_the_step() -> None:
    grid = hc.Grid(5)
    u, v, w = (grid.field(n) for n in "uvw")

    def equations(u: Any, v: Any, w: Any) -> Any:
        return {u: v, v: -u, w: hc.sum(u) * v + hc.max(v)}

    sim = hc.Simulation(grid, equations, scheme=hc.Euler(), dt=1.0)
    x = np.arange(5.0)
    sim[u], sim[v], sim[w] = x, x + 1, 0.0
    sim.run(steps=1)
    assert sim[w].tolist() == (10 * (x + 1) + 5).tolist()
    assert sim[v].tolist() == [1.0] * 5


def test_reductions_may_contain_reductions() -> None:
    grid = hc.Grid(5)
    u, v = grid.field("u"), grid.field("v")

    def program() -> None:
        deviation = hc.stage(u - hc.sum(u) / 5.0, storage="patch")
        v.set(deviation * deviation + hc.sum((u - hc.sum(u) / 5.0) ** 2))
        hc.scalar("q").set(hc.max(v - hc.min(v - u)))
        hc.stop(hc.sum(v) > 1e9, "never")

    sim = run(grid, program, {u: np.arange(5.0)})
    assert sim[v].tolist() == [14, 11, 10, 11, 14]
    assert sim.values["q"] == 14 - min(14 - 0, 11 - 1, 10 - 2, 11 - 3, 14 - 4)


# --- operators ---


def test_reductions_may_contain_only_coordinates() -> None:
    grid = hc.Grid((8, 4), extent=(1.0, 2.0))
    grid.field("u")
    sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=1.0)
    x = grid.x
    assert sim.evaluate(hc.count(x < 0.5), hc.sum(x), hc.first(x > 0.5)) == (16.0, 16.0, 16.0)


def test_the_first_point_of_a_condition_is_found() -> None:
    grid = hc.Grid((4, 6))
    cells, faces = grid.field("cells"), grid.field("faces", location="face-y")

    @hc.program
    def step(cells: Any, faces: Any) -> None:
        cells.set(cells * 1.0)
        faces.set(faces * 1.0)

    sim = hc.Simulation(grid, step)
    for name, points in (("cells", (4, 6)), ("faces", (4, 7))):
        values = np.zeros(points)
        values[2, 5] = values[3, 0] = -1.0
        sim[name] = values
    first = sim.evaluate(hc.first(cells < 0), hc.first(faces < 0), hc.first(cells > 0))
    assert np.unravel_index(int(first[0]), (4, 6)) == (2, 5)
    assert np.unravel_index(int(first[1]), (4, 7)) == (2, 5)
    assert first[2] == np.inf
