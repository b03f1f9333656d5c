"""Conservative exchange around cells that a step leaves without mass or heat.

Even a step of first order can leave a cell with less energy than its motion and field have: the field of a
cell comes from forces on edges, not from the fluxes that bring its energy. To raise the pressure there would
add energy. Such a cell exchanges heat with its neighbours instead, and one without mass exchanges mass,
momentum and energy: sums over the grid stay what they are.
"""

from __future__ import annotations

from halocline.lang.expression import Expr, as_expr, index
from halocline.lang.functions import symmetric_sum, where
from halocline.lang.grid import Field, Vector
from halocline.lang.operators import shift
from halocline.lang.program import Scalar, assign, loop, when
from halocline.lang.reductions import count
from halocline.physics.mhd_tvd.flags import beside, flagged
from halocline.physics.mhd_tvd.gas import Conserved, heat, squared
from halocline.physics.mhd_tvd.transport import at_cells

PASSES = 100  # most in a step; cells that still lack something are left to the floors
SELDOM = 1e-3  # share of the steps that are expected to need passes


def lacking(U: Conserved) -> Expr:
    """Return the condition that a cell has no mass or no heat; false where these are NaN."""
    return (U.rho <= 0.0) | (heat(U) <= 0.0)


def mix(rho: Field, m: Vector, E: Field, b: Vector, cells: Scalar) -> None:
    """Record passes of exchange, until no cell is `lacking`.

    A pass makes each cell without heat the mean of itself and its 2d neighbours in heat, and each cell
    without mass their mean in mass, momentum, and energy without that of the field. The neighbours lose what
    it gains; nothing passes through walls. Every cell becomes a convex combination of cells, so that no pass
    lowers the least density. Heat is a concave function of mass, momentum and energy where density is
    positive: so no pass lowers the least heat around cells with mass. A neighbour of a cell without mass may
    lose all of its heat, and is treated in the next pass.

    Parameters
    ----------
    rho, m, E : Field, Vector, Field
        Density, momentum and energy of cells.
    b : Vector
        The field, on faces along the axes of the grid, in cells along others. It stays as it is.
    cells : Scalar
        Number of lacking cells, which each pass counts again.
    """
    grid, axes = rho.grid, rho.grid.ndim
    share = 1.0 / (2 * axes + 1)
    with when(cells > 0.0, often=SELDOM), loop(until=cells <= 0.0, limit=PASSES):
        U = Conserved(rho.expr, Vector(c.expr for c in m), E.expr, at_cells(b, axes))
        thin = flagged(U.rho <= 0.0, "thin")
        cold = flagged((U.rho > 0.0) & (heat(U) <= 0.0), "cold")
        free = U.E - 0.5 * squared(U.B)

        def through(value: Expr, axis: int) -> Expr:
            carried: Expr = share * (shift(value, axis, -1) - value)
            return carried

        def mixed(old: Expr, value: Expr, spare: Expr | None = None) -> Expr:
            """Exchange `value` beside thin cells, and `spare` beside cold ones."""
            gains = []
            for a in range(axes):
                other = as_expr(0.0)
                if spare is not None:
                    other = where(beside(cold, a), through(spare, a), 0.0)
                flux = where(beside(thin, a), through(value, a), other)
                lower, upper = flux, shift(flux, a)
                if not grid.periodic[a]:
                    cell = index(grid, a)
                    lower = where(cell > 0.0, lower, 0.0)
                    upper = where(cell < grid.cells(a) - 1.0, upper, 0.0)
                gains.append(lower - upper)
            total: Expr = old + symmetric_sum(*gains)
            return total

        new = Conserved(
            mixed(U.rho, U.rho),
            Vector(mixed(c, c) for c in U.m),
            mixed(U.E, free, heat(U)),
            U.B,
        )
        cells.set(count(lacking(new)))
        assign(dict(zip((rho, *m, E), (new.rho, *new.m, new.E), strict=True)))
