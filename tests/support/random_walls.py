"""Ghost formulas along walls, evaluated cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.schedule import Fill, Schedule, Sweep
from halocline.errors import InputError
from halocline.plan import decompose
from halocline.plan import rank as planning
from halocline.plan.box import Box
from halocline.plan.fit import least_thickness
from halocline.plan.layout import Layout
from halocline.plan.rank import SubdomainPlan, SweepPlan
from halocline.plan.transfer import Transfers
from halocline.run.ranks.mpi import world

Array = np.ndarray[Any, Any]
Point = tuple[int, ...]
SIDES = ("x-", "x+", "y-", "y+", "z-", "z+")
LOCATIONS = ["cell", "face-x", "face-y", "face-z"]


# --- the definition ---


@dataclass(frozen=True)
class Term:
    """A weight times the value of a field, `inward` cells from the wall and `along` cells parallel to it."""

    weight: int
    field: int
    inward: int
    along: Point


@dataclass(frozen=True)
class Case:
    """Fields with conditions; a step sets each field from its values at some offsets."""

    shape: Point
    periodic: tuple[bool, ...]
    locations: tuple[str, ...]
    walls: tuple[Mapping[str, tuple[Term, ...]], ...]  # conditions of each field, by side
    offsets: tuple[tuple[Point, ...], ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def staggered(self, field: int) -> tuple[bool, ...]:
        return tuple(self.locations[field] == f"face-{'xyz'[axis]}" for axis in range(self.ndim))

    def points(self, field: int) -> Point:
        return tuple(
            n + (s and not wraps)
            for n, s, wraps in zip(self.shape, self.staggered(field), self.periodic, strict=True)
        )

    def order(self, field: int) -> list[int]:
        """Return the order of axes in which a field's ghosts are formed.

        The order is ascending, except that an axis follows those whose ghosts of the same field it reads.
        """
        after: dict[int, set[int]] = {axis: set() for axis in range(self.ndim)}
        for side, terms in self.walls[field].items():
            axis = SIDES.index(side) // 2
            other_axes = [other for other in range(self.ndim) if other != axis]
            for term in terms:
                for other, s in zip(other_axes, term.along, strict=True):
                    if term.field == field and s and not self.periodic[other]:
                        after[axis].add(other)
        order: list[int] = []
        while len(order) < self.ndim:
            left = [axis for axis in after if axis not in order]
            order.append(next((axis for axis in left if after[axis] <= {*order}), left[0]))
        return order

    def start(self) -> list[Array]:
        random = np.random.default_rng(self.ndim)
        return [random.integers(1, 6, self.points(n)).astype(np.float64) for n in range(len(self.locations))]


class Whole:
    """The fields of a whole grid, with ghosts evaluated from their definition, one by one."""

    def __init__(self, case: Case, values: Sequence[Array]) -> None:
        self.case, self.values = case, values
        self.known: dict[tuple[int, Point], float] = {}
        self.orders = [case.order(n) for n in range(len(values))]

    def at(self, field: int, place: Point) -> float:
        """Return the value of a field at any point.

        Ghosts that depend on each other raise RecursionError.
        """
        key = field, place
        if key not in self.known:
            self.known[key] = self._form(field, place)
        return self.known[key]

    def _form(self, field: int, place: Point) -> float:
        case = self.case
        points = case.points(field)
        place = tuple(p % n if wraps else p for p, n, wraps in zip(place, points, case.periodic, strict=True))
        outside = [a for a in self.orders[field] if not 0 <= place[a] < points[a]]
        if not outside:
            return float(self.values[field][place])
        axis = outside[-1]
        upper = place[axis] >= points[axis]
        layer = place[axis] - points[axis] if upper else -1 - place[axis]
        total = 0.0
        for term in case.walls[field][SIDES[2 * axis + upper]]:
            source = [p for a, p in enumerate(place) if a != axis]
            source = [p + s for p, s in zip(source, term.along, strict=True)]
            last = case.points(term.field)[axis] - 1
            source.insert(axis, last - term.inward if upper else term.inward)
            total += term.weight * (1 + layer) * self.at(term.field, tuple(source))
        return total

    def step(self, field: int) -> Array:
        """Return the values of a field after an assignment."""
        values = self.values[field].copy()
        for place in np.ndindex(*values.shape):
            for o in self.case.offsets[field]:
                values[place] += self.at(field, tuple(p + d for p, d in zip(place, o, strict=True)))
        return values


def expected_fields(case: Case, steps: int) -> list[Array]:
    """Return the fields after some steps."""
    values = case.start()
    for _ in range(steps):
        for n in range(len(values)):
            values[n] = Whole(case, values).step(n)
    return values


def condition(fields: Sequence[hc.Field], number: int, terms: Sequence[Term]) -> hc.BoundaryKernel:
    """Return the boundary condition of a field with these terms."""

    def ghost(u: Any, layer: int) -> Any:
        total = 0.0
        for term in terms:
            source = u if term.field == number else u.of(fields[term.field])
            total = total + float(term.weight * (1 + layer)) * source[(term.inward, *term.along)]
        return total

    return hc.BoundaryKernel(ghost)


def grid_and_program(
    case: Case, shape: Point | None = None
) -> tuple[hc.Grid, list[hc.Field], hc.ProgramFunction]:
    """Return the grid, fields and program of a case."""
    grid = hc.Grid(shape or case.shape, periodic=case.periodic)
    fields = [grid.field(f"f{n}", location=location) for n, location in enumerate(case.locations)]
    for n, walls in enumerate(case.walls):
        fields[n].boundary.update({side: condition(fields, n, terms) for side, terms in walls.items()})

    @hc.program
    def step() -> None:
        for f, offsets in zip(fields, case.offsets, strict=True):
            f.set(f + sum(f[o] for o in offsets))

    return grid, fields, step


def random_case(seed: int, ndim: int, *, most: int = 2) -> Case:
    """Return a random case."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 4))
    periodic = tuple(bool(random.integers(0, 3) == 0) for _ in range(ndim))
    locations = tuple(str(random.choice(LOCATIONS[: ndim + 1])) for _ in range(count))

    def term(number: int) -> Term:
        along = [int(random.choice([-2, -1, 0, 0, 1, 2])) // (3 - most) for _ in range(ndim - 1)]
        field = number if random.integers(0, 2) else int(random.integers(0, count))
        return Term(int(random.integers(1, 4)), field, int(random.integers(0, 2)), tuple(along))

    walls = tuple(
        {
            SIDES[2 * axis + upper]: tuple(term(n) for _ in range(random.integers(1, 3)))
            for axis, upper in product(range(ndim), (0, 1))
            if not periodic[axis]
        }
        for n in range(count)
    )
    offsets = tuple(
        tuple(tuple(int(o) for o in random.integers(-1, 2, ndim)) for _ in range(random.integers(1, 4)))
        for _ in range(count)
    )
    shape = tuple(int(n) for n in random.integers(7, 11, ndim))
    return Case(shape, periodic, locations, walls, offsets)


# --- plans: all operands of a ghost are available ---


class Local:
    """The memory of a subdomain before a sweep: its own values, and NaN elsewhere."""

    def __init__(self, case: Case, schedule: Schedule, plan: SubdomainPlan, whole: Whole) -> None:
        self.case, self.plan, self.whole = case, plan, whole
        self.numbers = [int(info.name[-1]) for info in schedule.fields]  # numbers in the case
        self.arrays = [np.full(f.storage.shape, np.nan) for f in plan.fields]
        for n, f in enumerate(plan.fields):
            for place in cells(f.owned):
                self.arrays[n][self.index(n, place)] = self.right(n, place)

    def index(self, field: int, place: Point) -> Point:
        storage = self.plan.fields[field].storage
        assert place in storage
        return tuple(p - lo for p, lo in zip(place, storage.lo, strict=True))

    def right(self, field: int, place: Point) -> float:
        in_grid = tuple(p + lo for p, lo in zip(place, self.plan.box.lo, strict=True))
        return self.whole.at(self.numbers[field], in_grid)

    def is_right(self, field: int, place: Point) -> bool:
        return bool(self.arrays[field][self.index(field, place)] == self.right(field, place))

    def wrap(self, field: int) -> None:
        """Fill the ends of rows like a kernel that wraps its rows."""
        owned, storage = self.plan.fields[field].owned, self.plan.fields[field].storage
        beyond = [n for n in range(storage.lo[-1], storage.hi[-1]) if not 0 <= n < owned.hi[-1]]
        for (*row, _), n in product(cells(Box(owned.lo, (*owned.hi[:-1], 1))), beyond):
            place = (*row, n)
            self.arrays[field][self.index(field, place)] = self.right(field, place)

    def box(self, field: int, box: Box) -> Array:
        first, last = self.index(field, box.lo), self.index(field, tuple(h - 1 for h in box.hi))
        return self.arrays[field][tuple(slice(a, b + 1) for a, b in zip(first, last, strict=True))]

    def fill(self, fill: Fill, box: Box) -> None:
        """Fill ghosts from the memory, like the kernel."""
        case, number_in_case = self.case, self.numbers[fill.field]
        end = self.plan.fields[fill.field].owned.hi[fill.axis]
        terms = case.walls[number_in_case][SIDES[2 * fill.axis + (fill.side > 0)]]
        for place in cells(box):
            at = place[fill.axis]
            layer, total = (at - end if fill.side > 0 else -1 - at), 0.0
            for term in terms:
                number = self.numbers.index(term.field)
                last = self.plan.fields[number].owned.hi[fill.axis] - 1
                source = [p for a, p in enumerate(place) if a != fill.axis]
                source = [p + s for p, s in zip(source, term.along, strict=True)]
                source.insert(fill.axis, last - term.inward if fill.side > 0 else term.inward)
                value = self.arrays[number][self.index(number, tuple(source))]
                total += term.weight * (1 + layer) * value
            # in three dimensions a box may contain corners without readers
            assert case.ndim == 3 or total == self.right(fill.field, place), (fill, box, place)
            self.arrays[fill.field][self.index(fill.field, place)] = total


def cells(box: Box) -> Iterator[Point]:
    """Return the cells of a box."""
    return product(*(range(a, b) for a, b in zip(box.lo, box.hi, strict=True)))


def arrive(plan: SweepPlan, local: Local, all_of: Sequence[Local], mask: int) -> None:
    """Copy the messages of a mask from their sources."""
    for i, message in enumerate(plan.receives):
        if mask >> i & 1:
            for (field, box), source in zip(message.parts, message.sources, strict=True):
                local.box(field, box)[...] = all_of[message.peer].box(field, source)


def check_subdomain(
    sweep: Sweep, plan: SweepPlan, local: Local, all_of: Sequence[Local], reads: Mapping[int, Sequence[Point]]
) -> None:
    """Check the ghosts formed before and after messages, and the reads of patches at that time."""
    for copy in plan.copies:
        local.box(copy.field, copy.target)[...] = all_of[copy.subdomain].box(copy.field, copy.source)
    for boxes in plan.fills:
        local.fill(sweep.fills[boxes.fill], boxes.core)
    before = [a.copy() for a in local.arrays]

    def check_messages(mask: int, rims: bool) -> None:
        local.arrays = [a.copy() for a in before]
        arrive(plan, local, all_of, mask | (plan.rim_needs if rims else 0))
        for boxes in plan.fills if rims else ():
            for rim in boxes.rims:
                local.fill(sweep.fills[boxes.fill], rim.box)
        for field in sweep.wraps if local.plan.decomposition.parts[-1] == 1 else ():
            local.wrap(field)

    groups: dict[tuple[int, bool], list[int]] = {}
    for n, key in enumerate(zip(plan.patch_needs.tolist(), plan.patch_rims.tolist(), strict=True)):
        groups.setdefault(key, []).append(n)
    for (mask, rims), patches in groups.items():
        check_messages(mask, rims)
        for n in patches:
            lo, hi, top = local.plan.patches.table[n].tolist()
            for field, offsets in reads.items():
                staggered = local.case.staggered(local.numbers[field])
                end = [h + (t and s) for h, t, s in zip(hi, top, staggered, strict=True)]
                for place, o in product(cells(Box(tuple(lo), tuple(end))), offsets):
                    target = tuple(p + d for p, d in zip(place, o, strict=True))
                    assert local.is_right(field, target), (field, lo, o)


def check_plans(case: Case, parts: Point, patch: int) -> bool:
    """Return True if the case can be computed, after checks that all its values exist in every subdomain."""
    grid, fields, _ = grid_and_program(case, (32,) * case.ndim)
    targets = [grid.field(f"seen{n}", location=location) for n, location in enumerate(case.locations)]

    @hc.program
    def check_reads() -> None:
        hc.assign(
            {
                s: sum(f[o] for o in offsets)
                for s, f, offsets in zip(targets, fields, case.offsets, strict=True)
            }
        )

    try:
        schedule = compile_program(check_reads.trace(), grid)
    except InputError as error:
        if "depend on the ghosts" in str(error) or "has no point next to" in str(error):
            return False
        raise
    least = least_thickness(schedule)
    shape = tuple(p * max(2, t) + 1 for p, t in zip(parts, least, strict=True))
    case = Case(shape, case.periodic, case.locations, case.walls, case.offsets)
    cuts = decompose(shape, prod(parts), strategy=parts, periodic=case.periodic, thickness=least)
    transfers = Transfers(Layout.of(cuts), ("self", "mpi"))
    plans = [planning.plan_subdomain(schedule, transfers, n, patch=patch) for n in range(cuts.count)]
    whole = Whole(case, case.start())
    (sweep,) = schedule.sweeps()
    names = [info.name for info in schedule.fields]
    reads = {names.index(f.name): offsets for f, offsets in zip(fields, case.offsets, strict=True)}
    for plan in plans:
        all_of = [Local(case, schedule, other, whole) for other in plans]
        check_subdomain(sweep, plan.sweeps[0], all_of[plan.number], all_of, reads)
    return True


def check_random_cases(seeds: range) -> int:
    """Return the number of random cases that can be computed."""
    count = 0
    for seed in seeds:
        ndim = 3 if seed % 5 == 4 else 2
        random = np.random.default_rng(seed)
        parts = tuple(int(p) for p in random.integers(1, 4 if ndim == 2 else 3, ndim))
        count += check_plans(random_case(seed, ndim), parts, int(random.integers(1, 4)))
    return count


# --- runs ---


def simulated_fields(case: Case, steps: int = 2, **options: Any) -> list[Array]:
    """Return the fields after some steps, on all ranks."""
    grid, fields, step = grid_and_program(case)
    sim = hc.Simulation(grid, step, **options)
    for f, values in zip(fields, case.start(), strict=True):
        sim[f] = values
    sim.run(steps=steps)
    return [world().bcast(sim.gather(f), root=0) for f in fields]


# --- a magnetic field on faces, without divergence beyond walls too ---


DT = 0.02
EXTENT = (1.0, 0.7, 1.3)


def free_of_divergence(field: Any, axis: int, side: int) -> hc.BoundaryKernel:
    """Return a condition for the normal component of a field without divergence beyond a wall.

    In a ghost cell, the flux out of the other faces enters through the normal face. The other components
    mirror the interior.
    """

    def ghost(b: Any, layer: int) -> Any:
        grid = field[0].grid
        other_axes = [d for d in range(grid.ndim) if d != axis]
        total = 0.0
        for m in range(layer + 1):
            for d in other_axes:
                neighbour = tuple(int(other == d) for other in other_axes)
                along = b.of(field[d])
                total = total + (along[(m, *neighbour)] - along[m]) / grid.h(d)
        return b[0] - side * grid.h(axis) * total

    return hc.BoundaryKernel(ghost)


def unit(ndim: int, axis: int, step: int = 1) -> Point:
    """Return an offset along one axis."""
    return tuple(step * int(d == axis) for d in range(ndim))


def induction(shape: Point, periodic: tuple[bool, ...], **options: Any) -> hc.Simulation:
    """Run constrained transport with an artificial electric field; store the divergence two cells away."""
    ndim = len(shape)
    grid = hc.Grid(shape, EXTENT[:ndim], periodic=periodic)
    B = [grid.field(f"B{d}", location=f"face-{'xyz'[d]}") for d in range(ndim)]
    for b, axis, upper in product(B, range(ndim), (0, 1)):
        if not periodic[axis]:
            normal = b is B[axis]
            b.boundary[SIDES[2 * axis + upper]] = (
                free_of_divergence(B, axis, 2 * upper - 1) if normal else hc.Symmetric()
            )
    pairs = {2: [(0, 1)]}.get(ndim, [(1, 2), (2, 0), (0, 1)])
    E = [grid.field(f"E{n}", location="node" if ndim == 2 else f"edge-{'xyz'[n]}") for n in range(len(pairs))]
    divergence = grid.field("seen")

    @hc.program
    def step() -> None:
        for e, (p, q) in zip(E, pairs, strict=True):
            mean_p, mean_q = B[p] + B[p][unit(ndim, q, -1)], B[q] + B[q][unit(ndim, p, -1)]
            slope = B[p][unit(ndim, p)] - B[p][unit(ndim, p, -1)]
            e.set(0.1 * mean_p * mean_q + 0.3 * slope)
        for e, (p, q) in zip(E, pairs, strict=True):
            B[p].set(B[p] - DT * (e[unit(ndim, q)] - e) / grid.h(q))
            B[q].set(B[q] + DT * (e[unit(ndim, p)] - e) / grid.h(p))
        total = 0.0
        for o in product((-2, 2), repeat=ndim):
            ends = [tuple(map(sum, zip(o, unit(ndim, d), strict=True))) for d in range(ndim)]
            total = total + abs(sum((B[d][ends[d]] - B[d][o]) / grid.h(d) for d in range(ndim)))
        divergence.set(total)

    sim = hc.Simulation(grid, step, **options)
    for b, values in zip(B, solenoidal(shape, periodic), strict=True):
        sim[b] = values
    sim.run(steps=3)
    return sim


def faces(shape: Point, periodic: tuple[bool, ...], axes: Sequence[int]) -> Point:
    """Return the number of points on the faces of some axes."""
    return tuple(n + (d in axes and not periodic[d]) for d, n in enumerate(shape))


def solenoidal(shape: Point, periodic: tuple[bool, ...]) -> list[Array]:
    """Return a field without divergence, from random potentials at edges."""
    ndim, random = len(shape), np.random.default_rng(3)
    h = [e / n for e, n in zip(EXTENT, shape, strict=False)]
    B = [np.zeros(faces(shape, periodic, [d])) for d in range(ndim)]
    for p, q in {2: [(0, 1)]}.get(ndim, [(1, 2), (2, 0), (0, 1)]):
        A = 0.1 * random.uniform(-1, 1, faces(shape, periodic, [p, q]))
        B[p] += forward_difference(A, q, periodic) / h[q]
        B[q] -= forward_difference(A, p, periodic) / h[p]
    return B


def forward_difference(a: Array, axis: int, periodic: tuple[bool, ...]) -> Array:
    """Return the differences to the next point along an axis."""
    return np.roll(a, -1, axis) - a if periodic[axis] else np.diff(a, axis=axis)


FIELDS = (
    ((13, 12), (False, False)),
    ((12, 13), (False, True)),
    ((12, 12, 13), (False, True, False)),
)
