"""What is reported of a state: primitive and derived quantities of cells, and numbers over the grid."""

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
    """∇·b of cells, from their faces."""
    terms = [(shift(mhd.b[a], a) - mhd.b[a]) / mhd.grid.h(a) for a in range(mhd.axes)]
    total: Expr = sum(terms[1:], terms[0])
    return total


def derived(mhd: IdealMHD) -> dict[str, Expr]:
    """By name: rho, p, the components of v and B, and kinetic energy per mass, magnetic pressure, Mach
    number, the current's components (central differences of B), ∇·b."""
    w = mhd.state()
    found = {"rho": w.rho, "p": w.p}
    found |= {f"v_{AXES[a]}": w.v[a] for a in range(3)}
    found |= {f"B_{AXES[a]}": w.B[a] for a in range(3)}
    found["kinetic"] = 0.5 * squared(w.v)
    found["p_magnetic"] = 0.5 * squared(w.B)
    found["mach"] = sqrt(squared(w.v) * w.rho / (parameter("gamma") * w.p))
    for a in range(3):
        _, y, z = a, (a + 1) % 3, (a + 2) % 3
        slopes = []
        for component, along, sign in ((z, y, 1.0), (y, z, -1.0)):
            if along < mhd.axes:
                B = w.B[component]
                slopes.append(sign * (shift(B, along) - shift(B, along, -1)) / (2.0 * mhd.grid.h(along)))
        if slopes:
            found[f"j_{AXES[a]}"] = sum(slopes[1:], slopes[0])
    if mhd.axes > 1:
        found["div_b"] = divergence(mhd)
    return found


def diagnostics(mhd: IdealMHD) -> dict[str, Expr]:
    """Numbers over the grid: totals of what is conserved (per cell, the mean), extremes, and the greatest
    |∇·b| over the greatest |b| / Δx."""
    size, w = float(mhd.grid.size), mhd.state()
    found = {"mass": total(mhd.rho) / size, "energy": total(mhd.E) / size}
    found |= {f"momentum_{AXES[a]}": total(mhd.m[a]) / size for a in range(3)}
    found |= {f"flux_{AXES[a]}": total(mhd.b[a]) / size for a in range(3)}
    found |= {
        "rho_min": least(w.rho),
        "rho_max": greatest(w.rho),
        "p_min": least(w.p),
        "p_max": greatest(w.p),
    }
    found["E_mag"] = total(0.5 * squared(w.B)) / size
    if mhd.axes > 1:
        found["div_b"] = relative_divergence(mhd)
    return found


def relative_divergence(mhd: IdealMHD) -> Expr:
    """The greatest |∇·b| over the greatest |b| / Δx, on grids of two or three axes."""
    steepest = [magnitude(mhd.b[a].expr) / mhd.grid.h(a) for a in range(mhd.axes)]
    tiny = 1e-300  # without any field the ratio is 0
    found: Expr = greatest(magnitude(divergence(mhd))) / maximum(*(greatest(s) for s in steepest), tiny)
    return found
