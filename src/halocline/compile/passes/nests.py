"""Stages and results as loop nests, in order, and how far each reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Body, Nest, Offset, Reduce, Stage, Store
from halocline.compile.passes.inline import price
from halocline.compile.passes.reach import Points, Result, results, staggering, sums

# Results that one loop may compute where they share no array. A sum takes four vector registers, of which
# there are 16 or 32: a loop over many sums spills them, and the time to compile it grows as their square.
# Measured: docs/performance.md.
MOST = 8
# Reductions that share arrays are computed in one loop up to this many: every other loop reads them again.
MOST_SHARING = 32


Extent = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]


def nests(kernel: Kernel, needed: Mapping[str, Points]) -> Kernel:
    """A nest for the stages of one depth and extent, and for results of the same points. `needed`: where
    stages are, see `Reach`.

    Stages that share most of their values, such as the fluxes of several quantities, have one nest, of the
    extent of that which is needed farthest.
    """
    return replace(kernel, body=(*_of_stages(kernel, needed), *_of_results(kernel)))


def _of_stages(kernel: Kernel, needed: Mapping[str, Points]) -> Body:
    levels: dict[str, int] = {}
    rooms: dict[tuple[int, Extent], list[Store]] = {}
    for stage in kernel.body:
        if isinstance(stage, Stage):
            read = (array for array, _ in kernel.loads((stage.value,)))
            levels[stage.array] = 1 + max((levels.get(array, 0) for array in read), default=0)
            key = levels[stage.array], _extent(needed[stage.array], kernel.ndim)
            rooms.setdefault(key, []).append(Store(stage.array, stage.value, stage.origin))
    for key in sorted(rooms):
        for other in sorted(rooms):
            if key != other and _covers(other, key) and _share(kernel, rooms[key], rooms[other], needed):
                rooms[other] += rooms.pop(key)
                break
    return tuple(Nest(tuple(rooms[key]), *key[1]) for key in sorted(rooms))


def _covers(other: tuple[int, Extent], key: tuple[int, Extent]) -> bool:
    """Whether a nest of the same depth has all points of another, and the same more at upper walls."""
    (depth, (wide, wide_top)), (own, (narrow, top)) = other, key
    inside = all(a[0] >= b[0] and a[1] >= b[1] for a, b in zip(wide, narrow, strict=True))
    return depth == own and wide_top == top and inside


def _share(kernel: Kernel, some: list[Store], others: list[Store], needed: Mapping[str, Points]) -> bool:
    """Whether most of what stages compute is computed for others too, and all that they read is there around
    the points of these."""
    mine, theirs = [store.value for store in some], [store.value for store in others]
    alone = price(kernel, set(kernel.below(mine)) - set(kernel.below(theirs)))
    if 2 * alone > price(kernel, kernel.below(mine)):
        return False
    places = {point for store in others for point in needed[store.array]}
    for array, offset in set(kernel.loads(mine)) - set(kernel.loads(theirs)):
        read = {(sums(place, offset), staggered) for place, staggered in places}
        if _extent(needed[array] | read, kernel.ndim) != _extent(needed[array], kernel.ndim):
            return False
    return True


def _extent(points: Points, ndim: int) -> Extent:
    """The layers (lower, upper) of each axis that hold all points, and how many more at an upper wall.

    No layer more: a stage reads fields that have halo for just these.
    """
    lower = [max(-o[a] for o, _ in points) for a in range(ndim)]
    upper = [max(o[a] for o, _ in points) for a in range(ndim)]
    top = [max(o[a] + s[a] for o, s in points) - upper[a] for a in range(ndim)]
    return tuple(zip(lower, upper, strict=True)), tuple(top)


def _of_results(kernel: Kernel) -> Body:
    rooms: dict[tuple[tuple[bool, ...], Offset | None], list[Result]] = {}
    for result in results(kernel):
        cell = result.cell if isinstance(result, Reduce) else None
        rooms.setdefault((staggering(kernel, result), cell), []).append(result)
    none = ((0, 0),) * kernel.ndim
    # single cells first: they must see the values from before the sweep writes its fields
    return tuple(
        Nest(tuple(loop), none, tuple(map(int, staggered)), cell)
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
        reductions = [result for result in group if isinstance(result, Reduce)]
        if len(reductions) > MOST_SHARING:
            alone += [list(reductions[n : n + MOST]) for n in range(0, len(reductions), MOST)]
            group = [result for result in group if isinstance(result, Store)]
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
        if isinstance(result, Store):
            arrays.append(result.array)
        for array in arrays:
            above[top(number)] = top(first.setdefault(array, number))
    groups: dict[int, list[Result]] = {}
    for number, result in enumerate(found):
        groups.setdefault(top(number), []).append(result)
    return list(groups.values())
