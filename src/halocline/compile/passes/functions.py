"""Kernels in several functions: a compiler takes longer for a large one than for its parts."""

from __future__ import annotations

from dataclasses import replace
from textwrap import shorten

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.compile.passes.rename import compacted


def functions(kernel: Kernel) -> list[Kernel]:
    """The nests of a kernel, in order, function by function. What makes or reads scratch memory stays
    together."""

    def staged(nest: ir.Nest) -> bool:
        stored = any(
            isinstance(s, ir.Store) and kernel.array[s.array].kind == "scratch" for s in ir.flat(nest.body)
        )
        return stored or any(kernel.array[a].kind == "scratch" for a, _ in kernel.loads(ir.roots(nest.body)))

    rooms = tuple(s for s in kernel.body if isinstance(s, (ir.Slot, ir.Allocate)))
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    together = max((number for number, nest in enumerate(nests, 1) if staged(nest)), default=1)
    parts = [nests[:together], *([nest] for nest in nests[together:])]
    if len(parts) == 1:
        return [kernel]
    return [
        _part(kernel, number, (*(rooms if number == 0 else ()), *part)) for number, part in enumerate(parts)
    ]


def _part(kernel: Kernel, number: int, body: ir.Body) -> Kernel:
    """A kernel of some nests, with the arrays that they touch."""
    touched = {array for array, _ in kernel.loads(ir.roots(body))}
    touched |= {s.array for s in ir.flat(body) if isinstance(s, ir.Store)}
    arrays = tuple(array for array in kernel.arrays if array.name in touched)
    name = f"{kernel.name}_part{number}"
    # short: the text of many parts would grow as the square of their number
    comment = f"{shorten(kernel.comment, 100, placeholder=' ...')}, part {number}"
    return compacted(replace(kernel, name=name, comment=comment, arrays=arrays, body=body))
