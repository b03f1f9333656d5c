"""Loops over the rows of a nest, and what is computed outside of the loop along a row."""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.axes import padded
from halocline.compile.ir.kernel import POINT, Kernel


def loops(kernel: Kernel) -> Kernel:
    """Every nest as loops over its rows, with a vector loop along each."""

    def change(statement: ir.Statement) -> ir.Body:
        return (_rows(kernel, statement),) if isinstance(statement, ir.Nest) else (statement,)

    return replace(kernel, body=ir.rewritten(kernel.body, change))


def _rows(kernel: Kernel, nest: ir.Nest) -> ir.Nest:
    """What varies along the first axes only is computed as far out as can be."""
    wanted = ir.roots(nest.body)
    order = kernel.below(wanted)
    inner = (*_begun(kernel, nest, wanted), *_wraps(kernel, wanted), ir.Strip(nest.body))

    def outside(level: int) -> ir.Body:
        here = tuple(n for n in order if kernel.values[n].depth == level)
        return (ir.Let(here),) if here else ()

    assert POINT == 3  # two loops and the row
    body = (*outside(0), ir.Loop(0, (*outside(1), ir.Loop(1, (*outside(2), *inner)))))
    return replace(nest, body=body)


def _begun(kernel: Kernel, nest: ir.Nest, wanted: list[int]) -> ir.Body:
    """Where the rows begin that are read, then those that are written."""
    read = dict.fromkeys((a, padded(o, kernel.ndim)[:2]) for a, o in kernel.loads(wanted))
    written = dict.fromkeys(s.array for s in nest.body if isinstance(s, ir.Store))
    rows = [ir.Row(array, (offset[0], offset[1])) for array, offset in read]
    return (*rows, *(ir.Row(array, (0, 0), sink=True) for array in written))


def _wraps(kernel: Kernel, wanted: list[int]) -> ir.Body:
    """Fill the ends of the row in the halo from its other end, for fields that are read there."""
    steps: dict[str, list[int]] = {}
    for array, offset in kernel.loads(wanted):
        if array in kernel.wraps and offset[-1]:
            steps.setdefault(array, []).append(offset[-1])
    return tuple(ir.Wrap(array, max(0, -min(found)), max(0, *found)) for array, found in steps.items())
