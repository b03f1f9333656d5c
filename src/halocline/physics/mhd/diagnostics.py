"""Diagnostics of a run: means, extrema and integrals over the grid, for time series."""

from __future__ import annotations

from collections.abc import Callable

from halocline.lang.expression import Expr, Operand, as_expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import exp, sqrt
from halocline.lang.operators import curl, div
from halocline.lang.program import parameter
from halocline.lang.reductions import dot
from halocline.lang.reductions import max as greatest
from halocline.lang.reductions import min as least
from halocline.lang.reductions import sum as total
from halocline.physics.mhd.equations import MHD, Gas


def diagnostics(mhd: MHD) -> dict[str, Expr]:
    """Return the diagnostics of a run by name, in the units of the case.

    The rms values and extrema of a vector are those of its magnitude. "mass" is the mean density. The
    following entries are means over the volume:

    - E_kin: ρ u²/2
    - E_mag: B²/(2 μ₀)
    - E_th: ρ c_v T
    - kinetic_helicity: u·∇×u
    - magnetic_helicity: A·B
    - current_helicity: j·B
    """
    cells, gas, rho = float(mhd.grid.size), Gas(mhd.lnrho, mhd.s), exp(mhd.lnrho)

    def mean(f: Operand) -> Expr:
        return over(total, f, cells) / cells

    u2, omega = dot(mhd.u, mhd.u), curl(mhd.u)
    quantities = {
        "u_rms": sqrt(mean(u2)),
        "u_max": sqrt(over(greatest, u2)),
        "mass": mean(rho),
        "rho_min": exp(least(mhd.lnrho)),
        "rho_max": exp(greatest(mhd.lnrho)),
        "E_kin": mean(0.5 * rho * u2),
        "kinetic_helicity": mean(dot(mhd.u, omega)),
        "divu_rms": sqrt(mean(div(mhd.u) * div(mhd.u))),
    }
    if mhd.s is not None:
        quantities |= {
            "s_rms": sqrt(mean(mhd.s * mhd.s)),
            "T_min": exp(parameter("lnT0") + least(gas.warmth)),
            "T_max": exp(parameter("lnT0") + greatest(gas.warmth)),
            "E_th": mean(rho * gas.cp / gas.gamma * gas.T),
        }
    if mhd.A is not None:
        B, mu0 = mhd.field(), parameter("mu0")
        B2, j = dot(B, B), mhd.current()
        quantities |= {
            "B_rms": sqrt(mean(B2)),
            "B_max": sqrt(over(greatest, B2)),
            "divB_max": over(greatest, magnitude(div(B))),
            "E_mag": mean(0.5 * B2 / mu0),
            "j_rms": sqrt(mean(dot(j, j))),
            "magnetic_helicity": mean(dot(mhd.A, B)),
            "current_helicity": mean(dot(j, B)),
        }
    return quantities


def over(reduction: Callable[[Operand], Expr], f: Operand, count: float = 1.0) -> Expr:
    """Return a reduction of an expression over the grid.

    An expression with the same value in all cells, such as ∇·B on a grid of one axis, is not reduced. Then
    the result is `count` times this value.
    """
    expression = as_expr(f)
    return reduction(expression) if expression.varies else expression * count
