"""Several cells per thread: each result and the values that it needs, once for each cell.

Equal values of different cells are computed once. For example, the cells of two adjacent rows share most of
their loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel, Table, padded
from halocline.compile.passes.loops import BOUNDED
from halocline.compile.strategy import VECTOR_BYTES
from halocline.lang.dtype import ITEMSIZE


def may_coarsen(kernel: Kernel, nest: ir.Nest) -> bool:
    """Return True if a thread may compute several cells of a nest.

    The thread then also computes cells beyond the box from memory that may be uninitialised, and discards the
    results. Therefore the nest must read and write fields only, and use no value as an index. Rows and
    vectors begin in the subdomain, so that reads before them stay in its memory.
    """
    operations = {kernel.values[n].op for n in kernel.below(ir.roots(nest.body))}
    is_plain = all(array.kind == "field" for array in _used_arrays(kernel, nest))
    begins_inside = not any(lower for lower, _ in nest.extent)
    return nest.cell is None and begins_inside and is_plain and operations.isdisjoint(BOUNDED)


def max_lanes(kernel: Kernel, nest: ir.Nest) -> int:
    """Return the largest number of cells whose values fit into one load, for all arrays of a nest."""
    sizes = (ITEMSIZE[array.dtype] for array in _used_arrays(kernel, nest))
    return VECTOR_BYTES // max(sizes, default=VECTOR_BYTES)


def _used_arrays(kernel: Kernel, nest: ir.Nest) -> list[Array]:
    """Return the arrays that a nest reads or writes."""
    names = {name for name, _ in kernel.loads(ir.roots(nest.body))}
    names |= {s.array for s in nest.body if isinstance(s, ir.Store)}
    return [array for array in kernel.arrays if array.name in names]


def coarsen(kernel: Kernel, rows: int, lanes: int) -> Kernel:
    """Compute `lanes` adjacent cells of each of `rows` adjacent rows at once in the only nest of a kernel."""
    if rows == lanes == 1:
        return kernel
    (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
    table = Table(kernel.grid, kernel.arrays)
    order = kernel.below(ir.roots(kernel.body))
    numbers: dict[ir.Offset, dict[int, int]] = {}  # of the values of each cell
    for row, lane in product(range(rows), range(lanes)):
        numbers[0, row, lane] = _copied(kernel, table, order, (0, row, lane))
    body: ir.Body = ()
    for row in range(rows):
        cells = [(0, row, lane) for lane in range(lanes)]
        for statement in nest.body:
            if isinstance(statement, ir.Store):
                values = tuple(numbers[cell][statement.value] for cell in cells)
                body += (ir.StoreCells(statement.array, values, cells[0], statement.origin),)
        for statement in nest.body:
            if isinstance(statement, ir.Reduce):
                body += tuple(
                    ir.Cell(cell, (replace(statement, value=numbers[cell][statement.value]),))
                    for cell in cells
                )
    new_nest = replace(nest, body=body)
    statements = tuple(new_nest if s is nest else s for s in kernel.body)
    return replace(kernel, values=tuple(table.values), body=statements)


def _copied(kernel: Kernel, table: Table, order: Sequence[int], cell: ir.Offset) -> dict[int, int]:
    """Add the values of a cell to a table, and return their numbers in the table."""
    numbers: dict[int, int] = {}
    for number in order:
        value = kernel.values[number]
        if value.op == "load":
            name, offset = value.attribute
            steps = zip(padded(offset, kernel.ndim), cell, strict=True)
            place = tuple(o + step for o, step in steps)[3 - kernel.ndim :]
            value = replace(value, attribute=(name, place))
        elif value.op == "index":
            axis, step = value.attribute
            value = replace(value, attribute=(axis, step + cell[axis + 3 - kernel.ndim]))
        numbers[number] = table.copy(value, tuple(numbers[arg] for arg in value.args))
    return numbers
