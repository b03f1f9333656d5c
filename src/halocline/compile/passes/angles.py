"""Sines and cosines: of far angles they need a branch, without which the loop is a vector loop."""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import ANGULAR, POINT, Kernel


def angles(kernel: Kernel) -> Kernel:
    """Before a loop that computes sines and cosines, another checks whether all angles are near."""

    def change(statement: ir.Statement) -> ir.Body:
        if not isinstance(statement, ir.Strip):
            return (statement,)
        values = (kernel.values[n] for n in kernel.below(ir.roots(statement.body)))
        found = tuple(v.args[0] for v in values if v.op in ANGULAR and v.depth == POINT)
        return (ir.Far(found), statement) if found else (statement,)

    return replace(kernel, body=ir.rewritten(kernel.body, change))


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
            return (*made, statement, ir.Either(_near(far), far), *ends)
        inner = {name: _chosen(part) for name, part in ir.bodies(statement)}
        made += (replace(statement, **inner) if inner else statement,)
    return made


def _near(body: ir.Body) -> ir.Body:
    def change(statement: ir.Statement) -> ir.Body:
        return (replace(statement, near=True) if isinstance(statement, ir.Strip) else statement,)

    return ir.rewritten(body, change)
