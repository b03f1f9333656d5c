"""Tests of an operator for symmetry and a null space by products, where its formula does not show them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from halocline.lang.boundary import with_wall_values
from halocline.lang.expression import Expr, cast, placed
from halocline.lang.functions import random
from halocline.lang.grid import Field
from halocline.lang.program import own_name, own_scalars, program, stage
from halocline.lang.reductions import dot
from halocline.lang.reductions import max as largest_of
from halocline.run.engine.prepare import prepare
from halocline.run.fields.fields import Fields
from halocline.solvers.matrix import ROUNDING

SYMMETRIC = {"float64": 1e-13, "float32": 1e-5}  # rounding errors of the two products, over their scale


@program
def products(A: Callable[[Any], Expr], x: Field) -> None:
    """Form products of the operator with two random vectors r and p, and with the constant 1.

    They are (A r, p), (r, A p), the squared norms of A r and p, and the largest entries of A r and A 1. The
    vectors are those of the solvers, which hold nothing before a solve. A 1 is formed in float64: in float32
    its rounding errors can be larger than a small shift.
    """
    r, p = x.like("r p", homogeneous=True)
    left, right, image, length, size, of_constants = own_scalars("left right image length size of_constants")
    correction = {side: condition.homogeneous() for side, condition in x.boundary.items()}

    def inside(value: Expr) -> Expr:
        return placed(with_wall_values(x, value, correction), x.staggered)

    number = x.grid.cell_number(x.staggered)
    r.set(random(1, index=number) - 0.5)
    p.set(random(2, index=number) - 0.5)
    left.set(dot(A(r), p))
    right.set(dot(r, A(p)))
    image.set(dot(A(r), A(r)))
    length.set(dot(p, p))
    size.set(largest_of(abs(inside(A(r)))))
    p.set(1.0)
    constant = p if x.dtype == "float64" else stage(cast(p.expr, "float64"), "constant", storage="inline")
    of_constants.set(largest_of(abs(inside(A(constant)))))


@dataclass(frozen=True)
class ProbedProperties:
    """Properties of an operator for the present values of its parameters and fields.

    Attributes
    ----------
    asymmetry : str or None
        Description of the difference of the two products; None where rounding explains the difference.
    singular : bool
        True where the operator takes constants to zero, up to rounding.
    """

    asymmetry: str | None
    singular: bool


class Probe:
    """Test of an operator, compiled and planned once; all ranks make and use it.

    Parameters
    ----------
    fields : Fields
    A : callable
        The operator.
    x : Field
        The unknown.
    """

    def __init__(self, fields: Fields, A: Callable[[Any], Expr], x: Field) -> None:
        self._fields, self._dtype = fields, x.dtype
        self._products = prepare(fields.store, products.trace(A, x), fields.values)
        schedule = self._products.schedule
        names, grid = {info.name for info in schedule.fields}, x.grid
        self._reads = [
            f for f in grid.fields.values() if f.name in names and f is not x and not grid.is_own(f)
        ]
        self._scalars = [name for name in fields.parameters if name in schedule.scalars]
        self._last: tuple[tuple[float, ...], ProbedProperties] | None = None

    def properties(self) -> ProbedProperties:
        """Return the properties; products are formed only where parameters or fields have changed."""
        fields = self._fields
        state = (
            *(fields.parameters[name] for name in self._scalars),
            *(fields.changes(f) for f in self._reads),
        )
        # a view of a field may have been taken on one rank
        changed = any(fields.domain.comm.allgather(self._last is None or self._last[0] != state))
        if self._last is None or changed:
            self._last = state, self._measure()
        return self._last[1]

    def _measure(self) -> ProbedProperties:
        scalars = self._products.run(self._fields.values).scalars
        left, right, image, length, size, of_constants = (
            scalars[own_name(n)] for n in ("left", "right", "image", "length", "size", "of_constants")
        )
        scale, asymmetry = math.sqrt(image * length), None
        if not abs(left - right) <= SYMMETRIC[self._dtype] * scale:
            asymmetry = f"for random vectors x and y, (A x, y) is {left:.9g}, but (x, A y) is {right:.9g}"
        return ProbedProperties(asymmetry, of_constants <= ROUNDING * size)
