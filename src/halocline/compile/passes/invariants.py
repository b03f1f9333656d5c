"""Values that are equal in all cells, stored in constant memory.

A kernel may have a hundred of these values, such as parameters and weights of differences. Without this pass,
these values occupy registers while a thread computes its cells. If the cells need all registers, a separate
kernel computes these values before each sweep. On CUDA devices, instructions then read the values from
constant memory without a load.
"""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel, Table, substituted_in
from halocline.compile.passes.order import Steps, registers

ADDRESS = 2  # registers per address
DTYPE = "float64"
MAX_INVARIANTS = 128  # of a kernel; the 64 KiB of constant memory then suffice for 64 kernels
NAME = ":invariants"  # no field has a colon in its name


def required_registers(kernel: Kernel) -> int:
    """Return the number of registers that a thread needs for the only nest of a kernel and its invariants."""
    (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
    results = ir.roots(nest.body)
    below = kernel.below(results)
    varying = [n for n in below if kernel.values[n].depth > 0]
    stores = [s for s in nest.body if isinstance(s, ir.Store)]
    used_arrays = {s.array for s in stores} | {name for name, _ in kernel.loads(results)}
    invariant_registers = sum(registers(kernel, n) for n in _used_invariants(kernel, below, results))
    ends = set(results) - {s.value for s in stores}
    return ADDRESS * len(used_arrays) + invariant_registers + Steps(kernel, varying, stores, ends).max_live


def invariants(kernel: Kernel) -> Kernel:
    """Move invariants of the only nest of a kernel to constant memory, at most `MAX_INVARIANTS`."""
    (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
    results = ir.roots(nest.body)
    selected = _used_invariants(kernel, kernel.below(results), results)[:MAX_INVARIANTS]
    if not selected:
        return kernel
    table = Table(kernel.grid, kernel.arrays, kernel.values)
    substitutions = {
        n: table.add("invariant", (), (NAME, position), kernel.values[n].dtype, 0)
        for position, n in enumerate(selected)
    }
    array = Array(NAME, DTYPE, "invariants", shape=(len(selected),))
    body: ir.Body = tuple(s for s in kernel.body if s is not nest)
    nest = replace(nest, body=substituted_in(table, nest.body, substitutions))
    body += (ir.ComputeInvariants(NAME, tuple(selected)), nest)
    return replace(kernel, arrays=(*kernel.arrays, array), values=tuple(table.values), body=body)


def _used_invariants(kernel: Kernel, order: list[int], results: list[int]) -> list[int]:
    """Return the values that are equal in all cells and that cells use, except for constants."""
    values = kernel.values
    operands = {arg for n in order if values[n].depth > 0 for arg in values[n].args} | set(results)
    return [
        n
        for n in order
        if n in operands and values[n].depth == 0 and values[n].op != "const" and not values[n].condition
    ]
