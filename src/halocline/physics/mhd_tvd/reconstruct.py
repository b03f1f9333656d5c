"""States on both sides of a face, of second order in space and time, and the fluxes that solvers make.

The scheme is Hancock's (van Leer, SIAM J. Sci. Stat. Comput. 5 (1984), 1; Toro 2009, Section 14.4) in
primitive quantities: each cell has limited slopes, and both of its sides move by half a step along the axis.

Limiters: one number of two neighbouring ones, so that no new extremum comes up.

Each is 0 where the signs of both differ, and commutes. β, from 1 to 2, is how steep a result may be; for
β = 1 both are minmod, the lesser one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from halocline.lang.expression import Expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import symmetric_sum, where
from halocline.lang.operators import shift
from halocline.lang.program import parameter, stage
from halocline.physics.mhd_tvd.gas import Flux, Normal, State

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
    """Return a slope, limited to the greatest one; 0 where the signs of both differences differ."""
    chosen: Expr = where(a * b > 0.0, where(magnitude(most) < magnitude(wanted), most, wanted), 0.0)
    return chosen


LIMITERS: Mapping[str, Limiter] = {"central": central, "sweby": sweby}


def states(
    state: State, bn_cells: Expr, axis: int, ratio: Expr, name: str, limit: Limiter = central
) -> tuple[Normal, Normal]:
    """Below and above the lower face of each cell, in the middle of a step of `ratio` = Δt/Δx.

    Where the density or pressure of a side would not be positive, the whole side is as the cell is. How steep
    slopes may be is the parameter "limiter", β.

    Parameters
    ----------
    state : State
        Of the cells.
    bn_cells : Expr
        The field of the cells along the axis.
    axis : int
    ratio : Expr
    name : str
        Of the stages.
    limit : callable
        What makes one slope of the differences to both neighbours; see `LIMITERS`.

    Returns
    -------
    tuple of Normal
    """
    w = state.along(axis)
    beta = parameter("limiter")
    slopes = Normal(*(limit(c - shift(c, axis, -1), shift(c, axis) - c, beta) for c in w))
    half = 0.5 * ratio
    middle = Normal(*(c - half * d for c, d in zip(w, _changes(w, slopes, bn_cells), strict=True)))

    def side(sign: float, label: str) -> Normal:
        found = Normal(*(c + sign * s for c, s in zip(middle, slopes, strict=True)))
        sound = (found.rho > 0.0) & (found.p > 0.0)
        kept = (where(sound, new, c) for new, c in zip(found, w, strict=True))
        return Normal(*(c.expr for c in stage(tuple(kept), f"{name}_{label}", storage="patch")))

    low, high = side(-0.5, "low"), side(0.5, "high")
    return Normal(*(shift(c, axis, -1) for c in high)), low


def _changes(w: Normal, d: Normal, bn: Expr) -> Normal:
    """A · Δw: how primitive quantities with the slopes `d` change, per Δt/Δx and with the opposite sign.

    Of the equations of ideal magnetohydrodynamics along an axis on which the field does not vary.
    """
    inverse = 1.0 / w.rho
    pull = bn * inverse
    push = d.p + symmetric_sum(w.By * d.By, w.Bz * d.Bz)
    squeezed = parameter("gamma") * w.p
    return Normal(
        symmetric_sum(w.u * d.rho, w.rho * d.u),
        symmetric_sum(w.u * d.u, push * inverse),
        w.u * d.v - pull * d.By,
        w.u * d.w - pull * d.Bz,
        symmetric_sum(w.u * d.By, w.By * d.u) - bn * d.v,
        symmetric_sum(w.u * d.Bz, w.Bz * d.u) - bn * d.w,
        symmetric_sum(w.u * d.p, squeezed * d.u),
    )


def plm(solver: Callable[[Normal, Normal, Expr], Flux]) -> Callable[..., Flux]:
    """The flux that a solver of Riemann problems makes of limited slopes, for the lower face of each cell.

    Parameters
    ----------
    solver : callable
        One of `halocline.physics.mhd_tvd.riemann.RIEMANN`.

    Returns
    -------
    callable
        With the arguments of `halocline.physics.mhd_tvd.riemann.mhdtvd`.
    """

    def through(state: State, bn: Expr, axis: int, ratio: Expr, name: str, limit: Limiter = central) -> Flux:
        left, right = states(state, state.B[axis], axis, ratio, name, limit)
        return solver(left, right, bn)

    return through
