"""What varies along the rows alone, computed once for all rows of a band.

A map of a stretched last axis, or a force that depends on its coordinate, would be computed in every row
anew. Where it takes more than additions and products, a band of the patch, as wide as a piece of a row,
begins with a loop that keeps it in memory, for all rows of the band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import ELEMENTARY, POINT, Array, Kernel, Table, substituted_in
from halocline.compile.passes.pieces import PIECE

WIDTH = PIECE
COSTLY = {"div", "sqrt", *ELEMENTARY}


def bands(kernel: Kernel) -> Kernel:
    """Every nest with such values in bands; not those with rows of whole vectors, which go beyond a band, nor
    along a single axis, where there is one row."""
    if kernel.ndim == 1:
        return kernel
    table = Table(kernel.grid, kernel.arrays, kernel.values)
    body = ir.with_nests(kernel.body, lambda n, s: s if s.whole else _banded(kernel, table, n, s))
    return replace(kernel, arrays=tuple(table.arrays.values()), values=tuple(table.values), body=body)


def _banded(kernel: Kernel, table: Table, number: int, nest: ir.Nest) -> ir.Nest:
    strips = [s for s in ir.flat(nest.body) if isinstance(s, ir.Strip)]
    wanted = [value for strip in strips for value in ir.roots(strip.body)]
    found = _of_rows(kernel, wanted)
    if not found:
        return nest
    loads: dict[int, int] = {}
    rooms: ir.Body = ()
    fill: ir.Body = ()
    for value in found:
        name, dtype = f"{number}:band{len(loads)}", kernel.values[value].dtype
        table.arrays[name] = Array(name, dtype, "band", length=WIDTH, span="band")
        loads[value] = table.add("load", (), (name, ()), dtype, POINT)
        rooms += (ir.Buffer(name),)
        fill += (ir.Store(name, value),)

    def change(strip: ir.Strip) -> ir.Body:
        return (replace(strip, body=substituted_in(table, strip.body, loads)),)

    outside = tuple(s for s in nest.body if not isinstance(s, ir.Loop))
    rows = ir.replaced(nest.body[len(outside) :], ir.Strip, change)
    return replace(nest, body=(*outside, *rooms, ir.Bands((ir.Strip(fill),), rows, WIDTH)))


def _of_rows(kernel: Kernel, wanted: Sequence[int]) -> list[int]:
    """The numbers that vary along the rows alone and take long, and are part of nothing else of that kind."""
    alike: set[int] = set()
    costly: set[int] = set()
    used: set[int] = set(wanted)
    order = kernel.below(wanted)
    for number in order:
        value = kernel.values[number]
        own = value.op == "index" and value.attribute[0] == kernel.ndim - 1
        # a condition is no number that memory holds; what it is made of is
        made = value.args and not value.condition and alike.issuperset(value.args)
        if own or not value.depth or made:
            alike.add(number)
            if value.depth and (value.op in COSTLY or not costly.isdisjoint(value.args)):
                costly.add(number)
        else:
            used.update(value.args)
    return [n for n in order if n in costly and n in used]
