"""The true residual b - A x of a solution, beside the one that a method carries along.

Conjugate gradients update their residual by a recursion and never look at b - A x again. In exact arithmetic
the two are equal; in floating point every iteration adds a rounding error to their difference that no later
one takes away. So the recursion falls without end, while the true residual stays near eps ||A|| max ||x_k||
(Greenbaum, SIAM J. Matrix Anal. Appl. 18, 1997, 535-551).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from halocline.lang.boundary import with_wall_values
from halocline.lang.expression import Expr, placed
from halocline.lang.grid import Field
from halocline.lang.program import labelled, own_name, own_scalars, program
from halocline.lang.reductions import dot
from halocline.run.engine.prepare import prepare
from halocline.run.fields.fields import Fields

# By the triangle inequality the two differ by more than the tolerance where the recursion fulfils it and the
# true residual is more than twice as large. Rounding errors, which further iterations cannot mend, are the
# larger part then.
MARGIN = 2.0


@program
def true_residual(A: Callable[[Any], Expr], x: Field, b: Any) -> None:
    """The squared norm of b - A x: a sum that no order changes, and no vector of memory."""
    (square,) = own_scalars("square")
    correction = {side: condition.homogeneous() for side, condition in x.boundary.items()}
    remainder = placed(with_wall_values(x, b - A(x), correction), x.staggered)
    with labelled("squared norm of the true residual b - A(x)"):
        square.set(dot(remainder, remainder))


class TrueResidual:
    """Norm of b - A x of a linear problem, compiled and planned once; all ranks make and use it.

    Parameters
    ----------
    fields : Fields
    A : callable
        The operator.
    x : Field
        The unknown.
    b : field or expression
        The right-hand side. It must not read the unknown.
    """

    def __init__(self, fields: Fields, A: Callable[[Any], Expr], x: Field, b: Any) -> None:
        self._fields = fields
        self._norm = prepare(fields.store, true_residual.trace(A, x, b), fields.values)

    def norm(self) -> float:
        """The Euclidean norm over all cells, the same on all ranks; takes one application of A."""
        return math.sqrt(self._norm.run(self._fields.values).scalars[own_name("square")])


def reachable(relative: float) -> float:
    """Return a tolerance that a solve can reach where the last one ended at this relative true residual.

    It is the relative true residual, rounded up to one digit.

    Examples
    --------
    >>> reachable(2.1e-12)
    3e-12
    """
    power = math.floor(math.log10(relative))
    return float(f"{math.ceil(relative / 10.0**power)}e{power}")
