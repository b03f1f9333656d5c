"""Stages and results as loop nests, in order, and how far each reaches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.compile.passes.inline import price
from halocline.compile.passes.reach import Points, Result, results, staggering

# Results that one loop may compute where they share no array. A sum takes four vector registers, of which
# there are 16 or 32: a loop over many sums spills them, and the time to compile it grows as their square.
# Measured: docs/performance.md.
MOST = 8
# Reductions that share arrays are computed in one loop up to this many: every other loop reads them again.
MOST_SHARING = 32
# Groups of stages that share too little to be joined are put into one loop where they are needed at the same
# points, up to this many: each stage is a row that is written. Not measured.
MOST_STAGES = 16
TYPICAL = 64  # cells of a patch along an axis, to compare work and memory around it


Extent = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]


def nests(kernel: Kernel, needed: Mapping[str, Points]) -> Kernel:
    """A nest for the stages of one depth and extent, and for results of the same points. `needed`: where
    arrays are read, see `Reach`.

    Stages that share half of their values or more, such as the fluxes of several quantities, have one nest,
    which computes them where any of them is needed, if that is less work, what they read included.
    """
    return replace(kernel, body=(*_of_stages(kernel, needed), *_of_results(kernel)))


@dataclass(frozen=True)
class _Group:
    """Stages of one nest.

    Attributes
    ----------
    stores : tuple of Store
    extent : Extent
    values : frozenset of int
        What they are made of.
    price : int
        Arithmetic of these at a cell.
    """

    stores: tuple[ir.Store, ...]
    extent: Extent
    values: frozenset[int]
    price: int

    @property
    def work(self) -> int:
        """Arithmetic in a typical patch."""
        return self.price * _points(self.extent)


def _points(extent: Extent) -> int:
    """How many there are around a typical patch."""
    return prod(TYPICAL + lower + upper for lower, upper in extent[0])


def _of_stages(kernel: Kernel, needed: Mapping[str, Points]) -> ir.Body:
    stages = [s for s in kernel.body if isinstance(s, ir.Stage)]
    depths: dict[str, int] = {}
    for stage in stages:
        read = (array for array, _ in kernel.loads((stage.value,)))
        depths[stage.array] = 1 + max((depths.get(array, 0) for array in read), default=0)
    joining = _Joining(
        kernel, stages, {array: _extent(points, kernel.ndim) for array, points in needed.items()}
    )
    body: ir.Body = ()
    # those that read others first, since they decide where these are needed
    for depth in sorted(set(depths.values()), reverse=True):
        found = joining.groups([stage for stage in stages if depths[stage.array] == depth])
        body = (*(ir.Nest(tuple(stores), *extent) for extent, stores in _rooms(found)), *body)
    return body


def _rooms(groups: Sequence[_Group]) -> list[tuple[Extent, list[ir.Store]]]:
    """The stores of each nest: groups of the same extent are together, up to `MOST_STAGES`."""
    rooms: list[tuple[Extent, list[ir.Store]]] = []
    for group in sorted(groups, key=lambda group: group.extent):
        fits = rooms and rooms[-1][0] == group.extent
        if fits and len(rooms[-1][1]) + len(group.stores) <= MOST_STAGES:
            rooms[-1][1].extend(group.stores)
        else:
            rooms.append((group.extent, list(group.stores)))
    return rooms


@dataclass
class _Joining:
    """Joins stages into groups, and knows how far out arrays are needed then: `extents`."""

    kernel: Kernel
    stages: Sequence[ir.Stage]
    extents: dict[str, Extent]

    def __post_init__(self) -> None:
        kernel = self.kernel
        self.values = {stage.array: frozenset(kernel.below((stage.value,))) for stage in self.stages}
        self.prices = {array: price(kernel, values) for array, values in self.values.items()}

    def groups(self, stages: Sequence[ir.Stage]) -> list[_Group]:
        """Stages in groups of which none is better computed with another."""
        groups: list[_Group] = []
        for stage in stages:
            array = stage.array
            store = ir.Store(array, stage.value, stage.origin)
            current = _Group((store,), self.extents[array], self.values[array], self.prices[array])
            while (found := self._partner(current, groups)) is not None:
                other, current = found  # which others may join, as it is larger now
                groups.remove(other)
            groups.append(current)
        return groups

    def _partner(self, one: _Group, groups: Sequence[_Group]) -> tuple[_Group, _Group] | None:
        """The first group that is better computed together with one, and both of them."""
        for other in groups:
            both = self._together(other, one)
            further = None if both is None else self._further(both)
            if both is None or further is None:
                continue
            read = further.keys() - {store.array for store in both.stores}
            before = one.work + other.work + self._work(read, self.extents)
            if both.work + self._work(read, further) <= before:
                self.extents |= further
                return other, both
        return None

    def _together(self, one: _Group, other: _Group) -> _Group | None:
        """Two groups as one, where they share at least half of what one of them computes."""
        (layers, top), (others, other_top) = one.extent, other.extent
        shared = price(self.kernel, one.values & other.values)
        if top != other_top or 2 * shared < min(one.price, other.price):
            return None
        wide = tuple((max(a[0], b[0]), max(a[1], b[1])) for a, b in zip(layers, others, strict=True))
        values = one.values | other.values
        return _Group((*one.stores, *other.stores), (wide, top), values, one.price + other.price - shared)

    def _further(self, group: _Group) -> dict[str, Extent] | None:
        """What is needed further out where a group is computed in all of its extent, and where that is. None
        if a field is: its halo is for what the results need."""
        found = {store.array: group.extent for store in group.stores}
        for stage in reversed(self.stages):
            here = found.get(stage.array)
            if here is None or here == self.extents[stage.array]:
                continue
            for array, offset in self.kernel.loads((stage.value,)):
                known = found.get(array, self.extents[array])
                wide = _around(here, offset, known)
                if wide != known and array not in self.values:
                    return None
                if wide != known:
                    found[array] = wide
        return found

    def _work(self, of: Collection[str], extents: Mapping[str, Extent]) -> int:
        """Arithmetic of stages in a typical patch, as if each were computed alone."""
        return sum(self.prices[array] * _points(extents[array]) for array in of)


def _around(reader: Extent, offset: ir.Offset, known: Extent) -> Extent:
    """What is known to be needed of an array, and where a nest reads it at an offset."""
    layers = []
    for (lower, upper), more, o, (lo, hi), top in zip(*reader, offset, *known, strict=True):
        layers.append((max(lo, lower - o), max(hi, upper + o, upper + more + o - top)))
    return tuple(layers), known[1]


def _extent(points: Points, ndim: int) -> Extent:
    """The layers (lower, upper) of each axis that hold all points, and how many more at an upper wall.

    No layer more: a stage reads fields that have halo for just these.
    """
    lower = [max(-o[a] for o, _ in points) for a in range(ndim)]
    upper = [max(o[a] for o, _ in points) for a in range(ndim)]
    top = [max(o[a] + s[a] for o, s in points) - upper[a] for a in range(ndim)]
    return tuple(zip(lower, upper, strict=True)), tuple(top)


def _of_results(kernel: Kernel) -> ir.Body:
    rooms: dict[tuple[tuple[bool, ...], ir.Offset | None], list[Result]] = {}
    for result in results(kernel):
        cell = result.cell if isinstance(result, ir.Reduce) else None
        rooms.setdefault((staggering(kernel, result), cell), []).append(result)
    none = ((0, 0),) * kernel.ndim
    # single cells first: they must see the values from before the sweep writes its fields
    return tuple(
        ir.Nest(tuple(loop), none, tuple(map(int, staggered)), cell)
        for (staggered, cell), room in sorted(rooms.items(), key=lambda item: item[0][1] is None)
        for loop in _loops(kernel, room)
    )


def _loops(kernel: Kernel, found: list[Result]) -> list[list[Result]]:
    """Results of the same points, loop by loop: those that share arrays stay together, others are up to MOST.

    More than MOST_SHARING reductions that share arrays have loops of their own, which come first: they must
    see the values from before the sweep writes its fields.
    """
    loops: list[list[Result]] = []
    alone: list[list[Result]] = []
    for group in _sharing(kernel, found):
        reductions = [result for result in group if isinstance(result, ir.Reduce)]
        if len(reductions) > MOST_SHARING:
            alone += [list(reductions[n : n + MOST]) for n in range(0, len(reductions), MOST)]
            group = [result for result in group if isinstance(result, ir.Store)]
        if loops and len(loops[-1]) + len(group) <= MOST:
            loops[-1] += group
        elif group:
            loops.append(group)
    return alone + loops


def _sharing(kernel: Kernel, found: list[Result]) -> list[list[Result]]:
    """Results in groups, of which none reads or sets an array of another."""
    above = list(range(len(found)))  # of each result another of its group, or itself
    first: dict[str, int] = {}  # the first result of each array

    def top(number: int) -> int:
        while above[number] != number:
            above[number] = above[above[number]]
            number = above[number]
        return number

    for number, result in enumerate(found):
        arrays = [array for array, _ in kernel.loads((result.value,))]
        if isinstance(result, ir.Store):
            arrays.append(result.array)
        for array in arrays:
            above[top(number)] = top(first.setdefault(array, number))
    groups: dict[int, list[Result]] = {}
    for number, result in enumerate(found):
        groups.setdefault(top(number), []).append(result)
    return list(groups.values())
