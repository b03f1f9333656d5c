"""Sines and cosines: separate loops for small angles and for all angles.

Large angles need a branch. A loop for small angles has no branch and is therefore a vector loop.
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
        return (ir.CheckAngles(arguments), strip) if arguments else (strip,)

    return replace(kernel, body=ir.replaced(kernel.body, ir.Strip, change))


def split_by_angles(kernel: Kernel) -> Kernel:
    """Duplicate the loops after each test of angles, for small angles and for all angles."""
    return replace(kernel, body=_with_selections(kernel.body))


def _with_selections(body: ir.Body) -> ir.Body:
    result: ir.Body = ()
    for n, statement in enumerate(body):
        if isinstance(statement, ir.CheckAngles):
            after = body[n + 1 :]
            ends = tuple(s for s in after if isinstance(s, (ir.ReduceBuffer, ir.StreamingStore)))
            general_body = tuple(s for s in after if s not in ends)
            small_angle_body = ir.replaced(
                general_body, ir.Strip, lambda strip: (replace(strip, small_angles=True),)
            )
            return (*result, statement, ir.SelectByAngles(small_angle_body, general_body), *ends)
        inner = {name: _with_selections(part) for name, part in ir.bodies(statement)}
        result += (replace(statement, **inner) if inner else statement,)
    return result
