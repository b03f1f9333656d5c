"""Launches of kernels on devices.

One thread of one thread block computes each cell, and each block has its own place for partial results.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.schedule import DeviceKernel, Schedule, Sweep
from halocline.compile.strategy import (
    MAX_THREADS_PER_BLOCK,
    Splits,
    Strategy,
    block_splits,
    cells_at_once,
    split_size,
    streaming_axis,
    thin_splits,
)
from halocline.errors import InputError
from halocline.lang.blocks import Blocks
from halocline.plan.box import Box
from halocline.plan.decompose import decompose
from halocline.plan.launches import (
    LITERAL_CELLS,
    Launch,
    SweepLaunches,
    _launch,
    constant_launches,
    has_literal_layouts,
    literal_extents,
    sweep_launches,
)
from halocline.plan.layout import Layout
from halocline.plan.rank import SubdomainPlan, plan_subdomain
from halocline.plan.transfer import ON_DEVICES, Transfers
from halocline.problems.problem import Problem
from halocline.run.tuning.kernels import strategies
from loops import some

axes = st.integers(1, 3)


def kernel_of(splits: Splits, **facts: Any) -> DeviceKernel:
    """Return a kernel with some splits."""
    return DeviceKernel("k", (), (), (), splits=splits, **facts)


@st.composite
def all_splits(draw: st.DrawFn, ndim: int) -> Splits:
    """Draw splits of grids with `ndim` axes: of thin boxes, or for 2.5D streaming."""
    if draw(st.booleans()):
        return thin_splits(ndim)
    block_shape = draw(st.sampled_from([(64, 4), (32, 4), (8, 8)]))
    sizes = {name: draw(st.sampled_from([1, 2, 4])) for name in ("rows", "cells")}
    return block_splits(ndim, block_shape, planes=draw(st.sampled_from([0, 1, 5])), **sizes)


def visits(launch: Launch, origin: tuple[int, ...], counts: NDArray[np.int64]) -> None:
    """Count the visits of the threads of a launch to cells, as generated kernels compute them.

    The first element of `counts` is cell `origin`. Each thread block has work.
    """
    ndim = len(launch.cells.lo)
    lines = []  # per axis: all cells that the threads of a block visit
    for axis, (lo, hi, first) in enumerate(zip(launch.cells.lo, launch.cells.hi, origin, strict=True)):
        place = ndim - 1 - axis
        blocks, threads = launch.block_counts[place], launch.block_shape[place]
        three_axis = axis + 3 - ndim
        splits, span = launch.kernel.splits, launch.block_cells[three_axis]
        at_once = cells_at_once(splits, three_axis)
        if split_size(splits, three_axis, "block"):
            assert span == split_size(splits, three_axis, "block")  # the threads visit the tile in any order
        elif streaming_axis(splits) == three_axis:
            assert threads == at_once == 1
        else:
            assert span == threads * at_once
        begin = lo - lo % at_once if three_axis == 2 else lo  # vectors are aligned
        assert begin + (blocks - 1) * span < hi <= begin + blocks * span, "a thread block without work"
        cells = np.concatenate([np.arange(n, n + span) for n in range(begin, begin + blocks * span, span)])
        lines.append(cells[(cells >= lo) & (cells < hi)] - first)
    for place in range(ndim, 3):
        assert launch.block_counts[place] == 1
    np.add.at(counts, np.ix_(*lines), 1)


@given(st.data(), axes)
def test_a_launch_visits_each_cell_once(data: st.DataObject, ndim: int) -> None:
    longest = {1: 1500, 2: 300, 3: 70}[ndim]
    lo = tuple(data.draw(st.integers(-3, 5)) for _ in range(ndim))
    shape = tuple(data.draw(st.integers(1, longest)) for _ in range(ndim))
    cells = Box(lo, tuple(a + n for a, n in zip(lo, shape, strict=True)))
    launch = _launch(kernel_of(data.draw(all_splits(ndim))), cells, cells, (0,) * ndim)
    counts = np.zeros(shape, dtype=np.int64)
    visits(launch, lo, counts)
    assert (counts == 1).all()
    assert prod(launch.block_shape) <= MAX_THREADS_PER_BLOCK
    assert all(n & (n - 1) == 0 for n in launch.block_shape), "reductions halve a thread block"
    assert prod(launch.block_counts) == launch.total_blocks


@pytest.mark.parametrize(
    "shape", [(70_000, 1), (200_000, 3), (70_000, 1, 1), (150_000, 2, 70), (3, 150_000, 9)]
)
def test_the_number_of_blocks_respects_the_cuda_limit(shape: tuple[int, ...]) -> None:
    """The walls of a long grid have a valid launch, although each thread would have one cell."""
    cells = Box((0,) * len(shape), shape)
    for splits in (thin_splits(len(shape)), block_splits(len(shape), planes=1)):
        launch = _launch(kernel_of(splits), cells, cells, (0,) * len(shape))
        assert max(launch.block_counts[1:]) <= 65535
        counts = np.zeros(shape, dtype=np.int64)
        visits(launch, cells.lo, counts)
        assert (counts == 1).all()


# -- whole programs ----------------------------------------------------------------------------------


def program(ndim: int, periodic: tuple[bool, ...]) -> tuple[hc.Grid, Any]:
    """Return a grid and a program with points of every kind, stages, wall conditions and reductions."""
    grid = hc.Grid((8,) * ndim, periodic=periodic)
    walls = not all(periodic)
    grid.field("u", boundary=hc.Extrapolate(2) if walls else None)
    grid.field("v", boundary=hc.Derivative(0.5) if walls else None, location="face-x")
    grid.field("w", boundary=hc.Value(0.5) if walls else None, location="node" if ndim > 1 else "cell")

    @hc.program
    def step(u: Any, v: Any, w: Any) -> None:
        names = hc.scalars("total lowest first last")
        back = (-1,) * ndim
        p = hc.stage(hc.exp(u) * v[back], "p", storage="patch")
        v.set(p[back] + p)
        u.set(0.5 * p + p[(1,) + (0,) * (ndim - 1)])
        w.set(w[back] + u)
        kinds = hc.sum(u[(0,) * ndim] * w), hc.min(v), hc.value(v, (0,) * ndim), hc.value(w, (-1,) * ndim)
        for name, value in zip(names, kinds, strict=True):
            name.set(value)

    return grid, step


def drawn_strategies(ndim: int) -> tuple[Strategy, ...]:
    return (
        Strategy(),
        Strategy("direct", thin_splits(ndim), "memory"),
        Strategy("planes", block_splits(ndim, (32, 2), planes=7, rows=2, cells=2), "memory"),
    )


@cache
def scheduled(ndim: int, periodic: tuple[bool, ...], strategy: Strategy) -> Schedule:
    grid, step = program(ndim, periodic)
    return compile_program(step.trace(*grid.fields.values()), grid, device=strategy)


@st.composite
def plans(draw: st.DrawFn) -> tuple[Schedule, tuple[int, ...], list[SubdomainPlan]]:
    """Draw a schedule, a grid shape and the plans of its subdomains.

    The shape differs from that of the compilation, since the schedule is independent of shapes except for
    the cells of single values.
    """
    ndim = draw(axes)
    periodic = tuple(draw(st.booleans()) for _ in range(ndim))
    schedule = scheduled(ndim, periodic, draw(st.sampled_from(drawn_strategies(ndim))))
    shape = tuple(draw(st.integers(8, 40 if ndim < 3 else 19)) for _ in range(ndim))
    parts = tuple(draw(st.integers(1, 2)) for _ in range(ndim))
    if draw(st.booleans()):
        counts = tuple(draw(st.integers(1, 4)) for _ in range(ndim))
        mask = np.array(draw(st.lists(st.booleans(), min_size=prod(counts), max_size=prod(counts))))
        mask = mask.reshape(counts)
        mask[(0,) * ndim] = True
        schedule = replace(schedule, blocks=Blocks.of(mask, shape))
    cut = decompose(shape, prod(parts), strategy=parts, periodic=periodic)
    transfers = Transfers(Layout.of(cut), ON_DEVICES)
    patch = draw(st.none() | st.integers(2, 12))
    try:
        subdomain_plans = [plan_subdomain(schedule, transfers, n, patch=patch) for n in range(cut.count)]
    except InputError as error:  # the cell of a value is inactive, or subdomains are too thin
        if "inactive block" in str(error) or "subdomain" in str(error):
            return draw(plans())
        raise
    return schedule, shape, subdomain_plans


def every(schedule: Schedule, subdomain_plan: SubdomainPlan) -> list[tuple[Sweep, Any, SweepLaunches]]:
    return [
        (sweep, sweep_plan, sweep_launches(schedule, sweep, subdomain_plan, sweep_plan))
        for sweep, sweep_plan in zip(schedule.sweeps(), subdomain_plan.sweeps, strict=True)
    ]


@settings(max_examples=60)
@given(plans())
def test_each_point_is_computed_once(drawn: Any) -> None:
    """Each kernel computes each point once, over the patches of all subdomains."""
    schedule, shape, subdomain_plans = drawn
    counts: dict[str, NDArray[np.int64]] = defaultdict(lambda: np.zeros([n + 3 for n in shape], np.int64))
    kernels: dict[str, DeviceKernel] = {}
    for subdomain_plan in subdomain_plans:
        for sweep, _, planned in every(schedule, subdomain_plan):
            sweep_kernels = schedule.device.kernels[sweep.kernel]
            kernels |= {kernel.name: kernel for kernel in sweep_kernels}
            for item in planned.items[: len(subdomain_plan.patches)]:
                order = [sweep_kernels.index(launch.kernel) for launch in item.launches]
                assert order == sorted(order), "a kernel before what it needs"
                for launch in item.launches:
                    if not any(map(any, launch.kernel.extent)):
                        visits(
                            launch, tuple(-o - 1 for o in subdomain_plan.box.lo), counts[launch.kernel.name]
                        )
    assert kernels
    assert sum(kernel.cell is not None for kernel in kernels.values()) == 2
    for name, kernel in kernels.items():
        if any(map(any, kernel.extent)):
            continue  # a stage, which patches compute again in their overlap
        expected = np.zeros_like(counts[name])
        if kernel.cell is not None:
            expected[tuple(c + 1 for c in kernel.cell)] = 1
        else:
            cells = np.ones(shape, dtype=np.int64) if schedule.blocks is None else active(schedule, shape)
            pad = [(0, int(t and not p)) for t, p in zip(kernel.top, schedule.periodic, strict=True)]
            points = np.pad(cells, pad, mode="edge")
            expected[tuple(slice(1, n + 1) for n in points.shape)] = points
        np.testing.assert_array_equal(counts[name], expected, name)


def active(schedule: Schedule, shape: tuple[int, ...]) -> NDArray[np.int64]:
    assert schedule.blocks is not None
    cells = np.zeros(shape, dtype=np.int64)
    for lo, hi in schedule.blocks.pieces((0,) * len(shape), shape):
        cells[tuple(map(slice, lo, hi))] = 1
    return cells


@settings(max_examples=60)
@given(plans())
def test_kernels_of_a_patch_cover_the_reads_of_later_kernels(drawn: Any) -> None:
    """Stages cover the extent of their kernel around the patch, within its scratch memory."""
    schedule, _, subdomain_plans = drawn
    for subdomain_plan in some(subdomain_plans):
        for sweep, sweep_plan, planned in some(every(schedule, subdomain_plan)):
            for item, (lo, hi, top) in zip(
                planned.items, subdomain_plan.patches.table.tolist(), strict=False
            ):
                for launch in item.launches:
                    kernel = launch.kernel
                    assert launch.patch == Box(tuple(lo), tuple(hi))
                    above = [t * k for t, k in zip(top, kernel.top, strict=True)]
                    whole = launch.patch.grow(kernel.extent).grow([(0, t) for t in above])
                    assert launch.cells <= whole
                    if kernel.cell is None:
                        assert launch.cells == whole
                ready = {launch.kernel.name for launch in item.launches}
                sweep_kernels = schedule.device.kernels[sweep.kernel]
                assert ready == {k.name for k in sweep_kernels if k.cell is None or k.name in ready}
            staged = [k for k in schedule.device.kernels[sweep.kernel] if k.scratch]
            tiled = [
                k
                for k in schedule.device.kernels[sweep.kernel]
                if any(split.kind == "block" for split in k.splits)
            ]
            assert bool(staged or tiled) == bool(sweep.scratch)
            assert not staged or sweep_plan.scratch_bytes > 0 or not len(subdomain_plan.patches)


@settings(max_examples=60)
@given(plans())
def test_partial_results_have_distinct_locations(drawn: Any) -> None:
    schedule, _, subdomain_plans = drawn
    for subdomain_plan in some(subdomain_plans):
        for sweep, _, planned in some(every(schedule, subdomain_plan)):
            blocks_of_kernels = dict(planned.partials)
            reducing = [k for k in schedule.device.kernels[sweep.kernel] if k.reductions]
            assert list(blocks_of_kernels) == reducing
            numbers = sorted(n for kernel in reducing for n in kernel.reductions)
            assert numbers == list(range(len(sweep.reductions)))
            for kernel, count in blocks_of_kernels.items():
                launches = [x for i in planned.items for x in i.launches if x.kernel == kernel]
                slots = [(x.first_block, x.first_block + x.total_blocks) for x in launches]
                ends = [0, *(end for _, end in sorted(slots))]
                assert [begin for begin, _ in sorted(slots)] == ends[:-1]
                assert ends[-1] == count


@settings(max_examples=60)
@given(plans())
def test_ghosts_beyond_walls_are_filled_once(drawn: Any) -> None:
    """The launches cover each box of a fill once, with a thread for each ghost of a layer."""
    schedule, _, subdomain_plans = drawn
    for subdomain_plan in some(subdomain_plans):
        for sweep, sweep_plan, planned in some(every(schedule, subdomain_plan)):
            parts = {wall.kernel: wall.parts for wall in sweep.wall_kernels}
            for launches, boxes in (
                (planned.fills, [(f.fill, f.core) for f in sweep_plan.fills if f.core]),
                (planned.rims, [(f.fill, rim.box) for f in sweep_plan.fills for rim in f.rims]),
            ):
                filled: list[tuple[int, tuple[int, ...]]] = []
                for launch in launches:
                    begin = 0
                    for (number, layers), (box, end) in zip(
                        parts[launch.kernel.name], launch.walls, strict=True
                    ):
                        threads = (end - begin) * launch.block_shape[0]
                        begin = end
                        axis = sweep.fills[number].axis
                        columns = box.size // box.shape[axis] if box else 0
                        assert columns <= threads < columns + launch.block_shape[0]
                        assert not box or box.shape[axis] <= len(layers)
                        filled += [(number, cell) for cell in product(*map(range, box.lo, box.hi))]
                    assert launch.block_counts == (begin, 1, 1)
                expected = [(n, cell) for n, box in boxes for cell in product(*map(range, box.lo, box.hi))]
                assert sorted(filled) == sorted(expected)


@pytest.mark.parametrize(
    ("shape", "block_shape", "block_counts", "planes"),
    [
        ((1000,), (256, 1, 1), (4, 1, 1), 1),
        ((3,), (4, 1, 1), (1, 1, 1), 1),
        ((100, 1000), (256, 1, 1), (4, 7, 1), 16),
        ((5, 40, 1000), (64, 4, 1), (16, 10, 1), 5),
        ((33, 40, 20), (32, 8, 1), (1, 5, 3), 16),  # narrow: more rows
    ],
)
def test_threads_are_arranged_along_rows(
    shape: tuple[int, ...], block_shape: tuple[int, ...], block_counts: tuple[int, ...], planes: int
) -> None:
    cells = Box((0,) * len(shape), shape)
    launch = _launch(kernel_of(block_splits(len(shape))), cells, cells, (0,) * len(shape))
    assert (launch.block_shape, launch.block_counts, launch.planes) == (
        block_shape,
        block_counts,
        planes,
    )


@pytest.mark.parametrize(
    ("shape", "block_shape", "block_counts"),
    [
        ((16384, 1), (1, 256, 1), (1, 64, 1)),  # the ghosts beside a wall of a square
        ((1, 16384), (256, 1, 1), (64, 1, 1)),
        ((256, 256, 1), (1, 256, 1), (1, 1, 256)),
        ((300, 1, 1), (1, 1, 256), (1, 1, 2)),
        ((1, 40, 1000), (64, 4, 1), (16, 10, 1)),
        ((2, 2, 2), (2, 2, 2), (1, 1, 1)),
    ],
)
def test_blocks_of_thin_boxes_have_many_threads(
    shape: tuple[int, ...], block_shape: tuple[int, ...], block_counts: tuple[int, ...]
) -> None:
    cells = Box((0,) * len(shape), shape)
    launch = _launch(kernel_of(thin_splits(len(shape))), cells, cells, (0,) * len(shape))
    assert (launch.block_shape, launch.block_counts) == (block_shape, block_counts)
    assert launch.planes == 1


def test_threads_compute_several_cells_at_once() -> None:
    cells = Box((0, 0, 3), (64, 100, 1003))
    launch = _launch(kernel_of(block_splits(3, (32, 4), rows=2, cells=4)), cells, cells, (0, 0, 0))
    assert launch.block_cells == (16, 8, 128)
    assert launch.block_counts == (8, 13, 4)  # the first cell of the first vector is 0, before the box
    assert launch.planes == 16


KERNELS = re.compile(
    r"^HC_KERNEL(?:_FIXED_BLOCK\(([\d, ]+)\)|_LAUNCH_BOUNDS\((\d+), \d+\))? (\w+)\(", re.MULTILINE
)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_blocks_have_the_shape_of_the_strategy(ndim: int) -> None:
    """Narrow boxes also have no more threads per block than the kernel was compiled for."""
    cells = Box((0,) * ndim, (2000,) * ndim)
    cut = decompose((12, 40, 70)[-ndim:], 1, strategy=(1,) * ndim, periodic=(False,) * ndim)
    bounded = False
    small = Strategy("queue", block_splits(ndim, (8, 8), planes=5), resident_blocks=2)
    for strategy in (Strategy(), small, *strategies(ndim, staged=True)):
        kernel = kernel_of(strategy.splits or block_splits(ndim))
        threads = [split_size(kernel.splits, axis, "thread") or 1 for axis in (2, 1, 0)]
        assert list(_launch(kernel, cells, cells, (0,) * ndim).block_shape) == threads, strategy
        schedule = scheduled(ndim, (False,) * ndim, replace(strategy, stages="memory"))
        assert schedule.device is not None
        most = {
            name: prod(map(int, (fixed or resident).split(",")))
            if fixed or resident
            else MAX_THREADS_PER_BLOCK
            for fixed, resident, name in KERNELS.findall(schedule.device.source)
        }
        subdomain_plan = plan_subdomain(schedule, Transfers(Layout.of(cut), ON_DEVICES), 0, patch=9)
        for _, _, planned in every(schedule, subdomain_plan):
            patches = [launch for item in planned.items for launch in item.launches]
            for launch in (*planned.fills, *planned.rims, *patches):
                assert prod(launch.block_shape) <= most[launch.kernel.name], (strategy, launch)
                bounded |= most[launch.kernel.name] < MAX_THREADS_PER_BLOCK
    assert bounded


@pytest.mark.parametrize(
    ("preloaded_planes", "shape", "planes"),
    [
        *(
            (preloaded, (512, 512, 512), planes)
            for preloaded, planes in ((0, 16), (2, 16), (4, 32), (6, 64), (8, 64))
        ),
        (8, (256, 256, 256), 16),  # 4096 thread blocks
        (8, (512, 512, 256), 32),  # 8192 blocks with 32 cells per thread
        (8, (512, 508, 256), 16),  # 8128 thread blocks
        (8, (20, 4096, 4096), 20),  # limited by the length of the axis
    ],
)
def test_wide_stencils_stream_deeper_with_many_blocks(
    preloaded_planes: int, shape: tuple[int, ...], planes: int
) -> None:
    """Each thread streams over more cells, so that the reads before its first cell are a small share."""
    kernel = kernel_of(block_splits(3), preloaded_planes=preloaded_planes)
    cells = Box((0,) * 3, shape)
    launch = _launch(kernel, cells, cells, (0,) * 3)
    assert launch.planes == planes
    assert launch.block_counts == (-(-shape[2] // 64), -(-shape[1] // 4), -(-shape[0] // planes))
    # a given length is kept
    fixed = replace(kernel, splits=block_splits(3, planes=16))
    assert _launch(fixed, cells, cells, (0,) * 3).planes == 16
    # reductions begin with this length
    reducing = _launch(replace(kernel, reductions=(0,)), cells, cells, (0,) * 3)
    assert reducing.planes >= planes
    assert reducing.total_blocks <= 8192 or reducing.planes == min(128, shape[0])


@pytest.mark.parametrize(("reads", "order", "ahead"), [("queue", 2, 2), ("queue", 8, 8), ("direct", 8, 0)])
def test_kernels_record_the_number_of_preloaded_planes(reads: str, order: int, ahead: int) -> None:
    case = Problem("heat", [8, 8, 8], scheme="euler", order=order)
    schedule = compile_program(case.program, case.grid, device=Strategy(reads))
    assert schedule.device is not None
    (sweep,) = schedule.sweeps()
    assert [kernel.preloaded_planes for kernel in schedule.device.kernels[sweep.kernel]] == [ahead]


def test_layouts_are_literals_on_large_subdomains_of_equal_shape() -> None:
    case = Problem("heat", [8, 8], scheme="euler")
    schedule = compile_program(case.program, case.grid, device=Strategy())

    def subdomains(*shape: int) -> list[SubdomainPlan]:
        cut = decompose(shape, 2, strategy=(1, 2), periodic=(True, True))
        return [plan_subdomain(schedule, Transfers(Layout.of(cut), ON_DEVICES), n) for n in range(2)]

    assert has_literal_layouts(schedule, subdomains(1024, LITERAL_CELLS // 512))
    assert not has_literal_layouts(schedule, subdomains(1023, LITERAL_CELLS // 512))
    unequal = subdomains(2048, LITERAL_CELLS // 512 + 1)
    assert not has_literal_layouts(schedule, unequal)
    assert all(has_literal_layouts(schedule, [subdomain]) for subdomain in unequal)
    assert not has_literal_layouts(schedule, [])  # a rank without work
    once = replace(schedule, operations=tuple(schedule.sweeps()))
    assert not has_literal_layouts(once, subdomains(1024, LITERAL_CELLS // 512))


def test_the_number_of_reducing_blocks_is_bounded() -> None:
    """Threads stream over more cells on large grids, since one thread block merges the partial results."""
    kernel = kernel_of(block_splits(2), reductions=(0,))
    plain = replace(kernel, reductions=())
    for n, least in ((512, 16), (16384, 128)):
        cells = Box((0, 0), (n, n))
        launch, other = (_launch(k, cells, cells, (0, 0)) for k in (kernel, plain))
        assert launch.planes == least
        assert launch.total_blocks * launch.planes <= n * n / 256 + launch.total_blocks
        assert launch.total_blocks <= 8192
        assert other.planes == 16


def test_literal_extents_are_those_of_the_largest_patch() -> None:
    case = Problem("heat", [8, 8], scheme="euler")
    schedule = compile_program(case.program, case.grid, device=Strategy())
    transfers = Transfers(Layout.of(decompose((30, 20), 1, periodic=(True, True))), ON_DEVICES)
    whole = plan_subdomain(schedule, transfers, 0)
    parts = plan_subdomain(schedule, transfers, 0, patch=8)
    assert literal_extents([whole]) == [1, 30, 20]
    assert literal_extents([whole, whole]) == [1, 30, 20]
    assert literal_extents([parts]) == [1, 8, 8]
    assert literal_extents([whole, parts]) is None


@pytest.mark.parametrize(
    ("name", "constants", "per_sweep"), [("mhd-benchmark", 3, 0), ("helical-turbulence", 0, 3)]
)
def test_constant_invariants_are_computed_at_the_start_of_a_run(
    name: str, constants: int, per_sweep: int
) -> None:
    """All weights of the equations are constant, except for the time step, which stays in a register.

    The random forcing has too many values that change at each step.
    """
    case = Problem(name, [16, 16, 16])
    schedule = compile_program(case.program, case.grid, device=Strategy())
    transfers = Transfers(Layout.of(decompose((16, 16, 16), 1, periodic=(True,) * 3)), ON_DEVICES)
    plan = plan_subdomain(schedule, transfers, 0)
    at_start = constant_launches(schedule)
    before_sweeps = [
        launch
        for sweep, sweep_plan in zip(schedule.sweeps(), plan.sweeps, strict=True)
        for launch in sweep_launches(schedule, sweep, plan, sweep_plan).invariants
    ]
    assert (len(at_start), len(before_sweeps)) == (constants, per_sweep)
    for launch in (*at_start, *before_sweeps):
        assert launch.total_blocks == launch.planes == 1
        assert launch.kernel.name == f"fill_{launch.kernel.invariants[0]}"
