"""Large expressions group by group: loops that keep values of short pieces of rows for later ones.

One loop over all of a large right-hand side loads from more rows than there are registers for their
addresses, let alone for the values. The differences of one array at several places come first, array by
array, and of each array those along one axis after those along another; the last loop combines what they
left. It all compiles in a fraction of the time, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import POINT, Array, Kernel, Table, substituted, substituted_in

LOADS = 64  # values that one loop may load; measured: docs/performance.md
ROWS = 12  # that a loop of a group may load from: registers for their addresses; measured there too
PIECE = 64  # elements of a row that are computed group by group

# The axes, other than that of the row, along which cells lie away; () for those of the row itself.
Direction = tuple[int, ...]


def split(kernel: Kernel) -> Kernel:
    """Each vector loop with too many loads as several, over pieces of the row."""
    table = Table(kernel.grid, kernel.arrays, kernel.values)

    def change(number: int, nest: ir.Nest) -> ir.Nest:
        several = partial(_strips, kernel, table, number)
        return replace(nest, body=ir.replaced(nest.body, ir.Strip, several))

    body = ir.with_nests(kernel.body, change)
    return replace(kernel, arrays=tuple(table.arrays.values()), values=tuple(table.values), body=body)


def _strips(kernel: Kernel, table: Table, nest: int, strip: ir.Strip) -> ir.Body:
    """A vector loop as those that keep values, and one that uses them."""
    keeping: dict[int, int] = {}  # values that are kept, as loads of what they are kept in
    strips: ir.Body = ()
    for group in groups(kernel, ir.roots(strip.body)):
        stores: ir.Body = ()
        loads: dict[int, int] = {}
        for value, made in zip(group, substituted(table, group, keeping), strict=True):
            name, dtype = f"{nest}:kept{len(keeping) + len(loads)}", kernel.values[value].dtype
            table.arrays[name] = Array(name, dtype, "kept", length=PIECE)
            stores += (ir.Store(name, made),)
            loads[value] = table.add("load", (), (name, ()), dtype, POINT)
        keeping |= loads
        strips += (ir.Strip(stores),)
    return (*strips, replace(strip, body=substituted_in(table, strip.body, keeping)))


def groups(kernel: Kernel, wanted: Sequence[int]) -> list[list[int]]:
    """What earlier loops keep for later ones, in order: the largest values of one array alone that read it at
    several places. Empty where one loop does as well.
    """
    values = kernel.values
    order = kernel.below(wanted)
    arrays: dict[int, frozenset[str]] = {}  # that each value is made of
    loads = 0
    for number in order:
        value = values[number]
        if value.op == "load":
            loads += 1
            arrays[number] = frozenset((value.attribute[0],))
        else:
            arrays[number] = frozenset().union(*(arrays[arg] for arg in value.args))
    if loads <= LOADS:
        return []
    found: dict[str, dict[int, None]] = {}
    several: dict[int, bool] = {}  # whether a value reads at several places
    for number in order:
        if len(arrays[number]) < 2:
            continue
        for arg in _numbers(kernel, values[number].args):
            if len(arrays[arg]) == 1 and values[arg].depth == POINT:
                if arg not in several:
                    several[arg] = len(kernel.loads((arg,))) > 1
                if several[arg]:
                    (array,) = arrays[arg]
                    found.setdefault(array, {})[arg] = None
    if len(found) < 2:
        return []
    return [loop for group in found.values() for loop in _loops(kernel, _needed(kernel, group))]


def _numbers(kernel: Kernel, args: Sequence[int]) -> Iterator[int]:
    """What can be kept of arguments: conditions cannot, but what they are made of can."""
    for arg in args:
        if kernel.values[arg].condition:
            yield from _numbers(kernel, kernel.values[arg].args)
        else:
            yield arg


def _needed(kernel: Kernel, group: Collection[int]) -> list[int]:
    """A group without what is a single operation on others of it: that is done again where it is needed."""
    values = kernel.values
    return [
        number
        for number in group
        if not all(arg in group for arg in values[number].args if values[arg].depth == POINT)
    ]


def _loops(kernel: Kernel, group: list[int]) -> list[list[int]]:
    """A group of one array as one loop, or, where that would load from many rows, direction by direction. The
    last direction's loop completes what is made of several."""
    values, order = kernel.values, kernel.below(group)
    found: dict[int, frozenset[Direction]] = {}  # where values of the row come from
    rows: set[tuple[int, ...]] = set()
    for number in order:
        value = values[number]
        if value.op == "load":
            row = value.attribute[1][:-1]
            rows.add(row)
            direction = tuple(axis for axis, step in enumerate(row) if step)
            found[number] = frozenset((direction,) if direction else ())
        else:
            found[number] = frozenset().union(*(found[arg] for arg in value.args))
    if len(rows) <= ROWS:
        return [group]
    # diagonals between others, so that what comes last is loaded from few rows
    directions = sorted(set().union(*found.values()), key=lambda d: (d[-1], -len(d)))
    last = len(directions) - 1

    def loop(number: int) -> int:
        """The number of the loop that computes a value."""
        several = found[number]
        return last if len(several) > 1 else directions.index(next(iter(several))) if several else 0

    kept: list[dict[int, None]] = [{} for _ in directions]
    for number in group:
        kept[loop(number)][number] = None
    for number in order:
        for arg in _numbers(kernel, values[number].args):
            here = loop(arg)
            if loop(number) != here and values[arg].depth == POINT and values[arg].op != "load":
                kept[here][arg] = None
    return [list(each) for each in kept if each]
