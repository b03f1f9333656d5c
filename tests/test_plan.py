"""Plans of ranks: executed in plain NumPy and compared with the whole grid, wrapped and filled at once."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halocline.compile.footprint import Footprint
from halocline.compile.ir.statements import Slot
from halocline.compile.schedule import FieldInfo, Fill, Loop, Schedule, Sweep
from halocline.errors import HaloclineError, InputError
from halocline.plan import Box, Caches, Layout, Traffic, Transfers, decompose, least_thickness, plan_rank
from halocline.plan import rank as planning
from work import lines

ITEMSIZE = {"float64": 8, "float32": 4}
UNSET = -1


def plan_subdomain(schedule, decomposition, number, **options):
    """The plan of a subdomain where each rank has one."""
    return planning.plan_subdomain(
        schedule, Transfers(Layout.of(decomposition), ("self", "mpi")), number, **options
    )


# --- schedules as the compiler makes them ---


def wall_fills(field, footprint, periodic, reach):
    """The boundary fills that a read footprint asks for, all axes, both sides."""
    ndim, fills = len(periodic), []
    for axis, side in product(range(ndim), (-1, 1)):
        reads = [(d, w) for d, w in footprint if d[axis] == side]
        depth = max((w[axis] for _, w in reads), default=0)
        if periodic[axis] or not depth:
            continue
        corners = [
            tuple(max((w[a] for d, w in reads if d[a] == s and a != axis), default=0) for s in (-1, 1))
            for a in range(ndim)
        ]
        covers, along = tuple(range(axis)), ((0, 0),) * ndim
        kernel = f"wall{field}"
        fills.append(Fill(kernel, field, (field,), axis, side, depth, reach, tuple(corners), covers, along))
    return fills


@dataclass
class Program:
    """A schedule, and per sweep and field the offsets that cells read at, in and out of the halo kernel."""

    schedule: Schedule
    reads: list[dict[int, list[tuple[int, ...]]]]
    reads_in_halo: list[dict[int, list[tuple[int, ...]]]]
    reach: int  # of the boundary conditions


def make_schedule(periodic, fields, sweeps, reach=1):
    """`fields`: (dtype, staggered); `sweeps`: (reads, already valid, halo extent), by field number."""
    ndim = len(periodic)
    halo = [Footprint() for _ in fields]
    made = []
    for reads, valid, extent in sweeps:
        for field, footprint in reads.items():
            halo[field] |= footprint
        fills = [f for n, p in reads.items() for f in wall_fills(n, p, periodic, reach)]
        made.append(
            Sweep(
                kernel="sweep",
                operands=tuple(range(len(fields))),
                reads=reads,
                exchange={n: p - valid[n] for n, p in reads.items() if p - valid[n]},
                fills=tuple(sorted(fills, key=lambda fill: fill.axis)),
                halo_kernel="in_halo" if extent else None,
                halo_extent=extent,
            )
        )
    infos = [
        FieldInfo(f"field{n}", dtype, tuple(staggered), halo[n].layers(ndim))
        for n, (dtype, staggered) in enumerate(fields)
    ]
    return Schedule(ndim, tuple(periodic), tuple(infos), (), tuple(made), "")


# --- what halos must hold, from the whole grid alone ---


def ghost(values, layer, axis, side):
    """A boundary condition that tells every layer, axis and side apart."""
    return 31 * values + 7 * layer + 3 * axis + side


def inward(layer, reach):
    return layer % reach


def whole_grid(shape, periodic, staggered, number, reach, margin=8):
    """A field with `margin` layers around the grid: wrapped, or filled axis by axis."""
    points = [n + (s and not wraps) for n, s, wraps in zip(shape, staggered, periodic, strict=True)]
    interior = np.arange(prod(points), dtype=np.int64).reshape(points) * 5 + number
    sources, beyond = [], []
    for n, wraps in zip(points, periodic, strict=True):
        at = np.arange(-margin, n + margin)
        layer = np.where(at < 0, -1 - at, at - n)
        inside = (at >= 0) & (at < n)
        if wraps:
            sources.append(at % n)
            beyond.append(None)
        else:
            m = inward(layer, reach)
            source = np.where(inside, at, np.where(at < 0, m, n - 1 - m))
            sources.append(np.clip(source, 0, n - 1))
            beyond.append((~inside, layer, np.sign(at)))
    grid = interior[np.ix_(*sources)]
    for axis, outside in enumerate(beyond):
        if outside is None:
            continue
        where, layer, side = (a.reshape([-1 if d == axis else 1 for d in range(grid.ndim)]) for a in outside)
        grid = np.where(where, ghost(grid, layer, axis, side), grid)
    return grid


class Local:
    """The memory of one rank."""

    def __init__(self, plan, references, margin=8):
        self.plan, self.references, self.margin = plan, references, margin
        self.arrays = [np.full(f.storage.shape, UNSET, dtype=np.int64) for f in plan.fields]
        for n, field in enumerate(plan.fields):
            self.view(n, field.owned)[...] = self.expected(n, field.owned)

    def view(self, field, box):
        lo = self.plan.fields[field].storage.lo
        assert box <= self.plan.fields[field].storage
        return self.arrays[field][
            tuple(slice(a - o, b - o) for a, b, o in zip(box.lo, box.hi, lo, strict=True))
        ]

    def expected(self, field, box):
        box = box.shift(self.plan.box.lo)
        return self.references[field][
            tuple(slice(a + self.margin, b + self.margin) for a, b in zip(box.lo, box.hi, strict=True))
        ]

    def right(self, field, box):
        return np.array_equal(self.view(field, box), self.expected(field, box))

    def fill(self, fill, box):
        axis, end = fill.axis, self.plan.fields[fill.field].owned.hi[fill.axis]
        assert box.shape[axis] == fill.depth
        for layer in range(fill.depth):
            m = inward(layer, fill.reach)
            to, source = (-1 - layer, m) if fill.side < 0 else (end + layer, end - 1 - m)

            def plane(at):
                lo, hi = list(box.lo), list(box.hi)
                lo[axis], hi[axis] = at, at + 1
                return Box(tuple(lo), tuple(hi))

            values = self.view(fill.field, plane(source))
            self.view(fill.field, plane(to))[...] = ghost(values, layer, axis, fill.side)

    def begin(self, sweep, plan):
        """What happens before any message has come."""
        for copy in plan.copies:
            assert copy.source.shape == copy.target.shape
            self.view(copy.field, copy.target)[...] = self.view(copy.field, copy.source)
        for boxes in plan.fills:
            self.fill(sweep.fills[boxes.fill], boxes.core)

    def rims(self, sweep, plan):
        for boxes in plan.fills:
            for rim in boxes.rims:
                self.fill(sweep.fills[boxes.fill], rim.box)

    def unpack(self, message, packed):
        for (field, box), values in zip(message.parts, packed, strict=True):
            assert box.shape == values.shape
            self.view(field, box)[...] = values


def post(plans, locals_, number):
    """All messages of one sweep: (from, to, tag) -> packed boxes."""
    wire = {}
    for plan, local in zip(plans, locals_, strict=True):
        for message in plan.sweeps[number].sends:
            assert message.peer != plan.number
            key = (plan.number, message.peer, message.tag)
            assert key not in wire
            packed = [local.view(field, box).copy() for field, box in message.parts]
            assert not any((values == UNSET).any() for values in packed)
            size = sum(
                v.size * ITEMSIZE[plan.fields[f].dtype]
                for v, (f, _) in zip(packed, message.parts, strict=True)
            )
            assert size == message.bytes
            wire[key] = packed
    return wire


def check(program, decomposition, patch=None):
    """Executes every rank's plan of every sweep and compares all that is read with the whole grid."""
    schedule, shape, periodic = program.schedule, decomposition.shape, decomposition.periodic
    references = [
        whole_grid(shape, periodic, field.staggered, n, program.reach)
        for n, field in enumerate(schedule.fields)
    ]
    plans = [
        plan_subdomain(schedule, decomposition, rank, patch=patch) for rank in range(decomposition.count)
    ]
    tags = {}
    for number, sweep in enumerate(schedule.sweeps()):
        locals_ = [Local(plan, references) for plan in plans]
        for local in locals_:  # what the schedule takes to be valid already
            for field, footprint in sweep.reads.items():
                for direction, width in footprint - sweep.exchange.get(field, Footprint()):
                    if decomposition.neighbour(local.plan.number, direction) is not None:
                        box = segment(local.plan, field, direction, width)
                        local.view(field, box)[...] = local.expected(field, box)
        wire = post(plans, locals_, number)
        for key in wire:
            assert tags.setdefault(key, number) == number, "a tag of another sweep"
        received = set()
        for plan, local in zip(plans, locals_, strict=True):
            for message in plan.sweeps[number].receives:
                key = (message.peer, plan.number, message.tag)
                assert key not in received
                received.add(key)
                packed = wire[key]
                size = sum(
                    v.size * ITEMSIZE[plan.fields[f].dtype]
                    for v, (f, _) in zip(packed, message.parts, strict=True)
                )
                assert size == message.bytes
            check_rank(
                sweep, plan.sweeps[number], local, wire, program.reads[number], program.reads_in_halo[number]
            )
        assert received == set(wire)


def segment(plan, field, direction, width):
    """The halo segment of a field, walls or not."""
    lo, hi = [], []
    for d, w, n, points in zip(direction, width, plan.box.shape, plan.fields[field].owned.hi, strict=True):
        lo.append(-w if d < 0 else n if d > 0 else 0)
        hi.append(0 if d < 0 else n + w if d > 0 else points)
    return Box(tuple(lo), tuple(hi))


def check_rank(sweep, plan, local, wire, reads, reads_in_halo):
    """Every halo segment once all is there; every patch and halo box with only what it waits for."""
    rank, patches = local.plan.number, local.plan.patches.table
    local.begin(sweep, plan)
    before = [a.copy() for a in local.arrays]

    def arrived(mask, rims):
        local.arrays = [a.copy() for a in before]
        for i, message in enumerate(plan.receives):
            if (mask | (plan.rim_needs if rims else 0)) >> i & 1:
                local.unpack(message, wire[message.peer, rank, message.tag])
        if rims:
            local.rims(sweep, plan)

    everything = (1 << len(plan.receives)) - 1
    arrived(everything, True)
    for field, footprint in sweep.reads.items():
        for direction, width in footprint:
            assert local.right(field, segment(local.plan, field, direction, width)), (rank, field, direction)

    def check_reads(lo, hi, top):
        for field, offsets in reads.items():
            staggered = [
                p > n for p, n in zip(local.plan.fields[field].owned.hi, local.plan.box.shape, strict=True)
            ]
            end = [h + (t and s) for h, t, s in zip(hi, top, staggered, strict=True)]
            for offset in offsets:
                assert local.right(field, Box(tuple(lo), tuple(end)).shift(offset)), (rank, field, lo, offset)

    classes = {}
    for n, (mask, rims) in enumerate(zip(plan.patch_needs.tolist(), plan.patch_rims.tolist(), strict=True)):
        classes.setdefault((mask, rims), []).append(n)
    for (mask, rims), members in classes.items():
        arrived(mask, rims)
        for n in members:
            check_reads(*patches[n].tolist())
    for halo in plan.halos:
        arrived(halo.needs, halo.rims)
        for field, offsets in reads_in_halo.items():
            points = local.plan.fields[field].owned.hi
            more = [(0, t and p > n) for t, p, n in zip(halo.top, points, local.plan.box.shape, strict=True)]
            for offset in offsets:
                assert local.right(field, halo.box.grow(more).shift(offset)), (rank, halo, offset)


# --- random programs on random subdomains ---


@st.composite
def cases(draw):
    ndim = draw(st.integers(1, 3))
    parts = tuple(draw(st.integers(1, 3 if ndim < 3 else 2)) for _ in range(ndim))
    if ndim == 3 and draw(st.booleans()):
        parts = (3, *parts[1:])
    periodic = tuple(draw(st.booleans()) for _ in range(ndim))
    most = draw(st.integers(1, 3 if ndim < 3 else 2))
    offset = st.tuples(*[st.integers(-most, most)] * ndim)
    fields = [
        (draw(st.sampled_from(["float64", "float32"])), [draw(st.integers(0, 3)) == 0 for _ in range(ndim)])
        for _ in range(draw(st.integers(1, 3)))
    ]
    offsets = [
        {n: draw(st.lists(offset, min_size=1, max_size=5)) for n in range(len(fields)) if draw(st.booleans())}
        for _ in range(draw(st.integers(1, 2)))
    ]
    reach = draw(st.integers(1, 2))
    sweeps = []
    for reads in offsets:
        footprints = {n: Footprint.from_offsets(o) for n, o in reads.items()}
        footprints = {n: p for n, p in footprints.items() if p}
        valid = {
            n: Footprint(tuple(s for s in p if draw(st.integers(0, 4)) == 0)) for n, p in footprints.items()
        }
        sweeps.append((footprints, valid, Footprint()))
    schedule = make_schedule(periodic, fields, sweeps, reach)
    program = Program(schedule, offsets, [{} for _ in offsets], reach)
    least = least_thickness(schedule)
    shape = tuple(p * max(1, t) + draw(st.integers(0, 2 * p)) for p, t in zip(parts, least, strict=True))
    patch = draw(st.none() | st.tuples(*[st.integers(1, 4)] * ndim))
    decomposition = decompose(shape, prod(parts), strategy=parts, periodic=periodic, thickness=least)
    return program, decomposition, patch


@settings(max_examples=200, deadline=None)
@given(cases())
def test_every_halo_cell_that_is_read_is_right(case):
    check(*case)


def star(ndim, radius):
    """Offsets along the axes."""
    return [
        tuple(r if b == a else 0 for b in range(ndim))
        for a in range(ndim)
        for r in range(-radius, radius + 1)
    ]


def cube(ndim, radius):
    return list(product(range(-radius, radius + 1), repeat=ndim))


def one_field(periodic, offsets, extent=(), *, staggered=None, dtype="float64", reach=1):
    """A program of one sweep over one field, which its halo kernel computes on `extent` too."""
    ndim = len(periodic)
    read = sorted({tuple(map(sum, zip(a, b, strict=True))) for a in offsets for b in extent or [(0,) * ndim]})
    footprint = Footprint.from_offsets([*offsets, *read])
    schedule = make_schedule(
        periodic,
        [(dtype, staggered or (False,) * ndim)],
        [({0: footprint}, {0: Footprint()}, Footprint.from_offsets(extent))],
        reach,
    )
    return Program(schedule, [{0: list(offsets)}], [{0: list(offsets)}], reach)


@pytest.mark.parametrize("periodic", list(product([True, False], repeat=2)))
@pytest.mark.parametrize("parts", [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2)])
@pytest.mark.parametrize("offsets", [star(2, 1), star(2, 2), cube(2, 1), cube(2, 2)])
@pytest.mark.parametrize("extra", [0, 1])
def test_thin_subdomains(periodic, parts, offsets, extra):
    """As thick as the halo (one cell, where that is one layer), and uneven ones."""
    program = one_field(periodic, offsets)
    schedule = program.schedule
    least = least_thickness(schedule)
    shape = tuple(p * t + extra for p, t in zip(parts, least, strict=True))
    d = decompose(shape, prod(parts), strategy=parts, periodic=periodic, thickness=least)
    check(program, d, patch=1)


@pytest.mark.parametrize("periodic", list(product([True, False], repeat=3)))
@pytest.mark.parametrize("parts", [(1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 2), (3, 1, 2)])
def test_corners_in_three_dimensions(periodic, parts):
    program = one_field(periodic, cube(3, 1), staggered=(True, False, True))
    d = decompose(tuple(2 * p + 1 for p in parts), prod(parts), strategy=parts, periodic=periodic)
    check(program, d, patch=2)


@pytest.mark.parametrize("periodic", list(product([True, False], repeat=2)))
@pytest.mark.parametrize("parts", [(1, 1), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize(("reads", "extent"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("staggered", [(False, False), (True, False)])
def test_halo_kernels_run_where_their_reads_are_valid(periodic, parts, reads, extent, staggered):
    program = one_field(periodic, star(2, reads), star(2, extent), staggered=staggered)
    schedule = program.schedule
    least = least_thickness(schedule)
    shape = tuple(4 * p + 1 for p in parts)
    d = decompose(shape, prod(parts), strategy=parts, periodic=periodic, thickness=least)
    check(program, d, patch=3)
    for rank in range(d.count):
        plan = plan_subdomain(schedule, d, rank)
        computed = [
            (
                halo.box.lo,
                tuple(h + (t and s) for h, t, s in zip(halo.box.hi, halo.top, staggered, strict=True)),
            )
            for halo in plan.sweeps[0].halos
        ]
        wanted = [
            segment(plan, 0, s, tuple(extent * abs(c) for c in s))
            for s in star(2, 1)
            if any(s) and d.neighbour(rank, s) is not None
        ]
        assert sorted(computed) == sorted((box.lo, box.hi) for box in wanted)


# --- messages ---


def test_two_ranks_along_a_periodic_axis_are_neighbours_twice():
    program = one_field((True,), [(-1,), (2,)])
    schedule = program.schedule
    d = decompose((8,), 2, thickness=2)
    first, second = (plan_subdomain(schedule, d, rank).sweeps[0] for rank in (0, 1))
    assert [m.peer for m in first.sends] == [1, 1]
    assert len({m.tag for m in first.sends}) == 2
    assert {m.tag for m in first.sends} == {m.tag for m in second.receives}
    assert sorted(m.bytes for m in first.sends) == [8, 16]
    check(program, d)


def test_poisson_on_four_ranks():
    schedule = one_field((False, False), star(2, 1)).schedule
    d = decompose((1024, 1024), 4, strategy="1d", periodic=False)
    plan = plan_subdomain(schedule, d, 1)
    assert plan.box == Box((256, 0), (512, 1024))
    assert plan.neighbours == {(-1, 0): 0, (1, 0): 2}
    (sweep,) = plan.sweeps
    assert [m.bytes for m in sweep.receives] == [8192, 8192]
    assert sweep.bytes_sent == sweep.bytes_received == 16384
    assert not sweep.copies
    assert [schedule.operations[0].fills[f.fill].axis for f in sweep.fills] == [1, 1]
    assert not any(f.rims for f in sweep.fills)  # no corner is read
    assert plan.memory == 258 * 1026 * 8
    assert plan_subdomain(schedule, d, 0).neighbours == {(1, 0): 1}


def test_only_what_is_read_travels():
    """A field that is read farther does not widen another's halo; corners travel where they are read."""
    schedule = make_schedule(
        (True, True),
        [("float64", (False, False)), ("float32", (False, False))],
        [
            (
                {0: Footprint.from_offsets(star(2, 2)), 1: Footprint.from_offsets(cube(2, 1))},
                [Footprint()] * 2,
                (),
            )
        ],
    )
    d = decompose((30, 40), 9, strategy=(3, 3), thickness=2)
    sweep = plan_subdomain(schedule, d, 4).sweeps[0]
    sizes = {m.direction: m.bytes for m in sweep.receives}
    n, m = d.box(4).shape
    assert sizes == {
        (-1, 0): 2 * m * 8 + m * 4,
        (1, 0): 2 * m * 8 + m * 4,
        (0, -1): 2 * n * 8 + n * 4,
        (0, 1): 2 * n * 8 + n * 4,
        **{(a, b): 4 for a in (-1, 1) for b in (-1, 1)},
    }


def test_one_message_a_neighbour_and_direction():
    """Slabs of a periodic box with 26 segments: two messages, not eighteen; the other eight are copies."""
    schedule = one_field((True, True, True), cube(3, 1)).schedule
    d = decompose((12, 6, 6), 3, strategy=(3, 1, 1))
    sweep = plan_subdomain(schedule, d, 1).sweeps[0]
    assert [m.direction for m in sweep.receives] == [(-1, 0, 0), (1, 0, 0)]
    assert [len(m.parts) for m in sweep.receives] == [9, 9]
    assert sum(m.bytes for m in sweep.receives) == 2 * 8 * 8 * 8
    assert len(sweep.copies) == 8


def test_exchanges_of_one_schedule_have_their_own_tags():
    footprint = {0: Footprint.from_offsets(cube(2, 1))}
    schedule = make_schedule(
        (True, True), [("float64", (False, False))], [(footprint, [Footprint()], ())] * 3
    )
    sweeps = plan_subdomain(schedule, decompose((9, 9), 9), 4).sweeps
    tags = [m.tag for s in sweeps for m in s.sends]
    assert len(tags) == len(set(tags)) == 24
    assert max(tags) <= 32767  # the least upper bound that MPI promises


# --- patches ---


def cells_of(plan):
    table = plan.patches.table
    return (table[:, 1] - table[:, 0]).prod(axis=1)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(1, 3),
    st.booleans(),
    st.data(),
)
def test_patches_cover_a_subdomain_once(shape, threads, radius, periodic, data):
    ndim = len(shape)
    if ndim == 3:
        shape = [min(n, 60) for n in shape]
    shape = [max(n, radius) for n in shape]
    schedule = one_field((periodic,) * ndim, star(ndim, radius)).schedule
    count = data.draw(st.sampled_from([1, 2, 3, 4, 6, 8]))
    try:
        d = decompose(shape, count, periodic=periodic, thickness=radius)
    except InputError:
        d = decompose(shape, 1, periodic=periodic, thickness=radius)
    rank = data.draw(st.integers(0, d.count - 1))
    patch = data.draw(st.none() | st.tuples(*[st.integers(1, n + 5) for n in shape]))
    if patch is not None and prod(n // b + 1 for n, b in zip(shape, patch, strict=True)) > 5000:
        patch = None
    plan = plan_subdomain(schedule, d, rank, patch=patch, threads=threads)
    seen = np.zeros(plan.box.shape, dtype=int)
    walls = [hi == n and not periodic for hi, n in zip(plan.box.hi, shape, strict=True)]
    for lo, hi, top in plan.patches.table.tolist():
        assert all(a < b for a, b in zip(lo, hi, strict=True))
        seen[tuple(map(slice, lo, hi))] += 1
        assert top == [int(b == n and wall) for b, n, wall in zip(hi, plan.box.shape, walls, strict=True)]
        if patch is not None:
            assert all(a % b == 0 and c - a <= b for a, b, c in zip(lo, patch, hi, strict=True))
    assert (seen == 1).all()
    ranges = plan.patches.ranges
    assert len(ranges) == threads + 1
    assert ranges[0] == 0
    assert ranges[-1] == len(plan.patches)
    assert list(ranges) == sorted(ranges)


@pytest.mark.parametrize("patch", [1, 2, 3, 5, 40, None])
def test_one_patch_fills_each_end_of_a_row_that_wraps_around(patch):
    """Another patch within reach of an end would write the same cells at the same time."""
    radius = 3
    schedule = one_field((True, True), star(2, radius)).schedule
    (sweep,) = schedule.operations
    schedule = replace(schedule, operations=(replace(sweep, wraps=(0,)),))
    plan = plan_subdomain(schedule, decompose((6, 40), 1, periodic=True), 0, patch=patch)
    for lo, hi in {(lo[1], hi[1]) for lo, hi, _ in plan.patches.table.tolist()}:
        assert lo == 0 or lo >= radius
        assert hi == 40 or hi <= 40 - radius
    cut = plan_subdomain(schedule, decompose((6, 40), 2, strategy=(1, 2), periodic=True), 0, patch=patch)
    if patch is not None:  # rows that do not wrap around themselves are cut as the user says
        assert cut.patches.edges[1] == (*range(0, 20, patch), 20)


def test_every_other_sweep_runs_backward():
    schedule = one_field((True, True), star(2, 1)).schedule
    (sweep,) = schedule.operations
    body = Loop(None, 0, 1, (), (sweep, sweep, sweep))
    schedule = replace(schedule, operations=(sweep, sweep, body, sweep))
    plan = plan_subdomain(schedule, decompose((8, 8), 1, periodic=True), 0)
    assert [s.backward for s in plan.sweeps] == [False, True, False, True, False, False]


def test_scratch_memory_is_for_the_largest_patch():
    schedule = one_field((True, True), star(2, 1)).schedule
    (sweep,) = schedule.operations
    sweep = replace(sweep, scratch=(Slot(0, 8, (2, 2)), Slot(1, 4, (0, 1))))
    plan = plan_subdomain(
        replace(schedule, operations=(sweep,)), decompose((9, 20), 1, periodic=True), 0, patch=(4, 12)
    )
    # 6 rows of 14 numbers of 8 bytes in two lines; 4 rows of 13 of 4 bytes in one
    assert plan.sweeps[0].scratch_bytes == 6 * 128 + 4 * 64


def test_owners_are_the_ranges():
    schedule = one_field((True, True), star(2, 1)).schedule
    plan = plan_subdomain(schedule, decompose((64, 64), 1, periodic=True), 0, patch=8, threads=3)
    owners = plan.patches.owners.tolist()
    assert len(owners) == len(plan.patches)
    for thread, (first, end) in enumerate(pairwise(plan.patches.ranges)):
        assert owners[first:end] == [thread] * (end - first)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("shape", [(1024, 1024), (512, 4096), (8192, 8192), (128, 128, 128), (512, 512, 512)])
def test_threads_have_enough_patches_and_equal_shares(shape, threads):
    schedule = one_field((False,) * len(shape), star(len(shape), 1)).schedule
    plan = plan_subdomain(schedule, decompose(shape, 1, periodic=False), 0, threads=threads)
    cells = cells_of(plan)
    assert len(cells) >= 4 * threads
    shares = [cells[a:b].sum() for a, b in pairwise(plan.patches.ranges)]
    assert max(shares) <= 1.3 * prod(shape) / threads
    assert cells.max() <= 2**22
    assert (plan.patches.table[:, 1, -1] - plan.patches.table[:, 0, -1] == shape[-1]).all()  # whole rows
    # each thread starts on memory of its own: its patches come after those of the one before along axis 0
    firsts = [plan.patches.table[a, 0, 0] for a in plan.patches.ranges[:-1]]
    assert firsts == sorted(set(firsts))


@pytest.mark.parametrize("shape", [(2048, 4096), (256, 256, 256)])
def test_patches_are_short_where_a_thread_must_look_after_messages(shape):
    """MPI moves bytes only while it is called, which is between two patches."""
    schedule = one_field((True,) * len(shape), star(len(shape), 1)).schedule
    cut = decompose(shape, 2, periodic=True, strategy="1d-x")
    most = {}
    for methods in (("self", "mpi"), ("self", "rma", "mpi"), ("self", "colocated", "mpi")):
        transfers = Transfers(Layout.of(cut), methods)
        most[methods] = cells_of(plan_rank(schedule, transfers, 0).subdomains[0]).max()
    remote, boxes, near = most.values()
    assert remote == boxes <= 2**16 < near


def planes_in_reach(patch, radius, itemsize):
    """One array read by a star, one written, both in double: bytes of the planes around a row of work."""
    return itemsize * (
        (2 * radius + 1) * (patch[1] + 2 * radius) * (patch[2] + 2 * radius) + patch[1] * patch[2]
    )


@pytest.mark.parametrize("radius", [1, 3])
@pytest.mark.parametrize("l2", [2**19, 2**20, 2**21])
def test_planes_of_a_patch_fit_in_half_of_the_cache_unless_it_is_the_least_patch(radius, l2):
    footprint = {0: Footprint.from_offsets(star(3, radius))}
    schedule = make_schedule(
        (True,) * 3, [("float64", (False,) * 3)] * 2, [(footprint, [Footprint()] * 2, ())]
    )
    plan = plan_subdomain(schedule, decompose((512,) * 3, 1, thickness=radius), 0, caches=Caches(l2=l2))
    table = plan.patches.table
    shape = (table[:, 1] - table[:, 0]).max(axis=0).tolist()
    least = [max(8, 4 * radius), 512]
    assert all(n >= m for n, m in zip(shape[1:], least, strict=True))
    if any(n >= 2 * m for n, m in zip(shape[1:], least, strict=True)):
        assert planes_in_reach(shape, radius, 8) <= l2 // 2
    assert shape[0] >= 4 * shape[1]
    twice = [shape[0], 2 * shape[1], shape[2]]
    assert planes_in_reach(twice, radius, 8) > l2 // 4  # and no smaller than that asks for


def test_scratch_arrays_of_a_patch_fit_in_half_of_the_cache():
    schedule = one_field((False, False), star(2, 1)).schedule
    (sweep,) = schedule.sweeps()
    schedule = replace(schedule, operations=(replace(sweep, scratch=(Slot(0, 8, (2, 2)),)),))
    plan = plan_subdomain(schedule, decompose((4096, 4096), 1, periodic=False), 0, caches=Caches(l2=2**21))
    table = plan.patches.table
    rows, columns = (table[:, 1] - table[:, 0]).max(axis=0).tolist()
    assert 2**17 <= (rows + 2) * (columns + 2) * 8 <= 2**20
    assert columns >= 512


@pytest.mark.parametrize(
    ("shape", "parts", "share"),
    [
        ((4096, 4096), (2, 1), 0.9),
        ((4096, 4096), (1, 2), 0.9),
        ((4096, 4096), (4, 4), 0.8),
        ((1024, 1024), (2, 2), 0.8),
        ((512, 512, 512), (2, 1, 1), 0.85),
        ((512, 512, 512), (1, 1, 2), 0.7),
        ((512, 512, 512), (2, 2, 2), 0.55),
        ((192, 192, 192), (3, 3, 1), 0.6),
    ],
)
def test_inner_patches_wait_for_no_message(shape, parts, share):
    ndim = len(shape)
    schedule = one_field((True,) * ndim, cube(ndim, 1)).schedule
    plan = plan_subdomain(schedule, decompose(shape, prod(parts), strategy=parts), prod(parts) - 1, threads=2)
    cells, inner = cells_of(plan), plan.sweeps[0].patch_needs == 0
    assert cells[inner].sum() >= share * cells.sum()
    assert inner.sum() >= 8


def test_a_patch_waits_only_for_what_it_reads():
    """Nine patches of a subdomain in the middle: which of the eight messages each of them reads."""
    schedule = one_field((True, True), cube(2, 1)).schedule
    d = decompose((27, 27), 9)
    plan = plan_subdomain(schedule, d, 4, patch=3)
    bit = {m.direction: 1 << i for i, m in enumerate(plan.sweeps[0].receives)}
    assert len(bit) == 8
    needs = plan.sweeps[0].patch_needs.reshape(3, 3)
    for a, b in product(range(3), repeat=2):
        touched = [
            (i, j)
            for i, j in product((-1, 0, 1), repeat=2)
            if (i, j) != (0, 0) and i in (0, a - 1) and j in (0, b - 1)
        ]
        assert needs[a, b] == sum(bit[t] for t in touched)
    # with a star, corners neither travel nor hold anything up
    plan = plan_subdomain(one_field((True, True), star(2, 1)).schedule, d, 4, patch=3)
    assert len(plan.sweeps[0].receives) == 4
    assert [int(n).bit_count() for n in plan.sweeps[0].patch_needs] == [2, 1, 2, 1, 0, 1, 2, 1, 2]


def test_rims_hold_up_only_patches_in_the_corners():
    schedule = one_field((False, True), cube(2, 1)).schedule
    d = decompose((30, 30), 3, strategy=(1, 3), periodic=(False, True))
    sweep = plan_subdomain(schedule, d, 1, patch=(6, 2)).sweeps[0]
    assert [len(f.rims) for f in sweep.fills] == [2, 2]
    rims = sweep.patch_rims.reshape(5, 5)
    assert rims.tolist() == [[i in (0, 4) and j in (0, 4) for j in range(5)] for i in range(5)]
    (first, second) = sweep.fills[0].rims
    assert first.needs | second.needs == sweep.rim_needs == 0b11
    assert first.needs != second.needs


@pytest.mark.parametrize(("methods", "rims"), [("self,mpi", 0), ("mpi", 2)])
def test_ghosts_wait_for_what_a_subdomain_sends_to_itself(methods, rims):
    """Around a periodic axis that it spans alone, where it may not copy."""
    schedule = one_field((False, True), cube(2, 1)).schedule
    cut = decompose((8, 8), 1, periodic=(False, True))
    sweep = planning.plan_subdomain(schedule, Transfers(Layout.of(cut), methods), 0).sweeps[0]
    assert [len(fill.rims) for fill in sweep.fills] == [rims, rims]
    assert bool(sweep.receives) == bool(rims)
    assert all(rim.needs for fill in sweep.fills for rim in fill.rims)


def test_ghosts_of_a_lower_axis_belong_to_the_core():
    """Where walls meet nothing is waited for: the fill of the higher axis covers the corner at once."""
    schedule = one_field((False, False), cube(2, 1)).schedule
    d = decompose((8, 8), 2, strategy=(2, 1), periodic=False)
    sweep = plan_subdomain(schedule, d, 0).sweeps[0]
    fills = schedule.operations[0].fills
    placed = {(fills[b.fill].axis, fills[b.fill].side): b for b in sweep.fills}
    assert set(placed) == {(0, -1), (1, -1), (1, 1)}
    assert placed[0, -1].core == Box((-1, 0), (0, 8))
    assert placed[0, -1].rims == ()
    assert placed[1, 1].core == Box((-1, 8), (4, 9))
    assert [(r.box, r.needs) for r in placed[1, 1].rims] == [(Box((4, 8), (5, 9)), 1)]


@pytest.mark.parametrize(
    ("patch", "words"),
    [((0, 4), ["(0, 4)", "at least 1"]), ((4, 4, 4), ["3 axes", "2"]), ("ab", ["'ab'", "whole cells"])],
)
def test_wrong_patches(patch, words):
    schedule = one_field((True, True), star(2, 1)).schedule
    with pytest.raises(InputError) as error:
        plan_subdomain(schedule, decompose((8, 8), 1), 0, patch=patch)
    assert not [word for word in words if word not in str(error.value)], str(error.value)


def test_one_number_is_the_patch_along_every_axis():
    schedule = one_field((True, True), star(2, 1)).schedule
    plans = [plan_subdomain(schedule, decompose((8, 8), 1), 0, patch=p) for p in (4, (4,), (4, 4))]
    assert {len(p.patches) for p in plans} == {4}


def test_no_threads():
    with pytest.raises(InputError, match="threads is 0; expected a whole number from 1"):
        plan_subdomain(one_field((True,), star(1, 1)).schedule, decompose((8,), 1), 0, threads=0)


# --- what does not fit ---


@pytest.mark.parametrize(
    ("shape", "parts", "periodic", "radius", "reach", "words"),
    [
        (
            (16, 64),
            (8, 1),
            (True, True),
            3,
            1,
            ["'field0'", "halo of 3", "axis x", "8 subdomains", "leave 2", "at most 5"],
        ),
        ((64, 16), (1, 8), (False, False), 3, 1, ["halo of 3", "axis y", "at most 5"]),
        ((64, 2), (1, 1), (True, True), 3, 1, ["axis y", "1 subdomain ", "leave 2", "at least 3"]),
        (
            (16, 64),
            (8, 1),
            (False, True),
            1,
            3,
            ["boundary condition that reads 3", "axis x", "leave 2", "at most 5"],
        ),
        ((2, 64), (1, 1), (False, True), 1, 3, ["reads 3", "axis x", "leave 2", "at least 3"]),
    ],
)
def test_subdomains_that_are_too_thin(shape, parts, periodic, radius, reach, words):
    schedule = one_field(periodic, star(2, radius), reach=reach).schedule
    d = decompose(shape, prod(parts), strategy=parts, periodic=periodic, thickness=1)
    messages = set()
    for rank in range(d.count):
        with pytest.raises(InputError) as error:
            plan_subdomain(schedule, d, rank)
        messages.add(str(error.value))
    (message,) = messages  # the same on every rank
    assert not [word for word in words if word not in message], message


def test_a_wall_axis_of_one_cell_needs_no_halo_to_send():
    program = one_field((False, True), star(2, 2))
    check(program, decompose((1, 8), 2, strategy=(1, 2), periodic=(False, True), thickness=2))


def test_a_decomposition_of_another_grid():
    schedule = one_field((True, True), star(2, 1)).schedule
    with pytest.raises(InputError, match="periodic"):
        plan_subdomain(schedule, decompose((8, 8), 1, periodic=False), 0)


def test_memory_is_never_overrun():
    """A schedule that allocates less halo than it exchanges is refused."""
    schedule = one_field((True,), star(1, 2)).schedule
    narrow = FieldInfo("u", "float64", (False,), ((1, 2),))
    with pytest.raises(HaloclineError, match=r"'u'.*too narrow a halo"):
        plan_subdomain(replace(schedule, fields=(narrow,)), decompose((8,), 2), 0)


# --- plain data, quickly ---


def test_traffic_counts_what_loops_repeat():
    once, often = (one_field((True, True), star(2, r)).schedule.operations[0] for r in (2, 1))
    field = FieldInfo("u", "float32", (False, False), ((2, 2), (2, 2)))
    loop = Loop(None, None, 0, (), (often,))
    schedule = Schedule(2, (True, True), (field,), (), (once, loop), "")
    assert Traffic.of_schedule(schedule) == Traffic.of([(Footprint.from_offsets(star(2, 1)), 4)], 2)
    assert decompose((64, 64), 4, traffic=Traffic.of_schedule(schedule)).cost == 2 * 4 * 4 * 32
    assert least_thickness(schedule) == (2, 2)


def test_plans_are_plain_data():
    schedule = one_field((True, False), cube(2, 1), star(2, 1)).schedule
    plan = plan_subdomain(schedule, decompose((32, 32), 4, periodic=(True, False)), 3, threads=2)
    text = json.dumps(plan.to_dict())
    again = pickle.loads(pickle.dumps(plan))
    assert json.dumps(again.to_dict()) == text
    data = json.loads(text)
    assert data["subdomain"] == 3
    assert data["memory_bytes"] == plan.memory
    assert len(data["sweeps"][0]["receives"]) == len(plan.sweeps[0].receives) > 0
    with pytest.raises(ValueError, match="read-only"):
        plan.patches.table[0, 0, 0] = 1


def test_planning_is_quick():
    """A right-hand side of magnetohydrodynamics: eight fields, sides and edges, 512³ cells a rank."""
    footprint = Footprint.from_offsets(
        o for o in cube(3, 3) if sum(map(bool, o)) <= 2 and len({abs(c) for c in o if c}) <= 1
    )
    fields = [("float64", (False,) * 3)] * 16
    reads = dict.fromkeys(range(8), footprint)
    schedule = make_schedule((True,) * 3, fields, [(reads, [Footprint()] * 16, ())])
    d = decompose((1024,) * 3, 8, thickness=3)
    assert (
        512**3 / 2**16 < len(plan_subdomain(schedule, d, 5).patches) < 6000
    )  # looked after: messages of MPI
    assert lines(lambda: plan_subdomain(schedule, d, 5)) < 150_000


def test_one_rank_of_very_many():
    """64³ cells a rank: neither time nor memory grows with the number of ranks."""
    schedule = one_field((True,) * 3, cube(3, 2)).schedule
    kept = []
    for parts in ((5, 5, 4), (25, 20, 20), (50, 50, 40), (100, 100, 100)):

        def work(parts=parts):
            shape, count = [64 * p for p in parts], prod(parts)
            d = decompose(shape, count, traffic=Traffic.of_schedule(schedule), thickness=2)
            return plan_subdomain(schedule, d, count // 3)

        assert lines(work) < 120_000
        tracemalloc.start()
        plan = work()
        kept.append(tracemalloc.get_traced_memory()[0])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert plan.decomposition.parts == parts
        assert len(plan.neighbours) == 26
        assert peak < 500_000
    assert max(kept) < 1.2 * min(kept)


def test_a_rank_of_very_many_is_planned_in_a_small_process():
    """260,000 ranks of 32,500 nodes, from the grid on, in a process that does nothing else: 60 MB."""
    script = """
import re, sys
from pathlib import Path
import halocline as hc
import numpy  # counts as memory, not as planning
from halocline.compile.compiler import compile_program
from halocline.lang.stepping import program_of
from halocline.plan import Traffic, Transfers, lay_out, least_thickness, plan_rank

grid = hc.Grid((4160,) * 3, periodic=True)
T = grid.field("T")
heat = lambda kappa: {T: kappa * hc.laplacian(T)}
program = program_of(grid, heat, parameters={"kappa": 1.0}, scheme=hc.RK3(), dt=1e-9, order=6)
schedule = compile_program(program, grid)
traffic, thickness = Traffic.of_schedule(schedule), least_thickness(schedule)
sys.path.insert(0, sys.argv[1])
from work import lines
counts = []
for rank in (0, 131_313, 259_999):
    def work():
        global plan
        layout = lay_out((4160,) * 3, 260_000, ranks_per_node=8, traffic=traffic, thickness=thickness)
        plan = plan_rank(schedule, Transfers(layout), rank)
    counts.append(lines(work))
most = re.search(r"VmHWM: *(\\d+) kB", Path("/proc/self/status").read_text().replace("\\t", " "))
print(max(counts), int(most[1]) * 1024, len(plan.subdomains[0].neighbours))
"""
    here = str(Path(__file__).parent)
    told = subprocess.run(
        [sys.executable, "-c", script, here], capture_output=True, text=True, check=True
    ).stdout
    count, memory, neighbours = map(float, told.split())
    assert neighbours == 6
    assert count < 80_000
    assert memory < 60e6
