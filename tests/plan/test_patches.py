"""Patches of a subdomain."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executed_plans import cube, make_schedule, one_field, plan_subdomain, star
from halocline.compile.footprint import Footprint
from halocline.compile.ir.statements import Slot
from halocline.compile.schedule import DeviceCode, Loop
from halocline.errors import InputError
from halocline.lang.blocks import Blocks
from halocline.plan import decompose, patches
from halocline.plan import rank as planning
from halocline.plan.box import Box
from halocline.plan.layout import Layout
from halocline.plan.patches import slab_count, slot_bytes
from halocline.plan.rank import plan_rank
from halocline.plan.transfer import Transfers
from suites import examples


def cells_of(plan):
    table = plan.patches.table
    return (table[:, 1] - table[:, 0]).prod(axis=1)


@settings(max_examples=examples(50, 150), deadline=None)
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
    counts = np.zeros(plan.box.shape, dtype=int)
    walls = [hi == n and not periodic for hi, n in zip(plan.box.hi, shape, strict=True)]
    for lo, hi, top in plan.patches.table.tolist():
        assert all(a < b for a, b in zip(lo, hi, strict=True))
        counts[tuple(map(slice, lo, hi))] += 1
        assert top == [int(b == n and wall) for b, n, wall in zip(hi, plan.box.shape, walls, strict=True)]
        if patch is not None:
            assert all(a % b == 0 and c - a <= b for a, b, c in zip(lo, patch, hi, strict=True))
    assert (counts == 1).all()
    ranges = plan.patches.ranges
    assert len(ranges) == threads + 1
    assert ranges[0] == 0
    assert ranges[-1] == len(plan.patches)
    assert list(ranges) == sorted(ranges)


@pytest.mark.parametrize("patch", [1, 2, 3, 5, 40, None])
def test_one_patch_fills_each_end_of_a_row_that_wraps_around(patch):
    """No other patch is within reach of an end, since it would write the same cells at the same time."""
    radius = 3
    schedule = one_field((True, True), star(2, radius)).schedule
    (sweep,) = schedule.operations
    schedule = replace(schedule, operations=(replace(sweep, wraps=(0,)),))
    plan = plan_subdomain(schedule, decompose((6, 40), 1, periodic=True), 0, patch=patch)
    for lo, hi in {(lo[1], hi[1]) for lo, hi, _ in plan.patches.table.tolist()}:
        assert lo == 0 or lo >= radius
        assert hi == 40 or hi <= 40 - radius
    cut = plan_subdomain(schedule, decompose((6, 40), 2, strategy=(1, 2), periodic=True), 0, patch=patch)
    if patch is not None:  # rows that do not wrap around themselves are cut at the given size
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


SLOTS = (Slot(0, 8, (6, 2, 2)), Slot(1, 8, (2, 0, 0)))  # 6 is the overlap of slabs


@pytest.mark.parametrize(
    ("shape", "slots", "limit", "expected"),
    [
        ((100, 14, 14), SLOTS, 2**30, 1),  # within the limit
        ((100, 14, 14), SLOTS, 106 * 16 * 128 + 102 * 14 * 128, 1),  # exactly the limit
        ((100, 14, 14), SLOTS, 106 * 16 * 128 + 102 * 14 * 128 - 1, 2),
        ((1000, 14, 14), SLOTS, 100 * 16 * 128 + 96 * 14 * 128, 11),  # slabs of at most 94 planes
        ((1000, 14, 14), SLOTS, 1, 20),  # at least 8 x 6 planes
        ((95, 14, 14), SLOTS, 1, 1),
        ((10, 14, 14), (Slot(0, 8, (0, 2, 2)),), 1, 10),  # stages without overlap
        ((1000, 14, 14), (Slot(0, 8, (6, 2, 2), planes=3),), 1, 1),  # a ring does not grow with the slab
        ((1000, 14, 14), (), 1, 1),
        ((1000,), (Slot(0, 8, (2,)),), 64 * 16, 9),
    ],
)
def test_slabs_limit_the_scratch_memory_and_the_overlap(shape, slots, limit, expected, monkeypatch):
    monkeypatch.setattr(patches, "SCRATCH_BYTES", limit)
    assert slab_count(shape, [(), slots]) == expected


@pytest.mark.parametrize("parts", [(1, 1, 1), (2, 2, 1)])
def test_a_device_computes_slabs_if_scratch_memory_exceeds_the_limit(parts, monkeypatch):
    schedule = one_field((True,) * 3, star(3, 2)).schedule
    (sweep,) = schedule.operations
    sweep = replace(sweep, scratch=(Slot(0, 8, (2, 2, 2)),))
    schedule = replace(schedule, operations=(sweep,), device=DeviceCode("", {}))
    cut = decompose((96, 64, 80), prod(parts), strategy=parts, periodic=True)
    whole = plan_subdomain(schedule, cut, 0)
    monkeypatch.setattr(patches, "SCRATCH_BYTES", 1)
    slabs = plan_subdomain(schedule, cut, 0)
    assert (whole.patches.slabs, slabs.patches.slabs) == (1, (96 if parts[0] == 1 else 42) // 16)
    assert slabs.patches.edges[1:] == whole.patches.edges[1:]
    assert set(whole.patches.edges[0]) <= set(slabs.patches.edges[0])
    assert slabs.sweeps[0].scratch_bytes < 0.6 * whole.sweeps[0].scratch_bytes
    planes = [b - a for a, b in pairwise(slabs.patches.edges[0])]
    assert max(planes) >= patches.SLAB_OVERLAP * 2
    given_shape = plan_subdomain(schedule, cut, 0, patch=(96, 64, 80))
    assert len(given_shape.patches) == given_shape.patches.slabs == 1  # the user's shape takes precedence
    assert plan_subdomain(replace(schedule, device=None), cut, 0).patches.slabs == 1


def test_blocks_of_the_grid_cut_slabs_as_well(monkeypatch):
    """The scratch memory is that of a block, since the borders of blocks cut patches."""
    shape, counts = (64, 64, 64), (4, 2, 2)
    active = np.ones(counts, dtype=bool)
    active[0, 0, 0] = False
    schedule = one_field((True,) * 3, star(3, 1)).schedule
    (sweep,) = schedule.operations
    sweep = replace(sweep, scratch=(Slot(0, 8, (1, 1, 1)),))
    blocks = Blocks(shape, counts, active.tobytes())
    schedule = replace(schedule, operations=(sweep,), device=DeviceCode("", {}), blocks=blocks)
    cut = decompose(shape, 1, periodic=True)
    of_block = slot_bytes(sweep.scratch, (16, 32, 32))
    for limit, slabs in ((of_block, 1), (of_block - 1, 8)):
        monkeypatch.setattr(patches, "SCRATCH_BYTES", limit)
        plan = plan_subdomain(schedule, cut, 0)
        assert plan.patches.slabs == slabs
        assert plan.sweeps[0].scratch_bytes <= limit


def test_owners_agree_with_the_ranges():
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
    # each thread starts at a separate memory area: its patches follow those of its predecessor along axis 0
    firsts = [plan.patches.table[a, 0, 0] for a in plan.patches.ranges[:-1]]
    assert firsts == sorted(set(firsts))


@pytest.mark.parametrize("shape", [(2048, 4096), (256, 256, 256)])
def test_patches_are_short_if_threads_progress_messages(shape):
    """Patches are short with MPI, which moves bytes only during its calls between two patches."""
    schedule = one_field((True,) * len(shape), star(len(shape), 1)).schedule
    cut = decompose(shape, 2, periodic=True, strategy="1d-x")
    most = {}
    for methods in (("self", "mpi"), ("self", "rma", "mpi"), ("self", "colocated", "mpi")):
        transfers = Transfers(Layout.of(cut), methods)
        most[methods] = cells_of(plan_rank(schedule, transfers, 0).subdomains[0]).max()
    most_remote, most_mailboxes, local = most.values()
    assert most_remote == most_mailboxes <= 2**16 < local


def planes_in_reach(patch, radius, itemsize):
    """Return the bytes of the planes around a row, for one array read by a star and one written."""
    return itemsize * (
        (2 * radius + 1) * (patch[1] + 2 * radius) * (patch[2] + 2 * radius) + patch[1] * patch[2]
    )


@pytest.mark.parametrize("radius", [1, 3])
@pytest.mark.parametrize("l2", [2**19, 2**20, 2**21])
def test_planes_of_a_patch_fit_into_half_of_the_cache(radius, l2):
    footprint = {0: Footprint.from_offsets(star(3, radius))}
    schedule = make_schedule(
        (True,) * 3, [("float64", (False,) * 3)] * 2, [(footprint, [Footprint()] * 2, ())]
    )
    plan = plan_subdomain(schedule, decompose((512,) * 3, 1, thickness=radius), 0, cache=l2)
    table = plan.patches.table
    shape = (table[:, 1] - table[:, 0]).max(axis=0).tolist()
    least = [max(8, 4 * radius), 512]
    assert all(n >= m for n, m in zip(shape[1:], least, strict=True))
    if any(n >= 2 * m for n, m in zip(shape[1:], least, strict=True)):
        assert planes_in_reach(shape, radius, 8) <= l2 // 2
    assert shape[0] >= 4 * shape[1]
    twice = [shape[0], 2 * shape[1], shape[2]]
    assert planes_in_reach(twice, radius, 8) > l2 // 4  # and not smaller than necessary


def test_scratch_arrays_of_a_patch_fit_into_half_of_the_cache():
    schedule = one_field((False, False), star(2, 1)).schedule
    (sweep,) = schedule.sweeps()
    schedule = replace(schedule, operations=(replace(sweep, scratch=(Slot(0, 8, (2, 2)),)),))
    plan = plan_subdomain(schedule, decompose((4096, 4096), 1, periodic=False), 0, cache=2**21)
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


def test_a_patch_waits_only_for_messages_that_it_reads():
    """Each of nine patches of a middle subdomain waits for exactly the messages that it reads, of eight."""
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
    # with a star, corners are not exchanged and delay no patch
    plan = plan_subdomain(one_field((True, True), star(2, 1)).schedule, d, 4, patch=3)
    assert len(plan.sweeps[0].receives) == 4
    assert [int(n).bit_count() for n in plan.sweeps[0].patch_needs] == [2, 1, 2, 1, 0, 1, 2, 1, 2]


def test_rims_delay_only_patches_at_corners():
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
def test_ghosts_wait_for_messages_of_a_subdomain_to_itself(methods, rims):
    """Ghosts wait for messages around a periodic axis of one subdomain, if copies are excluded."""
    schedule = one_field((False, True), cube(2, 1)).schedule
    cut = decompose((8, 8), 1, periodic=(False, True))
    sweep = planning.plan_subdomain(schedule, Transfers(Layout.of(cut), methods), 0).sweeps[0]
    assert [len(fill.rims) for fill in sweep.fills] == [rims, rims]
    assert bool(sweep.receives) == bool(rims)
    assert all(rim.needs for fill in sweep.fills for rim in fill.rims)


def test_ghosts_of_a_lower_axis_belong_to_the_core():
    """The fill of the higher axis covers a corner between walls at once, without a wait for messages."""
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
def test_invalid_patches_are_rejected(patch, words):
    schedule = one_field((True, True), star(2, 1)).schedule
    with pytest.raises(InputError) as error:
        plan_subdomain(schedule, decompose((8, 8), 1), 0, patch=patch)
    assert not [word for word in words if word not in str(error.value)], str(error.value)


def test_one_number_is_the_patch_along_every_axis():
    schedule = one_field((True, True), star(2, 1)).schedule
    plans = [plan_subdomain(schedule, decompose((8, 8), 1), 0, patch=p) for p in (4, (4,), (4, 4))]
    assert {len(p.patches) for p in plans} == {4}


def test_a_plan_without_threads_is_rejected():
    with pytest.raises(InputError, match="threads is 0; expected a whole number from 1"):
        plan_subdomain(one_field((True,), star(1, 1)).schedule, decompose((8,), 1), 0, threads=0)
