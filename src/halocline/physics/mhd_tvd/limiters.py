"""Limiters: one number of two neighbouring ones, so that no new extremum comes up.

Each is 0 where the signs of both differ, and commutes. β, from 1 to 2, is how steep a result may be; for
β = 1 both are minmod, the lesser one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from halocline.lang.expression import Expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import where

Limiter = Callable[[Expr, Expr, Expr], Expr]


def sweby(a: Expr, b: Expr, beta: Expr) -> Expr:
    """The greater one, at most β times the lesser: superbee for β = 2 (Mendygral et al. 2017, Equation A7).

    It makes steps steep, and steps of long waves too.
    """
    size_a, size_b = magnitude(a), magnitude(b)
    less, more = where(size_a < size_b, size_a, size_b), where(size_a < size_b, size_b, size_a)
    limited = where(beta * less < more, beta * less, more)
    return _signed(a, b, limited)


def central(a: Expr, b: Expr, beta: Expr) -> Expr:
    """The mean of both, at most β times the lesser (van Leer, J. Comput. Phys. 23 (1977), 276, for β = 2).

    Where the solution is smooth it is the mean, so that waves keep their form.
    """
    size_a, size_b = magnitude(a), magnitude(b)
    most, mean = beta * where(size_a < size_b, size_a, size_b), 0.5 * magnitude(a + b)
    return _signed(a, b, where(most < mean, most, mean))


def _signed(a: Expr, b: Expr, size: Expr) -> Expr:
    """A size with the sign that both have."""
    chosen: Expr = where(a * b > 0.0, where(a > 0.0, size, -size), 0.0)
    return chosen


LIMITERS: Mapping[str, Limiter] = {"central": central, "sweby": sweby}
