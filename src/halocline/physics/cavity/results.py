"""Nusselt numbers and velocities of a cavity, as expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from halocline.lang.expression import Expr, as_expr, binary, index
from halocline.lang.functions import where
from halocline.lang.operators import derivative, shift
from halocline.lang.program import parameter
from halocline.lang.reductions import max as greatest
from halocline.lang.reductions import min as least
from halocline.lang.reductions import sum as total
from halocline.physics.cavity.equations import Cavity


class Results:
    """What is known of the flow from the literature, as numbers over the grid.

    Lengths are in units of the width between hot and cold wall, velocities in α over that, heat fluxes in
    those of conduction at rest.
    """

    def __init__(self, cavity: Cavity) -> None:
        self.cavity, self.grid = cavity, cavity.grid

    def numbers(self) -> dict[str, Expr]:
        """By name: nusselt_hot, nusselt_mid, u_max, v_max; on two axes nusselt_max and nusselt_min too."""
        grid, L, alpha = self.grid, self.grid.extent[0], parameter("alpha")
        up = grid.ndim - 1
        wall, rest = self.at_wall(), math.inf
        on_wall = self._is(0, 0)
        found = {
            "nusselt_hot": total(where(on_wall, wall * self._share(range(1, grid.ndim)), 0.0)),
            "nusselt_mid": self.halfway(),
            "u_max": greatest(self._peaks(self._between(0, self.cavity.V[0]), 0)) * (L / alpha),
            "v_max": greatest(self._peaks(self._between(up, self.cavity.V[up]), up)) * (L / alpha),
        }
        if grid.ndim == 2:
            found["nusselt_max"] = greatest(where(on_wall, wall, -rest))
            found["nusselt_min"] = least(where(on_wall, wall, rest))
        return found

    def at_wall(self) -> Expr:
        """The heat flux through the hot wall, at its first points: minus the slope at the wall of the cubic
        through the wall and three points; (11 T_w - 18 T_1 + 9 T_2 - 2 T_3) / 6Δx where they are even.

        Of third order: in a thin layer the next lower formula adds more than the error of the flow.
        """
        T = self.cavity.T.expr
        a = self._from_wall(0)
        b, c = shift(a, 0), shift(a, 0, 2)
        scale = self.grid.extent[0] / (parameter("T_hot") - parameter("T_cold"))

        def weight(own: Expr, one: Expr, other: Expr) -> Expr:
            return one * other / (own * (one - own) * (other - own))

        wall = (1.0 / a + 1.0 / b + 1.0 / c) * parameter("T_hot")
        inside = weight(a, b, c) * T + weight(b, a, c) * shift(T, 0) + weight(c, a, b) * shift(T, 0, 2)
        return as_expr((wall - inside) * scale)

    def halfway(self) -> Expr:
        """The heat flux halfway between the hot and the cold wall, over the plane.

        What is carried is nothing on the walls beside the plane, what is conducted has no slope there.
        """
        T, u, axes = self.cavity.T, self.cavity.V[0], range(1, self.grid.ndim)
        even = as_expr(1.0)
        for axis in axes:
            even = even * (self.cavity.spacing(axis) / self.grid.extent[axis])
        carried = u * (T - parameter("T_mean")) / parameter("alpha") * even
        conducted = derivative(T, 0) * self._share(axes)
        scale = self.grid.extent[0] / (parameter("T_hot") - parameter("T_cold"))
        return total(self._halfway(0) * (carried - conducted) * scale)

    def _from_wall(self, axis: int) -> Expr:
        """How far points are from the lower wall."""
        return as_expr(self.cavity.T.coordinates[axis] - self.grid.origin[axis])

    def _is(self, axis: int, place: float) -> Expr:
        """Whether a point is the one of this number along an axis."""
        return binary("eq", index(self.grid, axis), place)

    def _last(self, axis: int, before: float) -> Expr:
        """Whether a point is this far before the last one along an axis."""
        return binary("eq", index(self.grid, axis) + before, self.grid.cells(axis) - 1.0)

    def _halfway(self, axis: int) -> Expr:
        """1 at points halfway between two walls; ½ at both where they lie beside the middle."""
        apart = index(self.grid, axis) * 2.0 - (self.grid.cells(axis) - 1.0)
        inside = (apart <= 1.0) & (apart >= -1.0)
        found: Expr = where(inside, where(binary("eq", apart, 0.0), 1.0, 0.5), 0.0)
        return found

    def _between(self, axis: int, f: Expr | float) -> Expr:
        """What a quantity is halfway between two walls; elsewhere nothing, as beside these."""
        apart = index(self.grid, axis) * 2.0 - (self.grid.cells(axis) - 1.0)
        here = as_expr(f)
        middle = where(binary("eq", apart, 0.0), here, 0.5 * (here + shift(here, axis)))
        found: Expr = where(binary("eq", apart, 0.0) | binary("eq", apart, -1.0), middle, 0.0)
        return found

    def _peaks(self, f: Expr, across: int) -> Expr:
        """At points where a quantity on a plane is greater than beside them, the greatest value of the
        parabolas through it and those, along each axis of the plane; elsewhere itself.

        The greatest value at points alone would come nearer to that between them in fits and starts.
        """
        peak = f
        for axis in range(self.grid.ndim):
            if axis != across:
                before, after = shift(f, axis, -1), shift(f, axis)
                bend = 2.0 * f - (before + after)
                inside = (f >= before) & (f >= after) & (bend > 0.0)
                rise = (after - before) * (after - before) / (8.0 * where(inside, bend, 1.0))
                peak = peak + where(inside, rise, 0.0)
        return peak

    def _share(self, axes: Sequence[int]) -> Expr:
        """The share of a point of the integral from wall to wall along these axes, by trapezia.

        On the walls themselves lies what no flux through them leaves there: of the parabola without slope
        through two points, (b² q_1 - a² q_2) / (b² - a²) where they are at a and b; (4 q_1 - q_2) / 3 where
        they are even.
        """
        share = as_expr(1.0)
        for axis in axes:
            below = self._from_wall(axis)
            above = self.grid.extent[axis] - below
            width = self.cavity.spacing(axis)
            # at the second point from a wall, the first one is one before it
            for away, outward, near, next_to in (
                (below, -1, self._is(axis, 0.0), self._is(axis, 1.0)),
                (above, 1, self._last(axis, 0.0), self._last(axis, 1.0)),
            ):
                further, closer = shift(away, axis, -outward), shift(away, axis, outward)
                first = 0.5 * away * further * further / (further * further - away * away)
                second = 0.5 * closer * closer * closer / (away * away - closer * closer)
                width = width + where(near, first, where(next_to, -second, 0.0))
            share = share * (width / self.grid.extent[axis])
        return share
