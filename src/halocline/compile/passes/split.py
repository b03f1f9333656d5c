"""Splitting of large expressions into several loops over short pieces of rows.

One loop for a large right-hand side loads from many rows. The registers are too few for the addresses and
values of all these rows. The first loops therefore compute the differences of one array at several positions,
and store them. These loops proceed array by array and, within an array, axis by axis. The last loop combines
the stored values. The compile time is a fraction of the compile time of one loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import POINT, Array, Kernel, Table, substituted, substituted_in

LOADS = 64  # maximum number of loads of one loop; measurements: docs/performance.md
ROWS = 12  # maximum number of rows that a loop loads, since each address needs a register; see LOADS
PIECE = 64  # elements of a row that the loops compute at a time

# Axes, other than that of the row, along which an offset is nonzero; () for the row itself.
Direction = tuple[int, ...]


def split(kernel: Kernel) -> Kernel:
    """Split each vector loop that has too many loads into several loops over pieces of the row."""
    table = Table(kernel.grid, kernel.arrays, kernel.values)

    def change(number: int, nest: ir.Nest) -> ir.Nest:
        several = partial(_strips, kernel, table, number)
        return replace(nest, body=ir.replaced(nest.body, ir.Strip, several))

    body = ir.with_nests(kernel.body, change)
    return replace(kernel, arrays=tuple(table.arrays.values()), values=tuple(table.values), body=body)


def _strips(kernel: Kernel, table: Table, nest: int, strip: ir.Strip) -> ir.Body:
    """Return loops that store values, and the vector loop that uses these values."""
    loads_of_stored: dict[int, int] = {}  # loads that replace stored values
    strips: ir.Body = ()
    for group in groups(kernel, ir.roots(strip.body)):
        stores: ir.Body = ()
        loads: dict[int, int] = {}
        for value, new_value in zip(group, substituted(table, group, loads_of_stored), strict=True):
            name = f"{nest}:intermediate{len(loads_of_stored) + len(loads)}"
            dtype = kernel.values[value].dtype
            table.arrays[name] = Array(name, dtype, "intermediate", length=PIECE)
            stores += (ir.Store(name, new_value),)
            loads[value] = table.add("load", (), (name, ()), dtype, POINT)
        loads_of_stored |= loads
        strips += (ir.Strip(stores),)
    return (*strips, replace(strip, body=substituted_in(table, strip.body, loads_of_stored)))


def groups(kernel: Kernel, results: Sequence[int]) -> list[list[int]]:
    """Return the values that each loop stores for later loops, in the order of the loops.

    Each of these values depends on one array alone, and reads the array at several positions. The stored
    values are as large as possible: they are arguments of values that depend on several arrays. The result is
    empty if one loop is sufficient.
    """
    values = kernel.values
    order = kernel.below(results)
    arrays: dict[int, frozenset[str]] = {}  # arrays on which each value depends
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
    candidates: dict[str, dict[int, None]] = {}
    reads_several: dict[int, bool] = {}  # True for values that read at several positions
    for number in order:
        if len(arrays[number]) < 2:
            continue
        for arg in _numbers(kernel, values[number].args):
            if len(arrays[arg]) == 1 and values[arg].depth == POINT:
                if arg not in reads_several:
                    reads_several[arg] = len(kernel.loads((arg,))) > 1
                if reads_several[arg]:
                    (array,) = arrays[arg]
                    candidates.setdefault(array, {})[arg] = None
    if len(candidates) < 2:
        return []
    return [
        loop for group in candidates.values() for loop in _loops(kernel, _without_recomputed(kernel, group))
    ]


def _numbers(kernel: Kernel, args: Sequence[int]) -> Iterator[int]:
    """Yield arguments that can be stored; the arguments of a condition replace the condition."""
    for arg in args:
        if kernel.values[arg].condition:
            yield from _numbers(kernel, kernel.values[arg].args)
        else:
            yield arg


def _without_recomputed(kernel: Kernel, group: Collection[int]) -> list[int]:
    """Return a group without the values that are recomputed.

    A recomputed value is a single operation on other values of the group.
    """
    values = kernel.values
    return [
        number
        for number in group
        if not all(arg in group for arg in values[number].args if values[arg].depth == POINT)
    ]


def _loops(kernel: Kernel, group: list[int]) -> list[list[int]]:
    """Return the loops for a group of one array: one loop, or, if it would load many rows, one per direction.

    The loop of the last direction computes the values that depend on several directions.
    """
    values, order = kernel.values, kernel.below(group)
    sources: dict[int, frozenset[Direction]] = {}  # directions on which each value depends
    rows: set[tuple[int, ...]] = set()
    for number in order:
        value = values[number]
        if value.op == "load":
            row = value.attribute[1][:-1]
            rows.add(row)
            direction = tuple(axis for axis, step in enumerate(row) if step)
            sources[number] = frozenset((direction,) if direction else ())
        else:
            sources[number] = frozenset().union(*(sources[arg] for arg in value.args))
    if len(rows) <= ROWS:
        return [group]
    # diagonals before straight directions, so that the last loop loads few rows
    directions = sorted(set().union(*sources.values()), key=lambda d: (d[-1], -len(d)))
    last = len(directions) - 1

    def loop(number: int) -> int:
        """Return the number of the loop that computes a value."""
        axes = sources[number]
        return last if len(axes) > 1 else directions.index(next(iter(axes))) if axes else 0

    stored: list[dict[int, None]] = [{} for _ in directions]
    for number in group:
        stored[loop(number)][number] = None
    for number in order:
        for arg in _numbers(kernel, values[number].args):
            loop_of_argument = loop(arg)
            if loop(number) != loop_of_argument and values[arg].depth == POINT and values[arg].op != "load":
                stored[loop_of_argument][arg] = None
    return [list(loop_values) for loop_values in stored if loop_values]
