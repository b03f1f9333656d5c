"""A test for symmetry with two random vectors, of operators whose formula does not show it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from halocline.lang.expression import Expr
from halocline.lang.functions import random
from halocline.lang.grid import Field
from halocline.lang.program import own_name, own_scalars, program
from halocline.lang.reductions import dot
from halocline.run.engine.prepared import prepare
from halocline.run.fields.fields import Fields

SYMMETRIC = {"float64": 1e-13, "float32": 1e-5}  # rounding errors of the two products, over their scale


@program
def products(A: Callable[[Any], Expr], x: Field) -> None:
    """Form (A r, p), (r, A p) and the squared norms of A r and p for two random vectors.

    The vectors are those of the solvers, which hold nothing before a solve.
    """
    r, p = x.like("r p", homogeneous=True)
    left, right, image, length = own_scalars("left right image length")
    number = x.grid.cell_number(x.staggered)
    r.set(random(1, index=number) - 0.5)
    p.set(random(2, index=number) - 0.5)
    left.set(dot(A(r), p))
    right.set(dot(r, A(p)))
    image.set(dot(A(r), A(r)))
    length.set(dot(p, p))


class Probe:
    """The test, compiled and planned once; all ranks make and use it.

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

    def asymmetry(self) -> str | None:
        """Describe the difference of the two products; None where rounding explains it."""
        scalars = self._products.run(self._fields.values).scalars
        left, right, image, length = (scalars[own_name(n)] for n in ("left", "right", "image", "length"))
        scale = math.sqrt(image * length)
        if abs(left - right) <= SYMMETRIC[self._dtype] * scale:
            return None
        return f"for random vectors x and y, (A x, y) is {left:.9g}, but (x, A y) is {right:.9g}"
