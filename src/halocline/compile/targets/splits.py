"""Splits of the loops of a device kernel, selected by the registers and the cache that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from halocline.compile import strategy as limits
from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel, padded
from halocline.compile.passes.coarsen import coarsen, max_lanes, may_coarsen
from halocline.compile.passes.invariants import required_registers, varying_registers
from halocline.compile.strategy import Split, Splits, Strategy, block_splits
from halocline.errors import InputError
from halocline.lang.dtype import ITEMSIZE


def splits_of(kernel: Kernel, nests: Sequence[ir.Nest], strategy: Strategy) -> tuple[Splits, str]:
    """Return the splits of the nests of a kernel, and the number of resident blocks as text, empty for none.

    The splits of the strategy take precedence, except that each thread computes fewer cells at once where it
    cannot compute as many. Without splits in the strategy, kernels that need few registers compute vectors.
    Kernels that need many registers or much cache have smaller thread blocks than the others.

    Raises
    ------
    InputError
        The splits refer to an axis that the grid does not have, or do not stream along the slowest axis.
    """
    first = 3 - kernel.ndim
    wrong = [s for s in strategy.splits if s.axis < first or (s.kind == "stream" and s.axis != first)]
    if wrong:
        raise InputError(
            f"device kernels with {wrong[0]}: a grid with {kernel.ndim} axes has the axes {first} to 2 in "
            f"generated code; use splits of these axes, and stream along axis {first}"
        )
    resident = str(strategy.resident_blocks or "")
    if strategy.splits or resident:
        splits = strategy.splits or block_splits(kernel.ndim)
        return tuple(_fitted(kernel, nests, splits)), resident
    required = max(required_registers(kernel, nest) for nest in nests)
    if strategy.reads == "planes" or required <= limits.REGISTERS:
        lanes = _lanes(kernel, nests)
        if lanes > 1:
            return block_splits(kernel.ndim, limits.VECTOR_BLOCK, cells=lanes), ""
        is_cached = cached_bytes(kernel, nests, limits.LARGE_BLOCK) <= limits.CACHE_BYTES
        block = limits.LARGE_BLOCK if is_cached or strategy.reads == "planes" else limits.SMALL_BLOCK
        return block_splits(kernel.ndim, block), ""
    if max(varying_registers(kernel, nest) for nest in nests) <= limits.VARYING_REGISTERS:
        resident = f"HC_RESIDENT({limits.RESIDENT_BLOCKS})"
    return block_splits(kernel.ndim, limits.SMALL_BLOCK), resident


def cached_bytes(kernel: Kernel, nests: Sequence[ir.Nest], block: tuple[int, int]) -> int:
    """Return the bytes that a thread block reads to compute one plane, in whole sectors of the cache.

    The neighbours of a cell are also neighbours of other cells of the block, so that the block reads them
    from the cache. It reads them from memory if the cache is too small.

    Parameters
    ----------
    kernel : Kernel
    nests : sequence of Nest
        Nests whose loads count.
    block : (int, int)
        Threads along the contiguous axis and the next one, each with one cell.
    """
    offsets_of_arrays: dict[str, list[tuple[int, ...]]] = {}
    for name, offset in kernel.loads(ir.roots(nests)):
        offsets_of_arrays.setdefault(name, []).append(padded(offset, kernel.ndim))
    total = 0
    for name, offsets in offsets_of_arrays.items():
        itemsize = ITEMSIZE[kernel.array[name].dtype]
        lower, upper = ([f(along) for along in zip(*offsets, strict=True)] for f in (min, max))
        planes, rows = (upper[axis] - lower[axis] + size for axis, size in ((0, 1), (1, block[1])))
        sides = (-(-reach * itemsize // limits.SECTOR_BYTES) for reach in (-lower[2], upper[2]))
        total += planes * rows * (block[0] * itemsize + sum(sides) * limits.SECTOR_BYTES)
    return total


def _lanes(kernel: Kernel, nests: Sequence[ir.Nest]) -> int:
    """Return the number of cells of a vector, or 1 if vectors would need too many registers.

    The indices of several cells would need further operations, so that nests with indices have no vectors.
    """
    if len(nests) > 1:
        return 1
    (nest,) = nests
    lanes = max_lanes(kernel, nest)
    has_indices = any(kernel.values[n].op == "index" for n in kernel.below(ir.roots(nest.body)))
    if lanes == 1 or has_indices or not may_coarsen(kernel, nest):
        return 1
    copied = coarsen(kernel, 1, lanes)
    (nest,) = (s for s in copied.body if isinstance(s, ir.Nest))
    return lanes if required_registers(copied, nest) <= limits.VECTOR_REGISTERS else 1


def _fitted(kernel: Kernel, nests: Sequence[ir.Nest], splits: Splits) -> Iterator[Split]:
    """Yield the splits that a kernel can have; vectors have at most the cells of one load."""
    several = len(nests) == 1 and may_coarsen(kernel, nests[0])
    for split in splits:
        if split.kind == "vector":
            cells = min(split.size, max_lanes(kernel, nests[0])) if several else 1
            if cells > 1:
                yield replace(split, size=cells)
        elif split.kind != "unroll" or several:
            yield split
