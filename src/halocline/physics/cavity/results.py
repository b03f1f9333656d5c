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
            "u_max": greatest(self._between(0, self.cavity.V[0])) * (L / alpha),
            "v_max": greatest(self._between(up, self.cavity.V[up])) * (L / alpha),
        }
        if grid.ndim == 2:
            found["nusselt_max"] = greatest(where(on_wall, wall, -rest))
            found["nusselt_min"] = least(where(on_wall, wall, rest))
        return found

    def at_wall(self) -> Expr:
        """The heat flux through the hot wall, at its first points: (11 T_w - 18 T_1 + 9 T_2 - 2 T_3) / 6Δx.

        Of third order: in a thin layer the next lower formula adds more than the error of the flow.
        """
        T, width = self.cavity.T.expr, self.grid.extent[0]
        scale = width / (parameter("T_hot") - parameter("T_cold")) / (6.0 * self.grid.h(0))
        inside = 18.0 * T - 9.0 * shift(T, 0) + 2.0 * shift(T, 0, 2)
        return as_expr(11.0 * parameter("T_hot") - inside) * scale

    def halfway(self) -> Expr:
        """The heat flux halfway between the hot and the cold wall, over the plane.

        What is carried is nothing on the walls beside the plane, what is conducted has no slope there.
        """
        T, u, axes = self.cavity.T, self.cavity.V[0], range(1, self.grid.ndim)
        even = as_expr(1.0)
        for axis in axes:
            even = even * (self.grid.h(axis) / self.grid.extent[axis])
        carried = u * (T - parameter("T_mean")) / parameter("alpha") * even
        conducted = derivative(T, 0) * self._share(axes)
        scale = self.grid.extent[0] / (parameter("T_hot") - parameter("T_cold"))
        return total(self._halfway(0) * (carried - conducted) * scale)

    def _is(self, axis: int, place: float) -> Expr:
        """Whether a point is the one of this number along an axis."""
        return binary("eq", index(self.grid, axis), place)

    def _last(self, axis: int, before: float) -> Expr:
        """Whether a point is so many before the last along an axis."""
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

    def _share(self, axes: Sequence[int]) -> Expr:
        """The share of a point of the integral from wall to wall along these axes, by trapezia.

        On the walls themselves lies what no flux through them leaves there, (4 q_1 - q_2) / 3.
        """
        share = as_expr(1.0)
        for axis in axes:
            near = self._is(axis, 0.0) | self._last(axis, 0.0)
            next_to = self._is(axis, 1.0) | self._last(axis, 1.0)
            weight = where(near, 5.0 / 3.0, where(next_to, 5.0 / 6.0, 1.0))
            share = share * (weight * (self.grid.h(axis) / self.grid.extent[axis]))
        return share
