"""Where the flow converges: what shock viscosity is proportional to."""

from __future__ import annotations

from math import comb

from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import maximum, minimum
from halocline.lang.grid import Vector
from halocline.lang.operators import div, shift
from halocline.lang.program import stage

REACH = 2  # cells on either side whose greatest convergence counts
WIDTH = 3  # cells on either side of the average


def shock_profile(u: Vector) -> Expr:
    """⟨max(-∇·u)₊⟩ min(h)²: the greatest convergence of five neighbours along each axis, smoothed.

    As in the Pencil Code, where the bulk viscosity is ν_shock min(h)² times the greatest convergence of five
    neighbours, smoothed. The average here has the weights of a binomial along each axis,
    (1, 6, 15, 20, 15, 6, 1) / 64.
    """
    grid = u[0].grid
    axes = range(grid.ndim)
    profile = stage(maximum(-div(u), 0.0), "convergence")
    for axis in axes:
        profile = stage(maximum(*(shift(profile, axis, by) for by in range(-REACH, REACH + 1))))
    weights = [comb(2 * WIDTH, k) / 4**WIDTH for k in range(2 * WIDTH + 1)]
    for axis in axes:
        parts = [w * shift(profile, axis, by) for by, w in enumerate(weights, -WIDTH)]
        profile = stage(sum(parts[1:], parts[0]))
    h = grid.h(0)
    for axis in axes[1:]:
        h = minimum(h, grid.h(axis))
    return as_expr(profile * (h * h))
