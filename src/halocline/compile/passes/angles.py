"""Sines and cosines: separation of large angles, which need a branch.

Without the branch, the loop is a vector loop.
"""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import ANGULAR, POINT, Kernel


def angles(kernel: Kernel) -> Kernel:
    """Insert a loop that tests the angles before each loop that computes sines and cosines."""

    def change(strip: ir.Strip) -> ir.Body:
        values = (kernel.values[n] for n in kernel.below(ir.roots(strip.body)))
        arguments = tuple(v.args[0] for v in values if v.op in ANGULAR and v.depth == POINT)
        return (ir.Far(arguments), strip) if arguments else (strip,)

    return replace(kernel, body=ir.replaced(kernel.body, ir.Strip, change))


def near_or_far(kernel: Kernel) -> Kernel:
    """Duplicate the loops after each test of angles, for near angles and for other angles."""
    return replace(kernel, body=_chosen(kernel.body))


def _chosen(body: ir.Body) -> ir.Body:
    result: ir.Body = ()
    for n, statement in enumerate(body):
        if isinstance(statement, ir.Far):
            after = body[n + 1 :]
            ends = tuple(s for s in after if isinstance(s, (ir.Deposit, ir.Stream)))
            far_body = tuple(s for s in after if s not in ends)
            near_body = ir.replaced(far_body, ir.Strip, lambda strip: (replace(strip, near=True),))
            return (*result, statement, ir.Either(near_body, far_body), *ends)
        inner = {name: _chosen(part) for name, part in ir.bodies(statement)}
        result += (replace(statement, **inner) if inner else statement,)
    return result
