"""Branches: `hc.branch` skips a side that no cell needs, and gives the bits of `hc.where`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Branch, IfSelected, MarkSelection, Store, Strip, flat, roots
from halocline.compile.ir.verify import verify
from halocline.compile.passes import branches as passes
from halocline.compile.passes.branches import branch_statements, branches, find_branches
from halocline.compile.passes.loops import loops, place
from halocline.compile.passes.threads import threads
from halocline.compile.strategy import block_splits
from halocline.errors import InputError
from kernels import in_nest, kernel_of, loads, results
from suites import cases

GRID = hc.Grid((8, 8), periodic=True)
U, V = GRID.field("u"), GRID.field("v")
A, B = hc.exp(U) / V, hc.sqrt(V) / (hc.exp(V) + U[0, 1])  # 25 and 30 operations


def fields_of(kernel: Kernel, body: Any) -> set[str]:
    return {name for name, _ in loads(kernel, roots(body)) if ":" not in name}


# -- small kernels -----------------------------------------------------------------------------------


def test_a_side_contains_only_values_that_no_other_value_needs() -> None:
    shared = hc.sqrt(U + 2.0)
    kernel = kernel_of(hc.branch(V > 0, A + shared, B * shared) + shared)
    branch_group = find_branches(kernel.values, results(kernel))
    assert branch_group is not None
    ops = [[kernel.values[n].op for n in sorted(side)] for side in branch_group.sides]
    assert "exp" in ops[0]
    assert "exp" in ops[1]
    root = next(
        n for n, v in enumerate(kernel.values) if v.op == "sqrt" and kernel.values[v.args[0]].op == "add"
    )
    assert all(root not in side for side in branch_group.sides)


def test_cheap_or_shared_values_form_no_side() -> None:
    for expression in (
        hc.branch(U > 0, U + 1.0, V * 2.0),  # cheap
        hc.branch(U > 0, A, 0.0) + A,  # needed everywhere
        hc.where(U > 0, A, B),
    ):
        kernel = kernel_of(expression)
        assert find_branches(kernel.values, results(kernel)) is None
        (strip,) = (s for s in flat(branches(loops(in_nest(kernel))).body) if isinstance(s, Strip))
        assert len(strip.body) == 1


def test_each_side_has_a_loop_that_may_be_skipped() -> None:
    kernel = branches(loops(in_nest(kernel_of(hc.branch(U[1, 0] > 0, A, B), hc.branch(U[1, 0] > 0, V, A)))))
    strips = [s for s in flat(kernel.body) if isinstance(s, Strip)]
    guards = [s for s in flat(kernel.body) if isinstance(s, IfSelected)]
    # only B needs a guard: A is the first side of one branch and the second side of the other
    assert [(s.number, s.holds) for s in guards] == [(0, False)]
    assert [len(strip.marks) for strip in strips] == [1, 0, 0]
    assert any(isinstance(s, MarkSelection) for s in strips[0].body)
    assert [s.array for s in strips[-1].body if isinstance(s, Store)] == ["r0", "r1"]
    # the second side is stored, with all values that it needs
    assert fields_of(kernel, strips[1].body) == {"u", "v"}
    assert sum(name.startswith("0:intermediate") for name, _ in loads(kernel, roots(strips[-1].body))) == 2
    place(kernel)  # raises an error if the kernel cannot be scheduled


def test_a_condition_may_depend_on_the_first_axis_alone() -> None:
    kernel = branches(loops(in_nest(kernel_of(hc.branch(GRID.x > 0.5, A, B)))))
    verify(kernel)
    assert sum(isinstance(s, IfSelected) for s in flat(kernel.body)) == 2


def test_branches_may_be_nested() -> None:
    inner = hc.branch(V > 1, A, B)
    kernel = branches(loops(in_nest(kernel_of(hc.branch(U > 0, inner * hc.exp(U * V), hc.exp(V - U))))))
    nested = [s for s in flat(kernel.body) if isinstance(s, IfSelected) and s.number == 0 and s.holds]
    assert len([s for s in flat(nested[0].body) if isinstance(s, IfSelected)]) == 2
    assert len([s for s in flat(kernel.body) if isinstance(s, IfSelected)]) == 4


def test_each_cell_of_a_device_computes_one_side() -> None:
    kernel = threads(in_nest(kernel_of(hc.branch(V > 0, A, B) * 2.0)), block_splits(GRID.ndim), "queue", 0)
    kernel = branch_statements(kernel)
    (branch,) = (s for s in flat(kernel.body) if isinstance(s, Branch))
    inside = [[n for let in body for n in let.values] for body in (branch.then, branch.otherwise)]
    assert [sum(kernel.values[n].op == "exp" for n in side) for side in inside] == [1, 1]


def test_invalid_conditions_are_rejected() -> None:
    with pytest.raises(InputError, match=r"hc\.branch\(\) needs a condition such as u > 0"):
        hc.branch(U, A, B)
    assert hc.branch(True, A, B) is A
    assert hc.branch(U > 0, A, A) is A
    assert isinstance(hc.branch(U > 0, hc.Vector((A, B)), hc.Vector((B, A))), hc.Vector)


# -- bits --------------------------------------------------------------------------------------------


def flow(
    choose: Callable[..., Any], grid: hc.Grid, dtype: str, **options: Any
) -> tuple[hc.Simulation, list[str]]:
    """Run three steps of a system with nested branches; some rows take one side, some take both."""
    walls = None if all(grid.periodic) else hc.Symmetric()
    u, v = (grid.field(name, dtype=dtype, boundary=walls) for name in "uv")
    center, right = (0,) * grid.ndim, (0,) * (grid.ndim - 1) + (1,)

    def step(u: Any, v: Any) -> None:
        a = hc.sqrt(abs(u) + 1) / (2 + v * v)
        slope = hc.stage((v[right] - v) * hc.exp(-a * a), "slope", storage="patch")
        deep = choose(v > 0.2, hc.exp(slope) / (1 + u * u), hc.sqrt(a + abs(slope)) / (3 + hc.exp(v)))
        first = hc.Vector((deep * hc.exp(u * a) / (1 + v * v), a * u))
        second = hc.Vector((a / (1 + u * u) / (2 + v[right] * v), hc.sqrt(abs(v) + a) / (a + 2)))
        x = choose(u[right] > 0.3 * v, first, second)
        y = x[1] - hc.sin(1e5 * choose(u > v, a / (u * u + 1), v))
        hc.assign({u: 4 * x[0] / (1 + abs(x[0])) + slope[center], v: y / (1 + abs(y))})

    sim = hc.Simulation(grid, hc.program(step), **options)
    draw, x = np.random.default_rng(1), np.linspace(0, 1, grid.shape[-1])
    sim[u] = draw.uniform(-1, 1, grid.shape) + np.where(x < 0.3, 3, np.where(x > 0.7, -3, 0))
    sim[v] = draw.uniform(-1, 1, grid.shape)
    for _ in range(3):
        sim.run()
    return sim, [sim.checksum(u), sim.checksum(v)]


@cases("streaming", [False, True], default=[False])
@pytest.mark.parametrize(("shape", "periodic", "dtype"), [
    ((300,), True, "float64"), ((7, 150), False, "float32"), ((3, 4, 70), True, "float64"),
    pytest.param((300,), True, "float32", marks=pytest.mark.long),
    pytest.param((7, 150), False, "float64", marks=pytest.mark.long),
    pytest.param((3, 4, 70), True, "float32", marks=pytest.mark.long),
])  # fmt: skip
def test_branch_has_the_bits_of_where(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], periodic: bool, dtype: str, streaming: bool
) -> None:
    monkeypatch.setattr("halocline.run.engine.prepare.exceeds_cache", lambda *_: streaming)
    grid = lambda: hc.Grid(shape, periodic=periodic)  # noqa: E731
    reference = flow(hc.where, grid(), dtype)[1]
    sim, checksums = flow(hc.branch, grid(), dtype, threads=2, patch=(*(2,) * (len(shape) - 1), 64))
    assert checksums == reference
    assert "any_true0" in sim.schedule.source
    monkeypatch.setattr(passes, "MIN_COST_OF_SIDE", 1)  # a branch for every side
    more, checksums = flow(hc.branch, grid(), dtype)
    assert checksums == reference
    assert more.schedule.source.count("if (any_true") >= sim.schedule.source.count("if (any_true") >= 4


@pytest.mark.parametrize("reads", ["direct", "queue", "planes"])
def test_branch_has_the_bits_of_where_on_devices(
    opencl: Any, monkeypatch: pytest.MonkeyPatch, reads: str
) -> None:
    reference = flow(hc.where, hc.Grid((7, 90), periodic=True), "float64")[1]
    monkeypatch.setattr(passes, "MIN_COST_OF_SIDE", 1)
    sim, checksums = flow(
        hc.branch, hc.Grid((7, 90), periodic=True), "float64", device="opencl", kernels=reads
    )
    assert checksums == reference
    assert "else {" in sim.schedule.device.source


@pytest.mark.ranks(2, 3, long=(2,))
def test_branch_has_the_bits_of_where_on_ranks() -> None:
    reference = flow(hc.where, hc.Grid((12, 90), periodic=True), "float64")[1]
    assert flow(hc.branch, hc.Grid((12, 90), periodic=True), "float64")[1] == reference
