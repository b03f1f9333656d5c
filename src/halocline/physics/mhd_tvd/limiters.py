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
    in_order = magnitude(a) < magnitude(b)
    less, more = where(in_order, a, b), where(in_order, b, a)
    return _limited(a, b, beta * less, more)


def central(a: Expr, b: Expr, beta: Expr) -> Expr:
    """The mean of both, at most β times the lesser (van Leer, J. Comput. Phys. 23 (1977), 276, for β = 2).

    Where the solution is smooth it is the mean, so that waves keep their form.
    """
    less = where(magnitude(a) < magnitude(b), a, b)
    return _limited(a, b, beta * less, 0.5 * (a + b))


def _limited(a: Expr, b: Expr, most: Expr, wanted: Expr) -> Expr:
    """What is wanted, but no more than the most; 0 where the signs of both numbers differ."""
    chosen: Expr = where(a * b > 0.0, where(magnitude(most) < magnitude(wanted), most, wanted), 0.0)
    return chosen


LIMITERS: Mapping[str, Limiter] = {"central": central, "sweby": sweby}
