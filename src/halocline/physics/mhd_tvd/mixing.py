"""Conservative mixing of a cell with its neighbours, if a step leaves the cell without mass or heat.

After a first-order step, the total energy of a cell can still be less than its kinetic and magnetic energy.
The reason is that electromotive forces on edges change the field of the cell, but fluxes change its energy.

A higher pressure in such a cell would add energy. Therefore the cell is mixed with its neighbours: a cell
without heat receives heat, and a cell without mass receives mass, momentum and energy. Sums over the grid are
unchanged.
"""

from __future__ import annotations

from halocline.lang.expression import Expr, as_expr, index, round_to
from halocline.lang.functions import symmetric_sum, where
from halocline.lang.grid import Field, Vector
from halocline.lang.operators import shift
from halocline.lang.program import Scalar, assign, loop, when
from halocline.lang.reductions import count
from halocline.physics.mhd_tvd.flags import beside, flag_stage
from halocline.physics.mhd_tvd.gas import Conserved, heat, squared
from halocline.physics.mhd_tvd.transport import at_cells

PASSES = 100  # Maximum number of passes per step. Floors treat the cells that remain.
SELDOM = 1e-3  # Expected fraction of steps that need passes.


def lacks_mass_or_heat(U: Conserved) -> Expr:
    """Return the condition that a cell has no mass or no heat; false if the values are NaN."""
    return (U.rho <= 0.0) | (heat(U) <= 0.0)


def mix(rho: Field, m: Vector, E: Field, b: Vector, cells: Scalar) -> None:
    """Add a loop to the program that mixes cells with their neighbours until no cell lacks mass or heat.

    See `lacks_mass_or_heat` for the condition. If a cell has no heat, its heat becomes the mean over the cell
    and its face neighbours. If a cell has no mass, its mass, its momentum and its non-magnetic energy each
    become the mean over these cells. The neighbours lose the amount that the cell gains. Nothing is exchanged
    through walls.

    The new state of every cell is a convex combination of states, so no pass lowers the minimum density.
    Where the density is positive, heat is a concave function of mass, momentum and energy. Therefore, if a
    cell and its face neighbours have mass, a pass keeps the heat of the cell at or above their minimum heat.
    A neighbour of a cell without mass can lose all of its heat. Then the next pass mixes this neighbour.

    Parameters
    ----------
    rho, m, E : Field, Vector, Field
        Density, momentum and energy of cells.
    b : Vector
        Magnetic field, which is unchanged. Components along axes of the grid are on faces, all other
        components are in cells.
    cells : Scalar
        Number of cells that lack mass or heat. Each pass updates it.
    """
    grid, axes = rho.grid, rho.grid.ndim
    share = 1.0 / (2 * axes + 1)
    with when(cells > 0.0, often=SELDOM), loop(until=cells <= 0.0, limit=PASSES):
        U = Conserved(rho.expr, Vector(c.expr for c in m), E.expr, at_cells(b, axes))
        thin = flag_stage(U.rho <= 0.0, "thin")
        cold = flag_stage((U.rho > 0.0) & (heat(U) <= 0.0), "cold")
        hydro_energy = U.E - 0.5 * squared(U.B)

        def through(value: Expr, axis: int) -> Expr:
            carried: Expr = share * (shift(value, axis, -1) - value)
            return carried

        def mixed(old: Expr, value: Expr, spare: Expr | None = None) -> Expr:
            """Return `old` plus the exchanged `value` next to thin cells and `spare` next to cold cells."""
            gains = []
            for a in range(axes):
                other = as_expr(0.0)
                if spare is not None:
                    other = where(beside(cold, a), through(spare, a), 0.0)
                flux = where(beside(thin, a), through(value, a), other)
                lower, upper = flux, shift(flux, a)
                if not grid.periodic[a]:
                    # rounding keeps the sign of these numbers, so the comparisons are exact in float32 too
                    from_first = round_to(index(grid, a), rho.dtype)
                    from_last = round_to(index(grid, a) + (1.0 - grid.cells(a)), rho.dtype)
                    lower = where(from_first > 0.0, lower, 0.0)
                    upper = where(from_last < 0.0, upper, 0.0)
                gains.append(lower - upper)
            total: Expr = old + symmetric_sum(*gains)
            return total

        new = Conserved(
            mixed(U.rho, U.rho),
            Vector(mixed(c, c) for c in U.m),
            mixed(U.E, hydro_energy, heat(U)),
            U.B,
        )
        cells.set(count(lacks_mass_or_heat(new)))
        assign(dict(zip((rho, *m, E), (new.rho, *new.m, new.E), strict=True)))
