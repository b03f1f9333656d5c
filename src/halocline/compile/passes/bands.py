"""Values that vary only along the rows, computed once for all rows of a band.

Examples are the map of a stretched last axis, and a force that depends on the coordinate along this axis.
Without this pass, every row would compute them. The pass applies to values that need more than additions and
products. The pass divides a patch into bands, each as wide as a piece of a row. A band begins with a loop
that stores these values in memory for all of its rows.
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
    """Divide each nest into bands if it computes costly values that vary only along the rows.

    Nests with rows of whole vectors are unchanged, since their rows extend beyond a band. Nests along a
    single axis are unchanged, since they have one row.
    """
    if kernel.ndim == 1:
        return kernel
    table = Table(kernel.grid, kernel.arrays, kernel.values)
    body = ir.with_nests(kernel.body, lambda n, s: s if s.whole_vectors else _banded(kernel, table, n, s))
    return replace(kernel, arrays=tuple(table.arrays.values()), values=tuple(table.values), body=body)


def _banded(kernel: Kernel, table: Table, number: int, nest: ir.Nest) -> ir.Nest:
    strips = [s for s in ir.flat(nest.body) if isinstance(s, ir.Strip)]
    results = [value for strip in strips for value in ir.roots(strip.body)]
    band_values = _row_values(kernel, results)
    if not band_values:
        return nest
    loads: dict[int, int] = {}
    buffers: ir.Body = ()
    fill: ir.Body = ()
    for value in band_values:
        name, dtype = f"{number}:band{len(loads)}", kernel.values[value].dtype
        table.arrays[name] = Array(name, dtype, "band", length=WIDTH, span="band")
        loads[value] = table.add("load", (), (name, ()), dtype, POINT)
        buffers += (ir.Buffer(name),)
        fill += (ir.Store(name, value),)

    def change(strip: ir.Strip) -> ir.Body:
        return (replace(strip, body=substituted_in(table, strip.body, loads)),)

    outside = tuple(s for s in nest.body if not isinstance(s, ir.Axis))
    rows = ir.replaced(nest.body[len(outside) :], ir.Strip, change)
    return replace(nest, body=(*outside, *buffers, ir.Bands((ir.Strip(fill),), rows, WIDTH)))


def _row_values(kernel: Kernel, results: Sequence[int]) -> list[int]:
    """Return the costly values that vary only along the rows.

    The result omits a value that is used only to compute other values in the result.
    """
    row_values: set[int] = set()
    costly: set[int] = set()
    operands: set[int] = set(results)
    order = kernel.below(results)
    for number in order:
        value = kernel.values[number]
        is_row_index = value.op == "index" and value.attribute[0] == kernel.ndim - 1
        # a condition cannot be stored as a number, but its arguments can
        is_derived = value.args and not value.condition and row_values.issuperset(value.args)
        if is_row_index or not value.depth or is_derived:
            row_values.add(number)
            if value.depth and (value.op in COSTLY or not costly.isdisjoint(value.args)):
                costly.add(number)
        else:
            operands.update(value.args)
    return [n for n in order if n in costly and n in operands]
