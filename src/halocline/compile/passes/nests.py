"""Formation of loop nests for stages and results, with their order and extents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.compile.passes.inline import price
from halocline.compile.passes.reach import Points, Result, results, staggering

# Maximum number of results in one loop if they share no array. A sum needs four vector registers, of which a
# CPU has 16 or 32. A loop with many sums spills registers, and its compile time grows as the square of the
# number of sums. Measurements: docs/performance.md.
MAX_RESULTS = 8
# Maximum number of reductions in one loop if they share arrays. Every further loop reads the arrays again.
MAX_SHARING_REDUCTIONS = 32
# Maximum number of stages in one loop if they share little arithmetic but are needed at the same points. For
# each stage, the loop writes one row. This value is not based on measurements.
MAX_STAGES = 16
TYPICAL = 64  # cells of a patch along an axis, for estimates of work and memory


Extent = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]


def nests(kernel: Kernel, read_points: Mapping[str, Points]) -> Kernel:
    """Form nests of stages with the same depth and extent, and nests of results at the same points.

    `read_points` contains the points at which arrays are read, see `Reach`.

    Stages that share at least half of their values, such as the fluxes of several quantities, may share one
    nest. The nest computes all of these stages at every point where one of them is needed. The pass joins
    stages if the join does not increase the work, including the work for their inputs.
    """
    return replace(kernel, body=(*_of_stages(kernel, read_points), *_of_results(kernel)))


@dataclass(frozen=True)
class _Group:
    """Stages of one nest.

    Attributes
    ----------
    stores : tuple of Store
    extent : Extent
    values : frozenset of int
        Values on which the stores depend.
    price : int
        Arithmetic cost of these values per cell.
    """

    stores: tuple[ir.Store, ...]
    extent: Extent
    values: frozenset[int]
    price: int

    @property
    def work(self) -> int:
        """Arithmetic cost of the group in a typical patch."""
        return self.price * _points(self.extent)


def _points(extent: Extent) -> int:
    """Return the number of points of an extent around a typical patch."""
    return prod(TYPICAL + lower + upper for lower, upper in extent[0])


def _of_stages(kernel: Kernel, read_points: Mapping[str, Points]) -> ir.Body:
    stages = [s for s in kernel.body if isinstance(s, ir.Stage)]
    depths: dict[str, int] = {}
    for stage in stages:
        read = (array for array, _ in kernel.loads((stage.value,)))
        depths[stage.array] = 1 + max((depths.get(array, 0) for array in read), default=0)
    joining = _Joining(
        kernel, stages, {array: _extent(points, kernel.ndim) for array, points in read_points.items()}
    )
    body: ir.Body = ()
    # from outer to inner stages, since outer stages determine the extents of inner stages
    for depth in sorted(set(depths.values()), reverse=True):
        groups = joining.groups([stage for stage in stages if depths[stage.array] == depth])
        body = (*(ir.Nest(tuple(stores), *extent) for extent, stores in _stores_of_nests(groups)), *body)
    return body


def _stores_of_nests(groups: Sequence[_Group]) -> list[tuple[Extent, list[ir.Store]]]:
    """Return the stores of each nest; a nest has up to `MAX_STAGES` stores of one extent."""
    nest_stores: list[tuple[Extent, list[ir.Store]]] = []
    for group in sorted(groups, key=lambda group: group.extent):
        fits = nest_stores and nest_stores[-1][0] == group.extent
        if fits and len(nest_stores[-1][1]) + len(group.stores) <= MAX_STAGES:
            nest_stores[-1][1].extend(group.stores)
        else:
            nest_stores.append((group.extent, list(group.stores)))
    return nest_stores


@dataclass
class _Joining:
    """Joins of stages into groups; `extents` contains the extent of each array after the joins."""

    kernel: Kernel
    stages: Sequence[ir.Stage]
    extents: dict[str, Extent]

    def __post_init__(self) -> None:
        kernel = self.kernel
        self.values = {stage.array: frozenset(kernel.below((stage.value,))) for stage in self.stages}
        self.prices = {array: price(kernel, values) for array, values in self.values.items()}

    def groups(self, stages: Sequence[ir.Stage]) -> list[_Group]:
        """Return the stages in groups; groups are joined if the join does not increase the work."""
        groups: list[_Group] = []
        for stage in stages:
            array = stage.array
            store = ir.Store(array, stage.value, stage.origin)
            current = _Group((store,), self.extents[array], self.values[array], self.prices[array])
            while (match := self._partner(current, groups)) is not None:
                other, current = match  # the larger group may have further partners
                groups.remove(other)
            groups.append(current)
        return groups

    def _partner(self, one: _Group, groups: Sequence[_Group]) -> tuple[_Group, _Group] | None:
        """Return the first group whose join with `one` does not increase the work, and the joined group."""
        for other in groups:
            joined = self._joined(other, one)
            grown_extents = None if joined is None else self._grown_extents(joined)
            if joined is None or grown_extents is None:
                continue
            read = grown_extents.keys() - {store.array for store in joined.stores}
            before = one.work + other.work + self._work(read, self.extents)
            if joined.work + self._work(read, grown_extents) <= before:
                self.extents |= grown_extents
                return other, joined
        return None

    def _joined(self, one: _Group, other: _Group) -> _Group | None:
        """Return the union of two groups that share at least half of the cost of one group, else None."""
        (layers, top), (other_layers, other_top) = one.extent, other.extent
        shared = price(self.kernel, one.values & other.values)
        if top != other_top or 2 * shared < min(one.price, other.price):
            return None
        extended = tuple(
            (max(a[0], b[0]), max(a[1], b[1])) for a, b in zip(layers, other_layers, strict=True)
        )
        values = one.values | other.values
        return _Group((*one.stores, *other.stores), (extended, top), values, one.price + other.price - shared)

    def _grown_extents(self, group: _Group) -> dict[str, Extent] | None:
        """Return the new extents of the arrays that grow if all stages of a group have the same extent.

        Return None if a field would grow, since its halo has exactly the width that the results need.
        """
        grown = {store.array: group.extent for store in group.stores}
        for stage in reversed(self.stages):
            extent_of_stage = grown.get(stage.array)
            if extent_of_stage is None or extent_of_stage == self.extents[stage.array]:
                continue
            for array, offset in self.kernel.loads((stage.value,)):
                known = grown.get(array, self.extents[array])
                extended = _extended(extent_of_stage, offset, known)
                if extended != known and array not in self.values:
                    return None
                if extended != known:
                    grown[array] = extended
        return grown

    def _work(self, arrays: Collection[str], extents: Mapping[str, Extent]) -> int:
        """Return the arithmetic cost in a typical patch if each stage is computed separately."""
        return sum(self.prices[array] * _points(extents[array]) for array in arrays)


def _extended(reader: Extent, offset: ir.Offset, known: Extent) -> Extent:
    """Return the known extent of an array, extended by the reads of a nest at an offset."""
    layers = []
    for (lower, upper), more, o, (lo, hi), top in zip(*reader, offset, *known, strict=True):
        layers.append((max(lo, lower - o), max(hi, upper + o, upper + more + o - top)))
    return tuple(layers), known[1]


def _extent(points: Points, ndim: int) -> Extent:
    """Return the layers (lower, upper) of each axis that contain all points.

    The second entry of the result is the number of additional points at upper walls. The extent has no
    additional layers, since a stage reads fields with halos of exactly this width.
    """
    lower = [max(-o[a] for o, _ in points) for a in range(ndim)]
    upper = [max(o[a] for o, _ in points) for a in range(ndim)]
    top = [max(o[a] + s[a] for o, s in points) - upper[a] for a in range(ndim)]
    return tuple(zip(lower, upper, strict=True)), tuple(top)


def _of_results(kernel: Kernel) -> ir.Body:
    groups: dict[tuple[tuple[bool, ...], ir.Offset | None], list[Result]] = {}
    for result in results(kernel):
        cell = result.cell if isinstance(result, ir.Reduce) else None
        groups.setdefault((staggering(kernel, result), cell), []).append(result)
    no_extent = ((0, 0),) * kernel.ndim
    # single cells first: they must read the values before the sweep writes its fields
    return tuple(
        ir.Nest(tuple(loop), no_extent, tuple(map(int, staggered)), cell)
        for (staggered, cell), group in sorted(groups.items(), key=lambda item: item[0][1] is None)
        for loop in _loops(kernel, group)
    )


def _loops(kernel: Kernel, results_at_points: list[Result]) -> list[list[Result]]:
    """Return loops of up to MAX_RESULTS results; results that share arrays stay together.

    If more than MAX_SHARING_REDUCTIONS reductions share arrays, they have separate loops. The separate loops
    come first, since they must read the values before the sweep writes its fields.
    """
    loops: list[list[Result]] = []
    separate: list[list[Result]] = []
    for group in _by_shared_arrays(kernel, results_at_points):
        reductions = [result for result in group if isinstance(result, ir.Reduce)]
        if len(reductions) > MAX_SHARING_REDUCTIONS:
            separate += [
                list(reductions[n : n + MAX_RESULTS]) for n in range(0, len(reductions), MAX_RESULTS)
            ]
            group = [result for result in group if isinstance(result, ir.Store)]
        if loops and len(loops[-1]) + len(group) <= MAX_RESULTS:
            loops[-1] += group
        elif group:
            loops.append(group)
    return separate + loops


def _by_shared_arrays(kernel: Kernel, results_at_points: list[Result]) -> list[list[Result]]:
    """Return results in groups that have no array in common."""
    above = list(range(len(results_at_points)))  # union-find: a result of the same group, or itself
    first: dict[str, int] = {}  # the first result of each array

    def top(number: int) -> int:
        while above[number] != number:
            above[number] = above[above[number]]
            number = above[number]
        return number

    for number, result in enumerate(results_at_points):
        arrays = [array for array, _ in kernel.loads((result.value,))]
        if isinstance(result, ir.Store):
            arrays.append(result.array)
        for array in arrays:
            above[top(number)] = top(first.setdefault(array, number))
    groups: dict[int, list[Result]] = {}
    for number, result in enumerate(results_at_points):
        groups.setdefault(top(number), []).append(result)
    return list(groups.values())
