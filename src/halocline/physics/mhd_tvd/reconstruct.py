"""Second-order reconstruction of the states on both sides of a face, for fluxes of Riemann solvers.

The scheme is Hancock's (van Leer, SIAM J. Sci. Stat. Comput. 5 (1984), 1; Toro 2009, Section 14.4) in
primitive quantities. Each cell has limited slopes, and the states on both of its sides advance by half a step
along the axis.

A limiter computes one slope from the differences to both neighbours, so that no new extremum arises. It is
commutative, and returns 0 if the differences have opposite signs. The parameter β, from 1 to 2, bounds the
steepness. For β = 1, all limiters are minmod, which returns the smaller difference.
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
    """Return the larger difference, limited to β times the smaller one (Mendygral et al. 2017, Equation A7).

    For β = 2, this limiter is superbee. It keeps jumps steep, but also turns long waves into steps.
    """
    in_order = magnitude(a) < magnitude(b)
    smaller, larger = where(in_order, a, b), where(in_order, b, a)
    return _limited(a, b, beta * smaller, larger)


def central(a: Expr, b: Expr, beta: Expr) -> Expr:
    """Return the mean of both differences, limited to β times the smaller difference.

    For β = 2, this is the limiter of van Leer, J. Comput. Phys. 23 (1977), 276. In smooth solutions, the
    result is the mean, so waves keep their shape.
    """
    smaller = where(magnitude(a) < magnitude(b), a, b)
    return _limited(a, b, beta * smaller, 0.5 * (a + b))


def _limited(a: Expr, b: Expr, bound: Expr, slope: Expr) -> Expr:
    """Return a slope, limited to a maximum; 0 if the signs of both differences differ."""
    chosen: Expr = where(a * b > 0.0, where(magnitude(bound) < magnitude(slope), bound, slope), 0.0)
    return chosen


LIMITERS: Mapping[str, Limiter] = {"central": central, "sweby": sweby}


def states(
    state: State, bn_cells: Expr, axis: int, ratio: Expr, name: str, limit: Limiter = central
) -> tuple[Normal, Normal]:
    """Return the states below and above the lower face of each cell, in the middle of a step.

    If the density or pressure on a side would not be positive, the unreconstructed state of the cell is used
    for this side. The parameter "limiter" (β) bounds the slopes.

    Parameters
    ----------
    state : State
        State of the cells.
    bn_cells : Expr
        Magnetic field of the cells along the axis.
    axis : int
        Axis across which the faces lie.
    ratio : Expr
        Δt/Δx.
    name : str
        Prefix of the names of the stages.
    limit : callable
        Limiter, which computes one slope from the differences to both neighbours; see `LIMITERS`.

    Returns
    -------
    tuple of Normal
        States below and above the face.
    """
    w = state.along(axis)
    beta = parameter("limiter")
    slopes = Normal(*(limit(c - shift(c, axis, -1), shift(c, axis) - c, beta) for c in w))
    half = 0.5 * ratio
    middle = Normal(*(c - half * d for c, d in zip(w, _changes(w, slopes, bn_cells), strict=True)))

    def side(sign: float, label: str) -> Normal:
        candidate = Normal(*(c + sign * s for c, s in zip(middle, slopes, strict=True)))
        is_positive = (candidate.rho > 0.0) & (candidate.p > 0.0)
        chosen = (where(is_positive, new, c) for new, c in zip(candidate, w, strict=True))
        return Normal(*(c.expr for c in stage(tuple(chosen), f"{name}_{label}", storage="patch")))

    low, high = side(-0.5, "low"), side(0.5, "high")
    return Normal(*(shift(c, axis, -1) for c in high)), low


def _changes(w: Normal, d: Normal, bn: Expr) -> Normal:
    """Return A · Δw for the slopes Δw = `d`: the negative change of primitive quantities per Δt/Δx.

    A is the matrix of ideal magnetohydrodynamics along an axis. The field component along this axis is
    uniform.
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
    """Return the function that applies a Riemann solver to states with limited slopes.

    Parameters
    ----------
    solver : callable
        One of `halocline.physics.mhd_tvd.riemann.RIEMANN`.

    Returns
    -------
    callable
        Function with the arguments of `halocline.physics.mhd_tvd.riemann.mhdtvd`, which returns the flux
        through the lower face of each cell.
    """

    def through(state: State, bn: Expr, axis: int, ratio: Expr, name: str, limit: Limiter = central) -> Flux:
        left, right = states(state, state.B[axis], axis, ratio, name, limit)
        return solver(left, right, bn)

    return through
