"""Room for stages."""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Allocate, Nest, Store


def scratch(kernel: Kernel) -> Kernel:
    """Room for each stage, one after the other."""
    return replace(kernel, body=(*rooms(kernel), *kernel.body))


def rooms(kernel: Kernel) -> tuple[Allocate, ...]:
    """What says where stages are."""
    return tuple(
        Allocate(s.array, nest.extent, nest.top)
        for nest in kernel.body
        if isinstance(nest, Nest)
        for s in nest.body
        if isinstance(s, Store) and kernel.array[s.array].kind == "scratch"
    )
