"""Splits of kernels by the registers and the cache that they need, and splits that a kernel cannot have."""

from __future__ import annotations

import pytest

import halocline as hc
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Nest
from halocline.compile.strategy import LARGE_BLOCK, SMALL_BLOCK, VECTOR_BLOCK, Splits, Strategy, block_splits
from halocline.compile.targets.splits import cached_bytes, splits_of
from halocline.errors import InputError
from halocline.lang.expression import Expr
from kernels import in_nest, kernel_of

GRID = hc.Grid((8, 8, 8), (1.0, 1.0, 1.0), periodic=True)
U = GRID.field("u")
V = GRID.field("v", dtype="float32")


def nests_of(kernel: Kernel) -> list[Nest]:
    return [s for s in kernel.body if isinstance(s, Nest)]


def chosen(kernel: Kernel, strategy: Strategy) -> tuple[Splits, str]:
    return splits_of(kernel, nests_of(kernel), strategy)


def kernel(expression: Expr) -> Kernel:
    return in_nest(kernel_of(expression))


def crowded(count: int) -> Kernel:
    """Return a kernel in which many values are live at once."""
    roots = [hc.sqrt(U + float(n)) for n in range(count)]
    total: Expr = U
    for root in (*roots, *roots[::-1]):
        total = hc.sqrt(total) * root
    return kernel(total)


def test_kernels_with_few_registers_compute_vectors() -> None:
    assert chosen(kernel(U + U[0, 1, 0]), Strategy()) == (block_splits(3, VECTOR_BLOCK, cells=2), "")
    assert chosen(kernel(V + V[0, 1, 0]), Strategy()) == (block_splits(3, VECTOR_BLOCK, cells=4), "")
    for scalar in (hc.exp(U), U * GRID.y):
        assert chosen(kernel(scalar), Strategy()) == (block_splits(3), "")
    assert chosen(crowded(30), Strategy()) == (block_splits(3), "")


def test_kernels_with_many_registers_have_small_blocks() -> None:
    splits, resident = chosen(crowded(120), Strategy())
    assert splits == block_splits(3, SMALL_BLOCK)
    assert resident == ""  # the values that vary from cell to cell do not fit into 168 registers
    assert chosen(crowded(120), Strategy("planes")) == (block_splits(3), "")


def test_a_block_reads_whole_sectors() -> None:
    star = kernel(U[1, 0, 0] + U[0, -1, 0] + U[0, 0, -3] + U[0, 0, 1] + V[0, 0, 9] * U[0, 2, 0])
    planes_of_u = 2 * (4 + 1 + 2) * (64 * 8 + 32 + 32)
    planes_of_v = 4 * (64 * 4 + 32)  # nine cells further, from the second sector of a row
    assert cached_bytes(star, nests_of(star), LARGE_BLOCK) == planes_of_u + planes_of_v


def test_kernels_that_read_much_have_small_blocks() -> None:
    """A sweep of MHD takes 4.31 ms with 64 x 4 threads on an H200, and 3.53 ms with 32 x 4 threads."""
    fields = [GRID.field(f"f{n}") for n in range(8)]

    def wide(count: int) -> Kernel:
        total: Expr = hc.exp(U)
        for f in fields[:count]:
            total = hc.sqrt(total) + sum(f[d, d, e * d] for d in (-3, 3) for e in (-1, 1))
        return kernel(total)

    for count, block in ((4, LARGE_BLOCK), (5, SMALL_BLOCK)):
        assert chosen(wide(count), Strategy()) == (block_splits(3, block), "")
        assert chosen(wide(count), Strategy("planes")) == (block_splits(3), "")


def test_the_splits_of_a_strategy_take_precedence() -> None:
    large = block_splits(3, (16, 8), rows=2, cells=4)
    assert chosen(kernel(V * 2.0), Strategy(splits=large)) == (large, "")
    fewer = block_splits(3, (16, 8), rows=2, cells=2)
    assert chosen(kernel(U * 2.0), Strategy(splits=large, resident_blocks=2)) == (fewer, "2")
    assert chosen(kernel(hc.exp(U)), Strategy(splits=large)) == (block_splits(3, (16, 8)), "")


def test_splits_of_another_grid_are_reported() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    plane = kernel(grid.field("w") * 2.0)
    with pytest.raises(
        InputError, match=r"a grid with 2 axes has the axes 1 to 2 in generated code; .* stream along axis 1$"
    ):
        chosen(plane, Strategy(splits=block_splits(3)))
