"""Sines and cosines: of far angles they need a branch, without which the loop is a vector loop."""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import ANGULAR, POINT, Kernel


def angles(kernel: Kernel) -> Kernel:
    """Before a loop that computes sines and cosines, another checks whether all angles are near."""

    def change(strip: ir.Strip) -> ir.Body:
        values = (kernel.values[n] for n in kernel.below(ir.roots(strip.body)))
        found = tuple(v.args[0] for v in values if v.op in ANGULAR and v.depth == POINT)
        return (ir.Far(found), strip) if found else (strip,)

    return replace(kernel, body=ir.replaced(kernel.body, ir.Strip, change))


def near_or_far(kernel: Kernel) -> Kernel:
    """What follows such a look is there twice: for near angles, and for others."""
    return replace(kernel, body=_chosen(kernel.body))


def _chosen(body: ir.Body) -> ir.Body:
    made: ir.Body = ()
    for n, statement in enumerate(body):
        if isinstance(statement, ir.Far):
            after = body[n + 1 :]
            ends = tuple(s for s in after if isinstance(s, (ir.Deposit, ir.Stream)))
            far = tuple(s for s in after if s not in ends)
            near = ir.replaced(far, ir.Strip, lambda strip: (replace(strip, near=True),))
            return (*made, statement, ir.Either(near, far), *ends)
        inner = {name: _chosen(part) for name, part in ir.bodies(statement)}
        made += (replace(statement, **inner) if inner else statement,)
    return made
