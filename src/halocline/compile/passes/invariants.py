"""Values that are the same in all cells, in memory that a group of threads shares.

Weights of differences, with the parameters a hundred of them, would stay in registers of every thread while
it goes through its cells. Where cells need all registers themselves the first thread of a group computes them
once, and each is read where it is used.
"""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel, Table, substituted_in
from halocline.compile.passes.order import Steps, registers
from halocline.lang.dtype import ITEMSIZE

ADDRESS = 2  # registers
DTYPE = "float64"
NAME = ":invariants"  # no field has a colon in its name


def needed(kernel: Kernel) -> int:
    """How many registers the cells of the only nest of a kernel take, with what is the same in all."""
    (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
    wanted = ir.roots(nest.body)
    below = kernel.below(wanted)
    inside = [n for n in below if kernel.values[n].depth > 0]
    stores = [s for s in nest.body if isinstance(s, ir.Store)]
    touched = {s.array for s in stores} | {name for name, _ in kernel.loads(wanted)}
    same = sum(registers(kernel, n) for n in _taken(kernel, below, wanted))
    ends = set(wanted) - {s.value for s in stores}
    return ADDRESS * len(touched) + same + Steps(kernel, inside, stores, ends).most


def invariants(kernel: Kernel, room: int) -> Kernel:
    """The only nest of a kernel with what is the same in all cells in memory of the group, which has `room`
    bytes."""
    (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
    wanted = ir.roots(nest.body)
    taken = _taken(kernel, kernel.below(wanted), wanted)[: max(0, room) // ITEMSIZE[DTYPE]]
    if not taken:
        return kernel
    table = Table(kernel.grid, kernel.arrays, kernel.values)
    instead = {
        n: table.add("invariant", (), (NAME, place), kernel.values[n].dtype, 0)
        for place, n in enumerate(taken)
    }
    array = Array(NAME, DTYPE, "invariants", shape=(len(taken),))
    body: ir.Body = tuple(s for s in kernel.body if s is not nest)
    nest = replace(nest, body=substituted_in(table, nest.body, instead))
    body += (ir.Share(NAME), ir.First(NAME, tuple(taken)), nest)
    return replace(kernel, arrays=(*kernel.arrays, array), values=tuple(table.values), body=body)


def _taken(kernel: Kernel, order: list[int], wanted: list[int]) -> list[int]:
    """What is the same in all cells, and not a number, of what cells take."""
    values = kernel.values
    used = {arg for n in order if values[n].depth > 0 for arg in values[n].args} | set(wanted)
    return [
        n
        for n in order
        if n in used and values[n].depth == 0 and values[n].op != "const" and not values[n].condition
    ]
