"""Splitting of large right-hand sides into loops, with the bits of one loop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import halocline as hc
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Strip, flat, roots
from halocline.compile.passes.loops import loops
from halocline.compile.passes.split import LOADS, ROWS, groups, split
from halocline.lang import trace
from halocline.lang.expression import Expr, walk
from halocline.physics.mhd import MHD
from kernels import in_nest, kernel_of, loads, results
from suites import cases


def right_hand_side() -> tuple[MHD, Kernel]:
    mhd = MHD(hc.Grid((8, 8, 8), periodic=True))
    with trace.order(6):
        return mhd, kernel_of(*mhd.equations().values())


def test_each_part_contains_differences_of_one_array():
    mhd, kernel = right_hand_side()
    value_groups = groups(kernel, results(kernel))
    arrays = [{name for name, _ in loads(kernel, group)} for group in value_groups]
    assert all(len(names) == 1 for names in arrays)
    in_turn = [next(iter(names)) for names, _ in itertools.groupby(arrays)]
    assert sorted(in_turn) == sorted(f.name for f in mhd.fields)  # grouped by array
    assert all(len(loads(kernel, (value,))) > 1 for group in value_groups for value in group)


def test_a_loop_reads_along_few_rows_and_the_last_reads_each_array_at_the_cell():
    _, kernel = right_hand_side()
    value_groups = groups(kernel, results(kernel))
    stored: set[int] = set()
    for group in value_groups:
        # one more for the row of the cell
        assert len({offset[:2] for _, offset in loads(kernel, group, stored)}) <= ROWS + 1
        stored |= set(group)
    # no stored value is as cheaply formed from other stored values
    values = [kernel.values[number] for number in stored]
    assert not any(value.args and stored >= set(value.args) for value in values)
    assert {offset for _, offset in loads(kernel, results(kernel), stored)} == {(0, 0, 0)}


def test_loops_that_fit_are_not_split():
    grid = hc.Grid((8, 8, 8), periodic=True)
    u, v = grid.field("u"), grid.field("v")

    def count(expression: Expr) -> int:
        kernel = kernel_of(expression, contracted=False)
        return len(groups(kernel, results(kernel)))

    assert count(hc.laplacian(u, order=8) + hc.laplacian(v, order=8)) == 0
    # many reads, but of one array: the last loop would have nothing to combine
    many = sum((u[i, j, k] * (i + 2.0) for i in range(5) for j in range(5) for k in range(5)), hc.exp(u))
    assert sum(leaf.op == "read" for leaf in walk((many,))) > LOADS
    assert count(many) == 0
    assert count(many * hc.derivative(v, "x")) == 3 + 1  # three directions, and one group of v


def test_later_loops_load_values_stored_by_earlier_ones():
    """One loop stores two differences of u, another one a difference of v, and the last loop loads both."""
    grid = hc.Grid((8, 8), periodic=True)
    u, v = grid.field("u"), grid.field("v")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halocline.compile.passes.split.LOADS", 3)
        kernel = split(
            loops(in_nest(kernel_of((u[0, 1] - u[0, -1]) * (v[1, 0] - v) + hc.exp(u[0, 1] - u[0, -1]))))
        )
    strips = [s for s in flat(kernel.body) if isinstance(s, Strip)]
    assert [[s.array for s in strip.body] for strip in strips] == [
        ["0:intermediate0"],
        ["0:intermediate1"],
        ["r0"],
    ]
    assert sorted(loads(kernel, roots(strips[0].body)) + loads(kernel, roots(strips[1].body))) == [
        ("u", (0, -1)), ("u", (0, 1)), ("v", (0, 0)), ("v", (1, 0)),
    ]  # fmt: skip
    assert sorted(loads(kernel, roots(strips[2].body))) == [("0:intermediate0", ()), ("0:intermediate1", ())]
    assert [a.length for a in kernel.arrays if a.kind == "intermediate"] == [64, 64]


@cases(
    "dtype, streaming",
    itertools.product(("float64", "float32"), (False, True)),
    default=[("float64", True), ("float32", False)],
)
def test_split_loops_have_the_bits_of_one_loop(monkeypatch: pytest.MonkeyPatch, dtype: str, streaming: bool):
    """Bits are equal for long rows, staggered points, a stage, a wall, sums and a sine of large angles."""
    monkeypatch.setattr("halocline.run.engine.prepare.exceeds_cache", lambda *_: streaming)
    monkeypatch.setattr("halocline.compile.passes.split.LOADS", 12)

    def results(*, grouped: bool) -> list[str]:
        grid = hc.Grid((7, 150), extent=(0.7, 15.0), periodic=(True, False))
        walls = hc.Symmetric()
        u, v, w, n = (grid.field(name, dtype=dtype, boundary=walls) for name in "uvwn")
        f = grid.field("f", location="face-x", dtype=dtype, boundary=walls)

        @hc.program
        def change(u, v, w, n, f, total):
            slope = hc.stage(
                hc.derivative(u, 0) * hc.laplacian(v) + hc.laplacian(f)[0, 0], "slope", location="cell"
            )
            u.set(
                u + 1e-3 * (hc.mixed(u, 0, 1) * hc.laplacian(w) + hc.derivative(slope, 1) + hc.sin(1e6 * v))
            )
            n.set(1e-3 * hc.laplacian(w) * hc.derivative(v, 0) - hc.exp(1e-2 * hc.derivative(u, 1)))
            f.set(f + 1e-3 * hc.derivative(v, 1)[0, 0] * hc.laplacian(f))
            total.set(hc.sum(hc.derivative(w, 0) * hc.laplacian(u) + hc.derivative(v, 1)))

        @hc.program
        def step(u, v, w, n, f):
            change.function(u, v, w, n, f, hc.scalar("total"))

        sim = hc.Simulation(grid, step, order=6, threads=1, patch=(7, 100))
        assert ("intermediate0[" in sim.schedule.source) == grouped
        draw = np.random.default_rng(2)
        for field in (u, v, w, n, f):
            sim[field] = draw.random(field.points)
        outcome = sim.run(steps=1)
        return [*(sim.checksum(field) for field in (u, n, f)), outcome.scalars["total"].hex()]

    grouped = results(grouped=True)
    monkeypatch.setattr("halocline.compile.passes.split.groups", lambda kernel, values: [])
    assert results(grouped=False) == grouped


def test_splitting_by_direction_does_not_change_bits(monkeypatch: pytest.MonkeyPatch):
    """The bits are equal in three dimensions, for rows longer than a piece."""

    def results(*, grouped: bool) -> list[str]:
        grid = hc.Grid((7, 6, 70), extent=(0.7, 0.6, 7.0), periodic=True)
        u, v = grid.vector("u"), grid.vector("v")

        @hc.program
        def change(u, v):
            twisted = hc.cross(hc.curl(u), hc.laplacian(u) + hc.grad_div(u))
            for component, curl in zip(v, twisted, strict=True):
                component.set(curl * hc.div(u))

        sim = hc.Simulation(grid, change, order=6, threads=1)
        loops = 2 * (3 + 3 + 2 + 1)  # twice, for both kernels; u_z has no difference across x and y
        source = sim.schedule.source
        assert (source.count("#pragma omp simd") + source.count("int64_t lanes") == loops) == grouped
        draw = np.random.default_rng(3)
        for component in u:
            sim[component] = draw.random(grid.shape)
        sim.run(steps=1)
        return [sim.checksum(component) for component in v]

    grouped = results(grouped=True)
    monkeypatch.setattr("halocline.compile.passes.split.groups", lambda kernel, values: [])
    assert results(grouped=False) == grouped
