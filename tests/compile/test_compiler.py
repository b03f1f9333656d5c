"""What the compiler makes of programs: footprints, exchanges, costs, multiply-adds, code; and its cache."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.driver import compile_library
from halocline.compile.footprint import Footprint
from halocline.compile.halo import shifted
from halocline.compile.schedule import Loop, Schedule, Sweep
from halocline.compile.targets import cpu
from halocline.errors import CompileError, InputError
from halocline.lang import trace
from halocline.lang.expression import walk
from halocline.physics.mhd.shock import shock_profile
from halocline.solvers.cg import METHODS
from hang import HANG
from kernels import kernel_of
from kernels import ops as kernel_ops
from loops import some

# --- footprints ---


def schedule_of(grid: hc.Grid, function: Callable[..., Any]) -> Schedule:
    """The schedule of a program whose arguments are fields and vectors of the grid."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return compile_program(hc.program(function).trace(*(grid.named(n) for n in names)), grid)


def number(schedule: Schedule, name: str) -> int:
    return [f.name for f in schedule.fields].index(name)


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
        offsets = [tuple(map(int, at)) for at in draw.integers(-3, 4, (draw.integers(0, 12), 3))]
        union = Footprint()
        for offset in offsets:
            union |= Footprint.from_offsets([offset])
        assert Footprint.from_offsets(offsets) == union


def test_what_reads_a_large_neighbourhood_is_analysed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shock viscosity reads the velocity in a cube of 13 cells at second order: whether its ghosts could be
    computed instead of received is not asked of each of 5 million sums of two of them."""
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


def test_the_parts_of_a_right_hand_side_of_magnetohydrodynamics() -> None:
    """Gradients, a curl of a curl, stresses, all second and mixed derivatives: 55 points, no corner."""
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
    exchange, sweep = sim.schedule.sweeps()  # nothing that is read is assigned
    assert not exchange.computes
    assert not sweep.exchange
    edges = {
        tuple(a * (k == i) + b * (k == j) for k in range(3))
        for i, j in ((0, 1), (0, 2), (1, 2)) for a in (-1, 1) for b in (-1, 1)
    }  # fmt: skip
    sides = {tuple(d * (k == i) for k in range(3)) for i in range(3) for d in (-1, 1)}
    found = reads(sweep, sim.schedule, "q")
    assert set(found) == edges | sides
    assert all(width == tuple(3 * abs(d) for d in direction) for direction, width in found.items())
    with trace.order(6):
        mixed = [hc.mixed(q, *pair) for pair in ((0, 1), (1, 2), (0, 2))]
        terms = [*mixed, hc.laplacian(q), *hc.grad(q)]
        points = {leaf.attribute[2] for leaf in walk(terms) if leaf.op == "read"}
    assert len(points) == 1 + 18 + 36
    body = sim.schedule.source.partition("#else")[0]
    # the rows of these points: its own, those along the other axes, and those on the diagonals between these
    assert len(set(re.findall(r"hc_lanes_load\((q_at_\w+) \+ k", body))) == 1 + 12 + 12

    u, a, s = [values[f.name] for f in U], [values[f.name] for f in A], values["q"]
    gu = [[numpy_first(f, i, h) for i in range(3)] for f in u]
    gs = [numpy_first(s, i, h) for i in range(3)]
    div = gu[0][0] + gu[1][1] + gu[2][2]
    want = sum(numpy_second(s, i, i, h) - u[i] * gs[i] for i in range(3))
    want = want + sum(u[c] * numpy_second(s, *pair, h) for c, pair in enumerate(((0, 1), (1, 2), (0, 2))))
    for i in range(3):
        want = want + 2 * sum(((gu[i][c] + gu[c][i]) / 2 - (i == c) * div / 3) * gs[c] for c in range(3))
    np.testing.assert_allclose(sim[rate], want, rtol=1e-11, atol=1e-9)
    want = sum(numpy_second(a[c], 0, c, h) for c in range(3)) - sum(
        numpy_second(a[0], c, c, h) for c in range(3)
    )
    np.testing.assert_allclose(sim[current], want, rtol=1e-11, atol=1e-9)


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
    want = {}
    for axis in range(3):
        for side in (-1, 1):
            direction, widths = [0, 0, 0], [0, 0, 0]
            direction[axis], widths[axis] = side, width
            want[tuple(direction)] = tuple(widths)
    assert reads(sweep, schedule, "u") == want
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
    want = {(s, 0, 0): (w, 0, 0) for s in (-1, 1)} | {(0, 0, s): (0, 0, w) for s in (-1, 1)}
    want |= {(s, 0, t): (w, 0, w) for s in (-1, 1) for t in (-1, 1)}
    assert reads(sweep, schedule, "u") == want


def test_grad_div_of_a_vector_reads_edges_but_no_corners() -> None:
    """The current of MHD, as the client of design.md has it: 3 of the 8 + 12 + 6 segments' kinds."""
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


def test_a_face_field_reads_a_layer_more_at_its_upper_wall() -> None:
    grid = hc.Grid((8, 8), periodic=(False, True))
    grid.field("u", boundary=hc.Value(0.0))
    grid.field("F", location="face-x", boundary=hc.Value(0.0))

    def program(u: Any, F: Any) -> None:
        F.set(u - u[-1, 0])

    schedule = schedule_of(grid, program)
    (sweep,) = schedule.sweeps()
    assert {(f.side, f.depth) for f in sweep.fills} == {(-1, 1), (1, 1)}
    # and travels only from below
    assert dict(sweep.exchange[number(schedule, "u")]) == {(-1, 0): (1, 0)}

    def back(u: Any, F: Any) -> None:
        u.set(F[1, 0] - F)

    schedule = schedule_of(grid, back)
    (sweep,) = schedule.sweeps()
    assert not sweep.fills  # the face on the wall is the field's own
    assert dict(sweep.exchange[number(schedule, "F")]) == {(1, 0): (1, 0)}


# --- what travels ---


def poisson(method: str) -> Schedule:
    grid = hc.Grid((64, 64), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    limits = [hc.Scalar("rtol"), hc.Scalar("max_iterations")]
    return compile_program(METHODS[method].trace(lambda v: -hc.laplacian(v), u, grid.x, *limits), grid)


def body(schedule: Schedule) -> list[Sweep]:
    (loop,) = (o for o in schedule.operations if isinstance(o, Loop))
    return [o for o in loop.body if isinstance(o, Sweep)]


def test_fused_conjugate_gradients_exchange_r_and_never_p() -> None:
    schedule = poisson("cg-fused")
    p, r = number(schedule, "p"), number(schedule, "r")
    first, second = body(schedule)
    assert set(first.exchange) == {r}
    assert set(second.exchange) == set()
    assert first.halo_kernel is not None  # p is computed in the halo
    assert dict(first.halo_extent) == dict(first.exchange[r])
    assert all(p not in sweep.exchange for sweep in body(schedule))


def test_plain_conjugate_gradients_exchange_p_and_never_r() -> None:
    schedule = poisson("cg")
    p, r = number(schedule, "p"), number(schedule, "r")
    exchanged = [set(sweep.exchange) for sweep in body(schedule)]
    assert {p} in exchanged
    assert all(r not in fields for fields in exchanged)


def test_streams_of_memory_of_an_iteration() -> None:
    """Fused: r, p read, p' written; p', x, r read, x, r written: 8. Plain: p read, q written; x, p, r, q
    read, x, r written; r, p read, p written: 11."""
    assert sum(s.bytes for s in body(poisson("cg-fused"))) == 8 * 8
    assert sum(s.bytes for s in body(poisson("cg"))) == 11 * 8


def test_a_wider_read_later_is_exchanged_in_full() -> None:
    """What came for (2, 1) and for (1, 2) does not make up what (2, 2) needs."""
    grid = hc.Grid((8, 8), periodic=True)
    for name in "uvwz":
        grid.field(name)

    def program(u: Any, v: Any, w: Any, z: Any) -> None:
        v.set(u[2, 1])
        w.set(u[1, 2] + v[1, 0])
        z.set(u[2, 2] + w[1, 0])

    schedule = schedule_of(grid, program)
    u = number(schedule, "u")
    have: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for sweep in some(schedule.sweeps()):
        for direction, width in sweep.exchange.get(u, Footprint()):
            have.setdefault(direction, []).append(width)
        for direction, width in some(sweep.reads.get(u, Footprint())):
            assert any(all(a >= b for a, b in zip(h, width, strict=True)) for h in have[direction])


def test_nothing_is_exchanged_twice_while_it_does_not_change() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    for name in "uvw":
        grid.field(name)

    def program(u: Any, v: Any, w: Any) -> None:
        v.set(hc.laplacian(u))
        w.set(hc.laplacian(u) + v[1, 0])

    schedule = schedule_of(grid, program)
    first, second = schedule.sweeps()
    assert set(first.exchange) == {number(schedule, "u")}
    assert set(second.exchange) == {number(schedule, "v")}


def test_fields_whose_old_values_neighbours_read_have_a_second_buffer_and_others_not() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    for name in "uv":
        grid.field(name)

    def program(u: Any, v: Any) -> None:
        u.set(u + hc.laplacian(u))
        v.set(v * 2.0)

    schedule = schedule_of(grid, program)
    assert [f.name for f in schedule.fields] == ["u", "v", "u'"]
    (sweep,) = schedule.sweeps()
    assert sweep.swaps == ((number(schedule, "u"), number(schedule, "u'")),)


def test_neighbouring_statements_share_a_sweep_where_reads_allow_it() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    for name in "uvw":
        grid.field(name)

    def joined(u: Any, v: Any, w: Any) -> None:
        u.set(u * 2.0)
        v.set(u + v)
        w.set(v - u)
        hc.scalar("total").set(hc.dot(u, w))

    def split(u: Any, v: Any, w: Any) -> None:
        u.set(u * 2.0)
        v.set(u[1, 0] + v)
        hc.scalar("total").set(hc.sum(v))
        w.set(v * hc.parameter("total"))

    assert len(list(schedule_of(grid, joined).sweeps())) == 1
    assert len(list(schedule_of(grid, split).sweeps())) == 3


# --- arithmetic ---


def fields(*names: str, ndim: int = 2) -> tuple[hc.Grid, list[hc.Field]]:
    grid = hc.Grid((8,) * ndim, periodic=True)
    return grid, [grid.field(n) for n in names]


def ops(root: hc.Expr) -> list[str]:
    """The operations of an expression, in the order of evaluation."""
    from halocline.lang.expression import walk

    return [n.op for n in walk([root]) if n.args]


def test_flops_are_counted_by_hand() -> None:
    grid, _ = fields("u", "v")

    def program(u: Any, v: Any) -> None:
        v.set(3.0 * u + hc.sqrt(u) / v)  # fma(3, u, sqrt / v): 2 + 1 + 1

    (sweep,) = schedule_of(grid, program).sweeps()
    assert sweep.flops == 4

    def heat(u: Any, v: Any) -> None:
        # (u_w + u_e) a + (u_s + u_n) b + u c: two sums, a product, two fma, weights once a sweep
        v.set(hc.laplacian(u))

    (sweep,) = schedule_of(grid, heat).sweeps()
    assert sweep.flops == 2 + 1 + 4


def test_a_product_that_is_used_once_is_fused_into_its_sum() -> None:
    _, (u, v, w) = fields("u", "v", "w")
    assert kernel_ops(kernel_of(u * v + w)) == ["fma"]
    assert kernel_ops(kernel_of(w - u * v)) == ["neg", "fma"]
    assert kernel_ops(kernel_of(u * v - w)) == ["neg", "fma"]
    assert kernel_ops(kernel_of((u * v) / 2 + w)) == ["mul", "fma"]  # division by a power of two is a product
    assert kernel_ops(kernel_of(u * v + u * w)) == ["mul", "fma"]
    product = u * v
    assert kernel_ops(kernel_of(product * product + product)) == ["mul", "fma"]  # used twice: kept
    assert kernel_ops(kernel_of((u + v) * w)) == ["add", "mul"]
    assert kernel_ops(kernel_of(hc.symmetric_sum(u * v, w))) == ["mul", "sum2"]


def test_products_of_scalars_are_formed_once_outside() -> None:
    _, (u,) = fields("u")
    a, b = hc.parameter("a"), hc.parameter("b")
    assert kernel_ops(kernel_of(a * b + u)) == ["mul", "add"]


def test_a_product_of_another_precision_is_rounded_by_itself() -> None:
    """Coordinates are computed in float64, products of float32 in float32, whatever they are added to."""
    grid = hc.Grid((8, 8))
    u, v, w = (grid.field(n, dtype=d) for n, d in zip("uvw", ("float32", "float32", "float64"), strict=True))
    product = (grid.x + grid.y) * (grid.x - grid.y)
    assert kernel_ops(kernel_of(u + product))[-3:] == ["sub", "mul", "add"]
    assert kernel_ops(kernel_of(w + product))[-2:] == ["sub", "fma"]
    assert kernel_ops(kernel_of(u * v + w)) == ["mul", "add"]
    assert kernel_ops(kernel_of(u * v + u)) == ["fma"]


def fma(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def test_which_of_two_products_is_fused_depends_on_the_formula_alone() -> None:
    grid, _ = fields("a", "b", "c", "d", "p", "q", "r")

    def program(a: Any, b: Any, c: Any, d: Any, p: Any, q: Any, r: Any) -> None:
        p.set(a * b + c * d)
        q.set(d * c + b * a)
        r.set(c * d + a * b)

    sim = hc.Simulation(grid, hc.program(program))
    values = dict(zip("abcd", np.random.default_rng(1).uniform(-1, 1, (4, 8, 8)), strict=True))
    for name, array in values.items():
        sim[name] = array
    sim.run()
    np.testing.assert_array_equal(sim["p"], sim["q"])
    np.testing.assert_array_equal(sim["p"], sim["r"])
    a, b, c, d = (values[n].ravel() for n in "abcd")
    first = [fma(*x) for x in zip(a, b, c * d, strict=True)]
    second = [fma(*x) for x in zip(c, d, a * b, strict=True)]
    assert first != second
    assert sim["p"].ravel().tolist() in (first, second)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nothing_is_fused_behind_our_back(dtype: str) -> None:
    """A product whose value is kept too is rounded, also where the sum follows at once."""
    grid = hc.Grid(1000, periodic=True)
    a, b, p, s = (grid.field(n, dtype=dtype) for n in "abps")

    @hc.program
    def program() -> None:
        product = a * b
        p.set(product)
        s.set(product - b)

    sim = hc.Simulation(grid, program)
    x, y = np.random.default_rng(2).uniform(0.5, 2, (2, 1000)).astype(dtype)
    sim[a], sim[b] = x, y
    sim.run()
    np.testing.assert_array_equal(sim[p], x * y)
    np.testing.assert_array_equal(sim[s], x * y - y)


def test_common_expressions_are_formed_once() -> None:
    grid, _ = fields("u", "v", "w")

    def program(u: Any, v: Any, w: Any) -> None:
        v.set(hc.exp(u[1, 0]) * 2.0)
        w.set(hc.exp(u[1, 0]) + v)

    source = schedule_of(grid, program).source
    kernel = source.split("#pragma omp simd")[1].split("\n}\n")[0]
    assert kernel.count("hc_exp(") == 1
    assert len(re.findall(r"= u_at_\w+\[k\];", kernel)) == 1


def test_literals_are_folded_and_what_is_structurally_zero_vanishes() -> None:
    _, (u,) = fields("u")
    two = hc.sqrt(4.0)
    assert two.op == "const"
    assert two.attribute == 2.0
    assert (two * 3.0 - 6.0 + u) is u.expr
    assert (u * 1.0 + 0.0) is u.expr
    assert (u * 0.0).attribute == 0.0
    assert ops(u / 4.0) == ["mul"]
    assert ops(u / 3.0) == ["div"]  # its reciprocal is not exact
    assert ops(u**2) == ["mul"]
    assert ops(u**0.5) == ["sqrt"]
    assert ops(u**-1) == ["div"]
    assert ops(u**2.5) == ["pow"]
    assert hc.derivative(u, "z").attribute == 0.0  # an axis that the grid lacks
    assert (u + (-u[1, 0])) is (u - u[1, 0])
    assert -(-u) is u.expr  # noqa: B002


def test_the_source_is_readable() -> None:
    """Names and formulas of the user, one value a line."""
    grid = hc.Grid((8, 8), periodic=True)
    grid.field("temperature")
    grid.field("a")  # a name that the kernel has itself

    def program(temperature: Any, a: Any) -> None:
        kappa = hc.parameter("kappa")
        flux = hc.stage(kappa * hc.exp(temperature - temperature[-1, 0]), "flux", storage="patch")
        temperature.set(temperature + (flux[1, 0] - flux))
        a.set(a + 1.0)

    source = schedule_of(grid, program).source
    assert "// temperature = " in source
    for name in ("temperature_m1_0 =", "const double kappa =", "flux_to[k] =", "flux_p1_0 =", " a_ ="):
        assert name in source
    assert max(map(len, source.splitlines())) < 200


# --- the compiler and its cache ---

SMALL = 'extern "C" int answer() { return 42; }\n'

# compiles as g++ does, after it has noted that, and not while a file holds it up
WRAPPER = """#!/bin/sh
case "$1" in --version) exec g++ --version;; esac
echo "$$" >> "{notes}"
while [ -e "{hold}" ]; do sleep 0.05; done
exec g++ "$@"
"""


@pytest.fixture
def wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A compiler that counts its calls, with an empty cache: the file of its calls, and one to hold it up."""
    notes, hold, script = tmp_path / "calls", tmp_path / "hold", tmp_path / "slow++"
    script.write_text(WRAPPER.format(notes=notes, hold=hold))
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "cache"))
    return notes, hold


def calls(notes: Path) -> int:
    return len(notes.read_text().splitlines()) if notes.exists() else 0


def wait_for(notes: Path, count: int) -> None:
    """Wait until the compiler has been called so often."""
    end = time.monotonic() + HANG
    while calls(notes) < count:
        assert time.monotonic() < end
        time.sleep(0.02)


COMPILE = """
import sys
from halocline.compile.driver import compile_library
print(compile_library(sys.stdin.read()))
"""


def start(source: str = SMALL) -> subprocess.Popen[str]:
    """Another process that compiles; a group of its own, with its compiler."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMPILE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(source)
    process.stdin.close()
    process.stdin = None
    return process


def test_the_same_source_is_compiled_once(wrapper: tuple[Path, Path]) -> None:
    notes, _ = wrapper
    first = compile_library(SMALL)
    assert compile_library(SMALL) == first
    assert calls(notes) == 1
    assert ctypes.CDLL(str(first)).answer() == 42
    assert first.with_suffix(".cpp").read_text() == SMALL
    compile_library(SMALL.replace("42", "43"))
    assert calls(notes) == 2


def test_processes_that_compile_the_same_source_at_once_all_succeed(
    wrapper: tuple[Path, Path], tmp_path: Path
) -> None:
    notes, hold = wrapper
    hold.touch()
    processes = [start() for _ in range(4)]
    wait_for(notes, 2)
    hold.unlink()
    results = [p.communicate(timeout=HANG) for p in processes]
    assert [p.returncode for p in processes] == [0] * 4, results
    (path,) = {out.strip() for out, _ in results}
    assert ctypes.CDLL(path).answer() == 42
    assert not list((tmp_path / "cache").glob("making-*"))


def test_a_killed_compiler_leaves_nothing_that_could_be_taken_for_a_library(
    wrapper: tuple[Path, Path], tmp_path: Path
) -> None:
    notes, hold = wrapper
    hold.touch()
    process = start()
    wait_for(notes, 1)
    assert calls(notes) == 1
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    cache = tmp_path / "cache"
    assert not list(cache.glob("*.so"))
    (left,) = cache.glob("making-*")
    hold.unlink()
    assert ctypes.CDLL(str(compile_library(SMALL))).answer() == 42
    assert left.exists()  # of another process, for all we know
    os.utime(left, (0, 0))
    compile_library(SMALL.replace("42", "44"))
    assert not left.exists()


def in_parts(functions: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The source of a library with every function longer than SMALL in a part of its own."""
    monkeypatch.setattr(cpu, "LARGE", len(SMALL))
    return cpu.translation_unit(functions)


def large(name: str, value: str) -> str:
    return f'extern "C" int {name}() {{ return {value}; }}{" " * len(SMALL)}'


def test_large_kernels_are_compiled_apart_and_lie_in_one_library(
    wrapper: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, _ = wrapper
    small = 'extern "C" int three() { return 3; }'
    source = in_parts(
        [small, large("one", "1"), small.replace("three", "four"), large("two", "2")], monkeypatch
    )
    assert cpu.number_of_parts(source) == 2
    path = compile_library(source)
    library = ctypes.CDLL(str(path))
    assert [library.one(), library.two(), library.three(), library.four()] == [1, 2, 3, 3]
    assert calls(notes) == 3  # each part, and the library of both
    assert compile_library(source) == path
    assert calls(notes) == 3
    assert {f.name for f in (tmp_path / "cache").iterdir()} == {
        path.name,
        f"{path.name}.sha256",
        f"{path.stem}.cpp",
    }
    assert path.with_suffix(".cpp").read_text() == source
    whole = tmp_path / "whole.so"
    subprocess.run(["g++", "-shared", "-fPIC", str(path.with_suffix(".cpp")), "-o", str(whole)], check=True)
    assert ctypes.CDLL(str(whole)).two() == 2
    assert cpu.number_of_parts(in_parts([small, large("one", "1")], monkeypatch)) == 1


def test_a_part_that_the_compiler_rejects_is_one_error(
    wrapper: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = in_parts([large("one", "1"), large("two", "unheard_of")], monkeypatch)
    with pytest.raises(CompileError, match=r"exit status 1:\n(.*\n)*.*unheard_of") as caught:
        compile_library(source)
    kept = re.search(r"kept in (\S+)\)", str(caught.value))
    assert kept is not None
    assert Path(kept.group(1)).read_text() == source
    assert [f.name for f in (tmp_path / "cache").iterdir()] == [Path(kept.group(1)).name]


def test_parts_are_compiled_at_a_time_and_a_kill_leaves_no_library(
    wrapper: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, hold = wrapper
    hold.touch()
    source = in_parts([large("one", "1"), large("two", "2")], monkeypatch)
    process = start(source)
    together = min(2, len(os.sched_getaffinity(0)))
    wait_for(notes, together)
    assert calls(notes) == together
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not list((tmp_path / "cache").glob("*.so"))
    hold.unlink()
    assert ctypes.CDLL(str(compile_library(source))).two() == 2


def test_kernels_compiled_apart_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for longest in (cpu.LARGE, 500):
        monkeypatch.setattr(cpu, "LARGE", longest)
        grid = hc.Grid((12, 9), periodic=(True, False))
        u = grid.field("u", boundary=hc.Value(0.5))
        sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u) - hc.exp(u)}, scheme=hc.RK3(), dt=1e-4)
        sim[u] = np.arange(108.0).reshape(12, 9) % 7
        sim.run(steps=3)
        found.append(sim.checksum(u))
        assert cpu.number_of_parts(sim.schedule.source) == (
            1 if longest > 500 else 6
        )  # sweeps, walls, scalars
    assert found[0] == found[1]


def test_a_broken_write_never_takes_the_name_of_a_library(wrapper: tuple[Path, Path], tmp_path: Path) -> None:
    """A source that the compiler rejects is kept for the report, and is no library."""
    with pytest.raises(CompileError, match="could not compile generated code") as caught:
        compile_library("this is no C++\n")
    kept = re.search(r"kept in (\S+)\)", str(caught.value))
    assert kept is not None
    assert Path(kept.group(1)).read_text() == "this is no C++\n"
    assert not list((tmp_path / "cache").glob("*.so"))


def test_a_cache_that_cannot_be_written_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        CompileError, match=r"file/cache, cannot be written .* set HALOCLINE_CACHE to a folder"
    ):
        compile_library(SMALL)


def test_no_compiler_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler++")
    with pytest.raises(
        CompileError, match=r"CXX is 'no-such-compiler\+\+', which is no program on the PATH; install"
    ):
        compile_library(SMALL)
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CompileError, match=r"neither g\+\+, clang\+\+ nor c\+\+ is on the PATH; install one"):
        compile_library(SMALL)
    monkeypatch.setenv("CXX", "/bin/false")
    with pytest.raises(CompileError, match=r"compiler '/bin/false' does not run"):
        compile_library(SMALL)


def test_another_compiler_or_flag_is_another_library(
    wrapper: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from halocline.compile import driver

    notes, _ = wrapper
    first = compile_library(SMALL)
    other = tmp_path / "other++"
    other.write_text((tmp_path / "slow++").read_text())
    other.chmod(0o755)
    monkeypatch.setenv("CXX", str(other))
    second = compile_library(SMALL)
    monkeypatch.setattr(driver, "FLAGS", (*driver.FLAGS, "-DMORE"))
    third = compile_library(SMALL)
    assert len({first, second, third}) == 3
    assert calls(notes) == 3


def test_parameters_shape_and_spacing_are_no_part_of_the_code() -> None:
    libraries = set()
    for n, extent, kappa in ((16, 1.0, 0.1), (21, 2.5, 0.7)):
        grid = hc.Grid((n, n + 1), extent, origin=extent, periodic=(True, False))
        T = grid.field("T", boundary=hc.Value(hc.parameter("hot")))

        def heat(T: Any, kappa: Any) -> Any:
            return {T: kappa * hc.laplacian(T) + T.grid.x}

        sim = hc.Simulation(
            grid, heat, parameters={"kappa": kappa, "hot": kappa}, scheme=hc.RK2(), dt=1e-4 * kappa
        )
        sim[T] = 1.0
        sim.run(steps=2)
        sim.parameters["kappa"] = 2 * kappa
        sim.run(steps=2)
        libraries.add(sim.prepared.library)
    assert len(libraries) == 1


def test_a_program_without_statements_is_an_error() -> None:
    grid, _ = fields("u")
    with pytest.raises(InputError, match=r"program 'nothing' has no statements: nothing is set"):
        compile_program(hc.program(nothing).trace(), grid)


def nothing() -> None:
    pass
