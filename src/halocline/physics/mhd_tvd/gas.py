"""States of an ideal, magnetised gas, and the fluxes of its conserved quantities.

P. J. Mendygral et al., WOMBAT: a scalable and high-performance astrophysical magnetohydrodynamics code, ApJS
228 (2017), 23, Equations 6 to 12. Units are without 4π.

A state next to a face is stored in the frame of the face. `Normal` contains velocity and field along the
normal first, then along the next two axes in cyclic order (x y z x y). Therefore one set of formulas serves
all axes.

If a problem is mirrored or rotated to the next axis, its result is mirrored or rotated bit for bit. For this
purpose, `ordered_sum` rounds each product of a sum separately. Otherwise a compiler could fuse one of the
products into a multiply-add, and the choice of the product would depend on names in the formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from halocline.lang.expression import Expr
from halocline.lang.functions import sqrt, symmetric_sum
from halocline.lang.grid import Vector
from halocline.lang.operators import shift
from halocline.lang.program import parameter


def ordered_sum(first: Expr, *more: Expr) -> Expr:
    """Return the sum of the terms in their order. Each product is rounded separately."""
    total = first
    for term in more:
        total = symmetric_sum(total, term)
    return total


def frame(axis: int) -> tuple[int, int, int]:
    """Return an axis and the next two axes in cyclic order."""
    return axis, (axis + 1) % 3, (axis + 2) % 3


class Normal(NamedTuple):
    """State on one side of a face: density, velocity, tangential magnetic field, and pressure.

    u is the velocity along the normal. The normal magnetic field is not included, since it is the same on
    both sides.
    """

    rho: Expr
    u: Expr
    v: Expr
    w: Expr
    By: Expr
    Bz: Expr
    p: Expr


class Flux(NamedTuple):
    """Fluxes through a face: of mass, momentum, tangential magnetic field, and energy."""

    rho: Expr
    mx: Expr
    my: Expr
    mz: Expr
    By: Expr
    Bz: Expr
    E: Expr


class Conserved(NamedTuple):
    """Mass, momentum and energy of a cell per unit volume, and its magnetic field B."""

    rho: Expr
    m: Vector
    E: Expr
    B: Vector


@dataclass(frozen=True)
class State:
    """Density, velocity, magnetic field and pressure of cells. Vectors have three components on all grids."""

    rho: Expr
    v: Vector
    B: Vector
    p: Expr

    def along(self, axis: int) -> Normal:
        """Return the state in the frame of an axis."""
        n, t, s = frame(axis)
        return Normal(self.rho, self.v[n], self.v[t], self.v[s], self.B[t], self.B[s], self.p)


def squared(vector: Sequence[Expr]) -> Expr:
    """Return the squared length of a vector. Its bits do not depend on the order of the components."""
    total: Expr = symmetric_sum(*(c * c for c in vector))
    return total


def heat(U: Conserved) -> Expr:
    """Return the thermal energy per volume: total energy minus kinetic and magnetic energy."""
    return U.E - 0.5 * ordered_sum(squared(U.m) / U.rho, squared(U.B))


def pressure(U: Conserved) -> Expr:
    """Return the pressure (Equation 9)."""
    return (parameter("gamma") - 1.0) * heat(U)


def energy(rho: Expr, v: Vector, B: Vector, p: Expr) -> Expr:
    """Return the energy per volume (Equation 9)."""
    return p / (parameter("gamma") - 1.0) + 0.5 * ordered_sum(rho * squared(v), squared(B))


def fast_speed(state: State, axis: int) -> Expr:
    """Return the speed of fast magnetosonic waves along an axis (Equation 10)."""
    return fast(state.along(axis), state.B[axis])


def fast(w: Normal, bn: Expr) -> Expr:
    """Return the fast magnetosonic speed of a state next to a face with the normal field `bn`."""
    inverse = 1.0 / w.rho
    a2, along = parameter("gamma") * w.p * inverse, bn * bn * inverse
    across = ordered_sum(w.By * w.By, w.Bz * w.Bz) * inverse
    # the inner root is that of (a² + b²)² - 4 a² b_x², in a form without cancellation
    difference = a2 - along - across
    return sqrt(
        0.5 * ordered_sum(a2, along, across, sqrt(ordered_sum(difference * difference, 4.0 * a2 * across)))
    )


def conserved(w: Normal, bn: Expr) -> Flux:
    """Return the conserved quantities of a state, in the order of their fluxes in `flux`."""
    motion = ordered_sum(w.u * w.u, w.v * w.v, w.w * w.w)
    field = ordered_sum(bn * bn, w.By * w.By, w.Bz * w.Bz)
    E = w.p / (parameter("gamma") - 1.0) + 0.5 * ordered_sum(w.rho * motion, field)
    return Flux(w.rho, w.rho * w.u, w.rho * w.v, w.rho * w.w, w.By, w.Bz, E)


def flux(w: Normal, bn: Expr) -> Flux:
    """Return the flux of a state through a face with the normal field `bn` (Equation 7)."""
    mass = w.rho * w.u
    across = ordered_sum(w.By * w.By, w.Bz * w.Bz)
    total = w.p + 0.5 * (across - bn * bn)  # total pressure minus the tension along the normal
    motion = ordered_sum(w.u * w.u, w.v * w.v, w.w * w.w)
    gamma = parameter("gamma")
    heat = ordered_sum(gamma / (gamma - 1.0) * w.p, 0.5 * w.rho * motion, across) * w.u
    return Flux(
        mass,
        mass * w.u + total,
        mass * w.v - bn * w.By,
        mass * w.w - bn * w.Bz,
        w.By * w.u - bn * w.v,
        w.Bz * w.u - bn * w.w,
        heat - bn * ordered_sum(w.By * w.v, w.Bz * w.w),
    )


def face_states(state: State, axis: int) -> tuple[Normal, Normal]:
    """Return the states of the cells below and above each face across an axis."""
    w = state.along(axis)
    return Normal(*(shift(c, axis, -1) for c in w)), Normal(*(shift(c, axis, 0) for c in w))
