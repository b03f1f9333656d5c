"""Output quantities of a state: primitive and derived quantities of cells, and diagnostics of runs."""

from __future__ import annotations

from halocline.lang.expression import Expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import maximum, sqrt
from halocline.lang.grid import AXES
from halocline.lang.operators import shift
from halocline.lang.program import parameter
from halocline.lang.reductions import max as greatest
from halocline.lang.reductions import min as least
from halocline.lang.reductions import sum as total
from halocline.physics.mhd_tvd.gas import squared
from halocline.physics.mhd_tvd.scheme import IdealMHD


def divergence(mhd: IdealMHD) -> Expr:
    """Return ∇·b of cells, from the values on their faces."""
    terms = [(shift(mhd.b[a], a) - mhd.b[a]) / mhd.grid.h(a) for a in range(mhd.axes)]
    total: Expr = sum(terms[1:], terms[0])
    return total


def derived(mhd: IdealMHD) -> dict[str, Expr]:
    """Return primitive and derived quantities of cells by name.

    - rho, p: density and pressure
    - v_x to v_z, B_x to B_z: components of velocity and field
    - kinetic: kinetic energy per unit mass
    - p_magnetic: magnetic pressure
    - mach: Mach number
    - j_x to j_z: components of the current, by central differences of B
    - div_b: ∇·b, on two or three axes
    """
    w = mhd.state()
    quantities = {"rho": w.rho, "p": w.p}
    quantities |= {f"v_{AXES[a]}": w.v[a] for a in range(3)}
    quantities |= {f"B_{AXES[a]}": w.B[a] for a in range(3)}
    quantities["kinetic"] = 0.5 * squared(w.v)
    quantities["p_magnetic"] = 0.5 * squared(w.B)
    quantities["mach"] = sqrt(squared(w.v) * w.rho / (parameter("gamma") * w.p))
    for a in range(3):
        _, y, z = a, (a + 1) % 3, (a + 2) % 3
        slopes = []
        for component, along, sign in ((z, y, 1.0), (y, z, -1.0)):
            if along < mhd.axes:
                B = w.B[component]
                slopes.append(sign * (shift(B, along) - shift(B, along, -1)) / (2.0 * mhd.grid.h(along)))
        if slopes:
            quantities[f"j_{AXES[a]}"] = sum(slopes[1:], slopes[0])
    if mhd.axes > 1:
        quantities["div_b"] = divergence(mhd)
    return quantities


def diagnostics(mhd: IdealMHD) -> dict[str, Expr]:
    """Return the diagnostics of a run by name.

    These are the means of conserved quantities over all cells, extrema of density and pressure, and the
    magnetic energy. On two or three axes, "div_b" is max |∇·b| divided by max |b| / Δx.
    """
    size, w = float(mhd.grid.size), mhd.state()
    quantities = {"mass": total(mhd.rho) / size, "energy": total(mhd.E) / size}
    quantities |= {f"momentum_{AXES[a]}": total(mhd.m[a]) / size for a in range(3)}
    quantities |= {f"flux_{AXES[a]}": total(mhd.b[a]) / size for a in range(3)}
    quantities |= {
        "rho_min": least(w.rho),
        "rho_max": greatest(w.rho),
        "p_min": least(w.p),
        "p_max": greatest(w.p),
    }
    quantities["E_mag"] = total(0.5 * squared(w.B)) / size
    if mhd.axes > 1:
        quantities["div_b"] = relative_divergence(mhd)
    return quantities


def relative_divergence(mhd: IdealMHD) -> Expr:
    """Return max |∇·b| divided by max |b| / Δx, on grids of two or three axes."""
    steepest = [magnitude(mhd.b[a].expr) / mhd.grid.h(a) for a in range(mhd.axes)]
    tiny = 1e-300  # without a field the ratio is 0
    ratio: Expr = greatest(magnitude(divergence(mhd))) / maximum(*(greatest(s) for s in steepest), tiny)
    return ratio
