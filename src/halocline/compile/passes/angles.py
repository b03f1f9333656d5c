"""Sines and cosines: of far angles they need a branch, without which the loop is a vector loop."""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir.kernel import ANGULAR, POINT, Kernel
from halocline.compile.ir.statements import (
    Body,
    Deposit,
    Either,
    Far,
    Statement,
    Stream,
    Strip,
    bodies,
    rewritten,
    roots,
)


def angles(kernel: Kernel) -> Kernel:
    """Before a loop that computes sines and cosines, another checks whether all angles are near."""

    def change(statement: Statement) -> Body:
        if not isinstance(statement, Strip):
            return (statement,)
        values = (kernel.values[n] for n in kernel.below(roots(statement.body)))
        found = tuple(v.args[0] for v in values if v.op in ANGULAR and v.depth == POINT)
        return (Far(found), statement) if found else (statement,)

    return replace(kernel, body=rewritten(kernel.body, change))


def near_or_far(kernel: Kernel) -> Kernel:
    """What follows such a look is there twice: for near angles, and for others."""
    return replace(kernel, body=_chosen(kernel.body))


def _chosen(body: Body) -> Body:
    made: Body = ()
    for n, statement in enumerate(body):
        if isinstance(statement, Far):
            after = body[n + 1 :]
            ends = tuple(s for s in after if isinstance(s, (Deposit, Stream)))
            far = tuple(s for s in after if s not in ends)
            return (*made, statement, Either(_near(far), far), *ends)
        inner = {name: _chosen(part) for name, part in bodies(statement)}
        made += (replace(statement, **inner) if inner else statement,)
    return made


def _near(body: Body) -> Body:
    def change(statement: Statement) -> Body:
        return (replace(statement, near=True) if isinstance(statement, Strip) else statement,)

    return rewritten(body, change)
