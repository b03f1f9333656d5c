"""Several cells per thread: values of adjacent cells, stores of vectors, and nests that may have them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import halocline as hc
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Cell, Nest, Reduce, StoreCells, flat
from halocline.compile.ir.verify import verify
from halocline.compile.passes.coarsen import coarsen, max_lanes, may_coarsen
from halocline.lang.expression import Expr
from kernels import in_nest, kernel_of

GRID = hc.Grid((8, 8, 8), (1.0, 1.0, 1.0), periodic=True)
U = GRID.field("u")
V = GRID.field("v", dtype="float32")


def nest_of(kernel: Kernel) -> Nest:
    (nest,) = (s for s in kernel.body if isinstance(s, Nest))
    return nest


def star() -> Expr:
    return U[1, 0, 0] + U[-1, 0, 0] + U[0, 1, 0] + U[0, -1, 0] + U[0, 0, 1] + U[0, 0, -1]


@pytest.mark.parametrize(("rows", "lanes"), [(1, 2), (2, 1), (2, 2), (3, 4)])
def test_each_cell_has_a_result_and_shares_loads_with_others(rows: int, lanes: int) -> None:
    kernel = coarsen(in_nest(kernel_of(star())), rows, lanes)
    verify(kernel)
    stores = nest_of(kernel).body
    assert [s.offset for s in stores if isinstance(s, StoreCells)] == [(0, row, 0) for row in range(rows)]
    assert [len(s.values) for s in stores if isinstance(s, StoreCells)] == [lanes] * rows
    offsets = {offset for _, offset in kernel.loads(value for s in stores for value in s.values)}  # type: ignore[attr-defined]
    planes = {(z, row, lane) for z in (-1, 1) for row in range(rows) for lane in range(lanes)}
    beside = {(0, row, lane + x) for row in range(rows) for lane in range(lanes) for x in (-1, 1)}
    above = {(0, row + y, lane) for row in range(rows) for lane in range(lanes) for y in (-1, 1)}
    assert offsets == planes | beside | above


def test_indices_and_reductions_belong_to_their_cell() -> None:
    kernel = in_nest(kernel_of(U * GRID.y))
    (nest,) = kernel.body
    assert isinstance(nest, Nest)
    summed = replace(nest, body=(*nest.body, Reduce(3, "sum", nest.body[0].value)))  # type: ignore[attr-defined]
    kernel = coarsen(replace(kernel, body=(summed,)), 2, 1)
    verify(kernel)
    cells = [s for s in flat(kernel.body) if isinstance(s, Cell)]
    assert [cell.offset for cell in cells] == [(0, 0, 0), (0, 1, 0)]
    assert {s.slot for cell in cells for s in cell.body if isinstance(s, Reduce)} == {3}
    assert sorted(kernel.attributes("index")) == [(1, 0), (1, 1)]


def test_one_cell_leaves_the_kernel_unchanged() -> None:
    kernel = in_nest(kernel_of(star()))
    assert coarsen(kernel, 1, 1) is kernel


def test_values_that_are_indices_of_memory_prevent_several_cells() -> None:
    """Cells beyond the box may have any value there, such as an index beyond a table."""
    for expression, expected in ((star(), True), (hc.exp(U), False), (hc.sin(U), False)):
        kernel = in_nest(kernel_of(expression))
        assert may_coarsen(kernel, nest_of(kernel)) == expected
    kernel = in_nest(kernel_of(star()))
    cell = replace(nest_of(kernel), cell=(1, 2, 3))
    assert not may_coarsen(kernel, cell)


def test_the_widest_array_limits_vectors() -> None:
    lanes = []
    for expression in (U * 2.0, V * 2.0, U + V):
        kernel = in_nest(kernel_of(expression))
        lanes.append(max_lanes(kernel, nest_of(kernel)))
    assert lanes == [2, 4, 2]
