"""Plans of ranks, executed in NumPy, and the required content of halos."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from halocline.compile.footprint import Footprint
from halocline.compile.schedule import FieldInfo, Fill, Schedule, Sweep
from halocline.plan import rank as planning
from halocline.plan.box import Box
from halocline.plan.layout import Layout
from halocline.plan.transfer import Transfers

ITEMSIZE = {"float64": 8, "float32": 4}
UNSET = -1


def plan_subdomain(schedule, decomposition, number, **options):
    """Return the plan of a subdomain if each rank has one."""
    return planning.plan_subdomain(
        schedule, Transfers(Layout.of(decomposition), ("self", "mpi")), number, **options
    )


# --- schedules as the compiler makes them ---


def wall_fills(field, footprint, periodic, reach):
    """Return the boundary fills that a read footprint requires, on both sides of all axes."""
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
    """A schedule, and per sweep and field the offsets of reads, in and out of the halo kernel."""

    schedule: Schedule
    reads: list[dict[int, list[tuple[int, ...]]]]
    reads_in_halo: list[dict[int, list[tuple[int, ...]]]]
    reach: int  # reach of the boundary conditions


def make_schedule(periodic, fields, sweeps, reach=1):
    """Return a schedule from field properties (dtype, staggered) and sweeps.

    A sweep is (reads, valid reads, halo extent), by field number.
    """
    ndim = len(periodic)
    halo = [Footprint() for _ in fields]
    planned_sweeps = []
    for reads, valid, extent in sweeps:
        for field, footprint in reads.items():
            halo[field] |= footprint
        fills = [f for n, p in reads.items() for f in wall_fills(n, p, periodic, reach)]
        planned_sweeps.append(
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
    return Schedule(ndim, tuple(periodic), tuple(infos), (), tuple(planned_sweeps), "")


# --- required content of halos, from the whole grid alone ---


def ghost(values, layer, axis, side):
    """Return ghost values that differ for every layer, axis and side."""
    return 31 * values + 7 * layer + 3 * axis + side


def inward(layer, reach):
    """Return the number of cells from the wall at which a ghost layer reads."""
    return layer % reach


def whole_grid(shape, periodic, staggered, number, reach, margin=8):
    """Return a field with `margin` layers around the grid: wrapped, or filled axis by axis."""
    points = [n + (s and not wraps) for n, s, wraps in zip(shape, staggered, periodic, strict=True)]
    interior = np.arange(prod(points), dtype=np.int64).reshape(points) * 5 + number
    sources, ghosts = [], []
    for n, wraps in zip(points, periodic, strict=True):
        index = np.arange(-margin, n + margin)
        layer = np.where(index < 0, -1 - index, index - n)
        is_inside = (index >= 0) & (index < n)
        if wraps:
            sources.append(index % n)
            ghosts.append(None)
        else:
            m = inward(layer, reach)
            source = np.where(is_inside, index, np.where(index < 0, m, n - 1 - m))
            sources.append(np.clip(source, 0, n - 1))
            ghosts.append((~is_inside, layer, np.sign(index)))
    grid = interior[np.ix_(*sources)]
    for axis, outside in enumerate(ghosts):
        if outside is None:
            continue
        is_ghost, layer, side = (
            a.reshape([-1 if d == axis else 1 for d in range(grid.ndim)]) for a in outside
        )
        grid = np.where(is_ghost, ghost(grid, layer, axis, side), grid)
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
        """Execute all steps before the first message."""
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
    """Return all messages of one sweep: (from, to, tag) -> packed boxes."""
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
    """Execute every rank's plan of every sweep, and compare all reads with the whole grid."""
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
        for local in locals_:  # halos that the schedule assumes to be valid
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
    """Return the halo segment of a field, with or without walls."""
    lo, hi = [], []
    for d, w, n, points in zip(direction, width, plan.box.shape, plan.fields[field].owned.hi, strict=True):
        lo.append(-w if d < 0 else n if d > 0 else 0)
        hi.append(0 if d < 0 else n + w if d > 0 else points)
    return Box(tuple(lo), tuple(hi))


def check_rank(sweep, plan, local, wire, reads, reads_in_halo):
    """Check every halo segment after all messages, and every patch and halo box after the required ones."""
    rank, patches = local.plan.number, local.plan.patches.table
    local.begin(sweep, plan)
    before = [a.copy() for a in local.arrays]

    def check_messages(mask, rims):
        local.arrays = [a.copy() for a in before]
        for i, message in enumerate(plan.receives):
            if (mask | (plan.rim_needs if rims else 0)) >> i & 1:
                local.unpack(message, wire[message.peer, rank, message.tag])
        if rims:
            local.rims(sweep, plan)

    everything = (1 << len(plan.receives)) - 1
    check_messages(everything, True)
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
        check_messages(mask, rims)
        for n in members:
            check_reads(*patches[n].tolist())
    for halo in plan.halos:
        check_messages(halo.needs, halo.rims)
        for field, offsets in reads_in_halo.items():
            points = local.plan.fields[field].owned.hi
            more = [(0, t and p > n) for t, p, n in zip(halo.top, points, local.plan.box.shape, strict=True)]
            for offset in offsets:
                assert local.right(field, halo.box.grow(more).shift(offset)), (rank, halo, offset)


# --- random programs on random subdomains ---


def star(ndim, radius):
    """Return offsets along the axes."""
    return [
        tuple(r if b == a else 0 for b in range(ndim))
        for a in range(ndim)
        for r in range(-radius, radius + 1)
    ]


def cube(ndim, radius):
    """Return the offsets of a cube."""
    return list(product(range(-radius, radius + 1), repeat=ndim))


def one_field(periodic, offsets, extent=(), *, staggered=None, dtype="float64", reach=1):
    """Return a program of one sweep over one field; its halo kernel also computes the field on `extent`."""
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
