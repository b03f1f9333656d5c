"""Splits of the loops of a device kernel, selected by the registers that its values need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from halocline.compile import strategy as limits
from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.compile.passes.copies import copies, max_lanes, may_copy
from halocline.compile.passes.invariants import required_registers, varying_registers
from halocline.compile.strategy import Split, Splits, Strategy, block_splits
from halocline.errors import InputError


def splits_of(kernel: Kernel, nests: Sequence[ir.Nest], strategy: Strategy) -> tuple[Splits, str]:
    """Return the splits of the nests of a kernel, and the number of resident blocks as text, empty for none.

    The splits of the strategy take precedence, except that each thread computes one cell at a time where it
    cannot compute several cells at once. Without splits in the strategy, kernels that need few registers
    compute vectors, and kernels that need many registers have smaller thread blocks than the others.

    Raises
    ------
    InputError
        The splits refer to an axis that the grid does not have.
    """
    wrong = [split for split in strategy.splits if split.axis < 3 - kernel.ndim]
    if wrong:
        raise InputError(
            f"device kernels with {wrong[0]}: a grid with {kernel.ndim} axes has the axes "
            f"{3 - kernel.ndim} to 2 in generated code; use splits of these axes"
        )
    resident = str(strategy.resident_blocks or "")
    if strategy.splits or resident:
        splits = strategy.splits or block_splits(kernel.ndim)
        at_once = {s for s in splits if s.kind in ("unroll", "vector")}
        if at_once and not _may_have(kernel, nests, at_once):
            splits = tuple(s for s in splits if s not in at_once)
        return splits, resident
    required = max(required_registers(kernel, nest) for nest in nests)
    if strategy.reads == "planes" or required <= limits.REGISTERS:
        lanes = _lanes(kernel, nests)
        if lanes > 1:
            return block_splits(kernel.ndim, limits.VECTOR_BLOCK, cells=lanes), ""
        return block_splits(kernel.ndim), ""
    if max(varying_registers(kernel, nest) for nest in nests) <= limits.VARYING_REGISTERS:
        resident = f"HC_RESIDENT({limits.RESIDENT_BLOCKS})"
    return block_splits(kernel.ndim, limits.SMALL_BLOCK), resident


def _lanes(kernel: Kernel, nests: Sequence[ir.Nest]) -> int:
    """Return the number of cells of a vector, or 1 if vectors would need too many registers.

    The indices of several cells would need further operations, so that nests with indices have no vectors.
    """
    if len(nests) > 1:
        return 1
    (nest,) = nests
    lanes = max_lanes(kernel, nest)
    has_indices = any(kernel.values[n].op == "index" for n in kernel.below(ir.roots(nest.body)))
    if lanes == 1 or has_indices or not may_copy(kernel, nest):
        return 1
    copied = copies(kernel, 1, lanes)
    (nest,) = (s for s in copied.body if isinstance(s, ir.Nest))
    return lanes if required_registers(copied, nest) <= limits.VECTOR_REGISTERS else 1


def _may_have(kernel: Kernel, nests: Sequence[ir.Nest], at_once: Iterable[Split]) -> bool:
    """Return True if each thread may compute several cells of nests at once, as some splits demand."""
    if len(nests) > 1 or not may_copy(kernel, nests[0]):
        return False
    return all(s.kind != "vector" or s.size <= max_lanes(kernel, nests[0]) for s in at_once)
