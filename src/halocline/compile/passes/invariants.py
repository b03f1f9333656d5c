"""Values that are equal in all cells, stored in constant memory.

A kernel may have a hundred of these values, such as parameters and weights of differences. Without this pass,
these values occupy registers while a thread computes its cells. If a nest needs many registers, a separate
kernel computes these values. On CUDA devices, instructions then read the values from constant memory without
a load.

The separate kernel runs once at the start of a run if no operation of the program changes the scalars that
it reads. Otherwise it runs before each sweep. A few values that change during a run, such as the time step,
therefore stay in registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel, Table, substituted_in
from halocline.compile.passes.order import Steps, registers

ADDRESS = 2  # registers per address
DTYPE = "float64"
MAX_INVARIANTS = 64  # of a sweep; 128 sweeps fit into the 64 KiB of constant memory of a CUDA module
MAX_CHANGING = 4  # changing values that stay in registers, so that no kernel runs before each sweep
MIN_REGISTERS = 96  # a nest that needs fewer keeps its invariants, so that a sweep has no further launches
NAME = ":invariants"  # no field has a colon in its name


def required_registers(kernel: Kernel, nest: ir.Nest) -> int:
    """Return the number of registers that a thread needs for a nest of a kernel and its invariants.

    The invariants count, even if they are in constant memory.
    """
    results = ir.roots(nest.body)
    invariant_numbers = _used_invariants(kernel, kernel.below(results), results)
    used_arrays = {s.array for s in nest.body if isinstance(s, ir.STORES)}
    used_arrays |= {name for name, _ in kernel.loads(results)}
    invariant_registers = sum(registers(kernel, n) for n in invariant_numbers)
    return ADDRESS * len(used_arrays) + invariant_registers + varying_registers(kernel, nest)


def varying_registers(kernel: Kernel, nest: ir.Nest) -> int:
    """Return the number of registers that a thread needs for the values that vary from cell to cell."""
    results = ir.roots(nest.body)
    varying = [n for n in kernel.below(results) if kernel.values[n].depth > 0]
    stores = [s for s in nest.body if isinstance(s, ir.STORES)]
    return Steps(kernel, varying, stores, set(results) - {*ir.roots(stores)}).max_live


def invariants(kernel: Kernel, changing: Set[str] = frozenset()) -> Kernel:
    """Move invariants of the nests that need many registers to constant memory, at most `MAX_INVARIANTS`.

    Values that depend on scalars in `changing` stay in registers, unless there are more than `MAX_CHANGING`
    or no other values.
    """
    selected: dict[int, None] = {}
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    crowded = [nest for nest in nests if required_registers(kernel, nest) > MIN_REGISTERS]
    for nest in crowded:
        results = ir.roots(nest.body)
        selected |= dict.fromkeys(_used_invariants(kernel, kernel.below(results), results))
    constant = [n for n in selected if changing.isdisjoint(_scalars(kernel, [n]))]
    if constant and len(selected) - len(constant) <= MAX_CHANGING:
        selected = dict.fromkeys(constant)
    selected = dict.fromkeys(list(selected)[:MAX_INVARIANTS])
    if not selected:
        return kernel
    table = Table(kernel.grid, kernel.arrays, kernel.values)
    substitutions = {
        n: table.add("invariant", (), (NAME, position), kernel.values[n].dtype, 0)
        for position, n in enumerate(selected)
    }
    array = Array(NAME, DTYPE, "invariants", shape=(len(selected),))
    body = tuple(
        replace(s, body=substituted_in(table, s.body, substitutions)) if s in crowded else s
        for s in kernel.body
    )
    first = ir.ComputeInvariants(NAME, tuple(selected))
    return replace(kernel, arrays=(*kernel.arrays, array), values=tuple(table.values), body=(first, *body))


def invariant_values(kernel: Kernel) -> tuple[int, ...]:
    """Return the values in constant memory, by their numbers in the kernel."""
    return tuple(n for s in kernel.body if isinstance(s, ir.ComputeInvariants) for n in s.values)


def invariant_scalars(kernel: Kernel) -> frozenset[str]:
    """Return the scalars on which the values in constant memory depend."""
    return _scalars(kernel, invariant_values(kernel))


def _scalars(kernel: Kernel, numbers: Iterable[int]) -> frozenset[str]:
    values = (kernel.values[n] for n in kernel.below(numbers))
    return frozenset(value.attribute for value in values if value.op == "scalar")


def _used_invariants(kernel: Kernel, order: list[int], results: list[int]) -> list[int]:
    """Return the values that are equal in all cells and that cells use, except for constants."""
    values = kernel.values
    operands = {arg for n in order if values[n].depth > 0 for arg in values[n].args} | set(results)
    return [
        n
        for n in order
        if n in operands and values[n].depth == 0 and values[n].op != "const" and not values[n].condition
    ]
