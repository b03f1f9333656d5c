"""Footprints of expressions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import halocline as hc
from compiled_programs import number, schedule_of
from halocline.compile.compiler import compile_program
from halocline.compile.footprint import Footprint
from halocline.compile.halo import shifted
from halocline.compile.schedule import Schedule, Sweep
from halocline.lang import trace
from halocline.lang.expression import walk
from halocline.physics.mhd.equations import shock_profile


def reads(sweep: Sweep, schedule: Schedule, name: str) -> dict[tuple[int, ...], tuple[int, ...]]:
    return dict(sweep.reads.get(number(schedule, name), Footprint()))


def test_a_shifted_box_covers_sides_and_the_corner_between_them() -> None:
    assert dict(Footprint.from_offsets([(2, 0)])) == {(1, 0): (2, 0)}
    assert dict(Footprint.from_offsets([(1, -2)])) == {(1, 0): (1, 0), (0, -1): (0, 2), (1, -1): (1, 2)}
    assert len(Footprint.from_offsets([(1, 1, 1)]).segments) == 7
    assert not Footprint.from_offsets([(0, 0, 0)])


def test_a_footprint_is_the_union_of_those_of_its_accesses() -> None:
    draw = np.random.default_rng(1)
    for _ in range(50):
        offsets = [tuple(map(int, offset)) for offset in draw.integers(-3, 4, (draw.integers(0, 12), 3))]
        union = Footprint()
        for offset in offsets:
            union |= Footprint.from_offsets([offset])
        assert Footprint.from_offsets(offsets) == union


def test_large_neighbourhoods_are_analysed_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The analysis of a large footprint is bounded: it forms fewer than a million sums of offsets.

    Shock viscosity reads the velocity in a cube of 13 cells at second order. A test of all pairs of offsets
    would need 5 million sums.
    """
    sums = []

    def counted(offsets: frozenset[tuple[int, ...]], by: frozenset[tuple[int, ...]]) -> Any:
        sums.append(len(offsets) * len(by))
        return shifted(offsets, by) if sums[-1] < 10**5 else frozenset()

    monkeypatch.setattr("halocline.compile.halo.shifted", counted)
    grid = hc.Grid((16, 16, 16), periodic=True)
    u = grid.vector("u")

    @hc.program
    def push() -> None:
        for _ in range(2):
            rate = shock_profile(u)
            for component in u:
                component.set(component + 1e-3 * rate)

    with hc.order(2):
        compile_program(push.trace(), grid)
    assert sum(sums) < 10**6


# Sixth-order central differences (Brandenburg 2003, astro-ph/0109497), and mixed ones along the two diagonals
# of a plane.
FIRST = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}
SECOND = {1: 270 / 180, 2: -27 / 180, 3: 2 / 180}
MIXED = {1: 270 / 720, 2: -27 / 720, 3: 2 / 720}


def numpy_first(f: np.ndarray, axis: int, h: float) -> np.ndarray:
    return sum(w * (np.roll(f, -m, axis) - np.roll(f, m, axis)) for m, w in FIRST.items()) / h


def numpy_second(f: np.ndarray, a: int, b: int, h: float) -> np.ndarray:
    if a == b:
        return (
            sum(w * (np.roll(f, -m, a) + np.roll(f, m, a)) for m, w in SECOND.items()) - 490 / 180 * f
        ) / h**2
    return (
        sum(
            w * s * t * np.roll(f, (-s * m, -t * m), (a, b))
            for m, w in MIXED.items()
            for s in (-1, 1)
            for t in (-1, 1)
        )
        / h**2
    )


def test_terms_of_magnetohydrodynamics_have_the_expected_footprints() -> None:
    """Gradients, stresses, second and mixed derivatives read 55 points and no corner."""
    n, h = 12, 1 / 12
    grid = hc.Grid((n, n, n), periodic=True)
    q, U, A = grid.field("q"), grid.vector("U"), grid.vector("A")
    rate, current = grid.field("rate"), grid.field("current")

    @hc.program
    def step(q: Any, U: Any, A: Any) -> None:
        with hc.order(6):
            stress = sum(hc.dot(row, hc.grad(q)) for row in hc.traceless_strain(U))
            around = U[0] * hc.mixed(q, 0, 1) + U[1] * hc.mixed(q, 1, 2) + U[2] * hc.mixed(q, 0, 2)
            rate.set(around + hc.laplacian(q) - hc.dot(U, hc.grad(q)) + 2 * stress)
            current.set(sum(hc.derivative(A[i], 0, i) for i in range(3)) - hc.laplacian(A[0]))

    sim = hc.Simulation(grid, step)
    random = np.random.default_rng(4)
    values = {f.name: random.uniform(-1, 1, grid.shape) for f in (q, *U, *A)}
    for name, value in values.items():
        sim[name] = value
    sim.run(steps=1)
    exchange, sweep = sim.schedule.sweeps()  # the program assigns no field that it reads
    assert not exchange.computes
    assert not sweep.exchange
    edges = {
        tuple(a * (k == i) + b * (k == j) for k in range(3))
        for i, j in ((0, 1), (0, 2), (1, 2)) for a in (-1, 1) for b in (-1, 1)
    }  # fmt: skip
    sides = {tuple(d * (k == i) for k in range(3)) for i in range(3) for d in (-1, 1)}
    footprint = reads(sweep, sim.schedule, "q")
    assert set(footprint) == edges | sides
    assert all(width == tuple(3 * abs(d) for d in direction) for direction, width in footprint.items())
    with trace.order(6):
        mixed = [hc.mixed(q, *pair) for pair in ((0, 1), (1, 2), (0, 2))]
        terms = [*mixed, hc.laplacian(q), *hc.grad(q)]
        points = {leaf.attribute[2] for leaf in walk(terms) if leaf.op == "read"}
    assert len(points) == 1 + 18 + 36
    body = sim.schedule.source.partition("#else")[0]
    # rows of these points: the own row, rows along the other axes, and rows on the diagonals between them
    assert len(set(re.findall(r"hc_lanes_load\((q_at_\w+) \+ k", body))) == 1 + 12 + 12

    u, a, s = [values[f.name] for f in U], [values[f.name] for f in A], values["q"]
    gu = [[numpy_first(f, i, h) for i in range(3)] for f in u]
    gs = [numpy_first(s, i, h) for i in range(3)]
    div = gu[0][0] + gu[1][1] + gu[2][2]
    expected = sum(numpy_second(s, i, i, h) - u[i] * gs[i] for i in range(3))
    expected = expected + sum(
        u[c] * numpy_second(s, *pair, h) for c, pair in enumerate(((0, 1), (1, 2), (0, 2)))
    )
    for i in range(3):
        expected = expected + 2 * sum(
            ((gu[i][c] + gu[c][i]) / 2 - (i == c) * div / 3) * gs[c] for c in range(3)
        )
    np.testing.assert_allclose(sim[rate], expected, rtol=1e-11, atol=1e-9)
    expected = sum(numpy_second(a[c], 0, c, h) for c in range(3)) - sum(
        numpy_second(a[0], c, c, h) for c in range(3)
    )
    np.testing.assert_allclose(sim[current], expected, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("order", [2, 4, 6, 8])
def test_a_laplacian_reads_sides_only(order: int) -> None:
    grid = hc.Grid((16, 16, 16), periodic=True)
    grid.field("u")
    grid.field("v")

    def program(u: Any, v: Any) -> None:
        v.set(hc.laplacian(u, order=order))

    schedule = schedule_of(grid, program)
    (sweep,) = schedule.sweeps()
    width = order // 2
    expected = {}
    for axis in range(3):
        for side in (-1, 1):
            direction, widths = [0, 0, 0], [0, 0, 0]
            direction[axis], widths[axis] = side, width
            expected[tuple(direction)] = tuple(widths)
    assert reads(sweep, schedule, "u") == expected
    assert schedule.fields[number(schedule, "u")].halo == ((width, width),) * 3
    assert schedule.fields[number(schedule, "v")].halo == ((0, 0),) * 3


@pytest.mark.parametrize("order", [2, 6])
def test_mixed_derivatives_read_sides_and_edges_of_their_plane_but_no_corners(order: int) -> None:
    grid = hc.Grid((16, 16, 16), periodic=True)
    grid.field("u")
    grid.field("v")

    def program(u: Any, v: Any) -> None:
        v.set(hc.mixed(u, "x", "z", order=order))

    schedule = schedule_of(grid, program)
    (sweep,) = schedule.sweeps()
    w = order // 2
    expected = {(s, 0, 0): (w, 0, 0) for s in (-1, 1)} | {(0, 0, s): (0, 0, w) for s in (-1, 1)}
    expected |= {(s, 0, t): (w, 0, w) for s in (-1, 1) for t in (-1, 1)}
    assert reads(sweep, schedule, "u") == expected


def test_grad_div_of_a_vector_reads_edges_but_no_corners() -> None:
    """The current of MHD reads no corner segment: only sides, and edges in planes that contain x."""
    grid = hc.Grid((16, 16, 16), periodic=True)
    A, j = grid.vector("A"), grid.vector("j")
    assert A is not j

    def program(A: Any, j: Any) -> None:
        rows = [hc.second(A[i], i) for i in range(3)]
        rows = [rows[i] + sum(hc.mixed(A[k], i, k) for k in range(3) if k != i) for i in range(3)]
        j.set([row - hc.laplacian(A[i]) for i, row in enumerate(rows)])

    schedule = schedule_of(grid, program)
    (sweep,) = schedule.sweeps()
    directions = set(reads(sweep, schedule, "A_x"))
    assert not any(all(d) for d in directions)
    edges = {d for d in directions if sum(map(abs, d)) == 2}
    assert edges == {d for d in edges if d[0]}  # A_x is differentiated along x and one other axis
    assert len(edges) == 8


def test_footprints_compose_through_stages() -> None:
    grid = hc.Grid((16, 16), periodic=True)
    grid.field("u")
    grid.field("v")

    def program(u: Any, v: Any) -> None:
        slope = hc.stage(u - u[-1, 0], storage="patch")
        limited = hc.stage(slope * slope[2, 0], storage="patch")
        v.set(limited[0, 1] - limited[-1, 0])

    schedule = schedule_of(grid, program)
    (sweep,) = schedule.sweeps()
    # limited at (0, 1), (-1, 0); slope 0 or 2 further along x; u 0 or -1 further
    offsets = [(a + s - d, b) for a, b in ((0, 1), (-1, 0)) for s in (0, 2) for d in (0, 1)]
    assert reads(sweep, schedule, "u") == dict(Footprint.from_offsets(offsets))
    assert schedule.fields[number(schedule, "u")].halo == ((2, 2), (0, 1))
    assert len(sweep.scratch) == 2


def test_a_face_field_reads_one_more_layer_at_its_upper_wall() -> None:
    grid = hc.Grid((8, 8), periodic=(False, True))
    grid.field("u", boundary=hc.Value(0.0))
    grid.field("F", location="face-x", boundary=hc.Value(0.0))

    def program(u: Any, F: Any) -> None:
        F.set(u - u[-1, 0])

    schedule = schedule_of(grid, program)
    (sweep,) = schedule.sweeps()
    assert {(f.side, f.depth) for f in sweep.fills} == {(-1, 1), (1, 1)}
    # the halo is exchanged only from the lower neighbour
    assert dict(sweep.exchange[number(schedule, "u")]) == {(-1, 0): (1, 0)}

    def back(u: Any, F: Any) -> None:
        u.set(F[1, 0] - F)

    schedule = schedule_of(grid, back)
    (sweep,) = schedule.sweeps()
    assert not sweep.fills  # the face on the wall belongs to the field
    assert dict(sweep.exchange[number(schedule, "F")]) == {(1, 0): (1, 0)}
