"""The MUSCL-Hancock scheme, unsplit, of second order (Toro 2009, Sections 14.4 and 16.5).

Each intermediate result is a stage that the next stage reads at neighbouring cells. Halocline derives the
stencil of the whole step, and the exchange between ranks, from the formulas.
"""

from gas import conserved, flux, hllc, primitive, sound

import halocline as hc


def limited(w, axis):
    """Return van Leer's mean of the differences to both neighbours, which vanishes at an extremum."""
    pairs = zip(w - hc.shift(w, axis, -1), hc.shift(w, axis) - w, strict=True)
    return hc.Vector(hc.where(a * b > 0, 2 * a * b / (a + b), 0.0) for a, b in pairs)


def states(v, dt, h, slope=limited, read=lambda v: v):
    """Return the states at mid-step on both sides of the lower face of each cell, along every axis.

    Slopes are differences of `v`; `read` converts `v` to density, velocity and pressure if necessary.
    """
    axes, v = range(len(h)), hc.stage(v, "w")
    slopes = [hc.stage(slope(v, a), f"slope_{a}") for a in axes]
    low, high = [read(v - 0.5 * s) for s in slopes], [read(v + 0.5 * s) for s in slopes]
    gain = [(flux(low[a], a) - flux(high[a], a)) * (dt / (2 * h[a])) for a in axes]
    change = hc.stage(hc.symmetric_sum(*gain), "change")
    low = [primitive(conserved(side) + change) for side in low]
    high = [primitive(conserved(side) + change) for side in high]
    return [(hc.shift(high[a], a, -1), low[a]) for a in axes]


def fluxes(U, dt, h):
    """Return the fluxes at mid-step through the lower face of each cell, along every axis."""
    between = states(primitive(U), dt, h)
    return [hc.stage(hllc(*sides, a), f"flux_{a}") for a, sides in enumerate(between)]


def advanced(U, F, dt, h):
    """Return the state after the step."""
    return U - hc.symmetric_sum(*((hc.shift(f, a) - f) * (dt / h[a]) for a, f in enumerate(F)))


def time_step(U, h, cfl=0.8):
    """Return the time step in which no wave crosses more than the fraction `cfl` of a cell."""
    w = primitive(U)
    return cfl / hc.max(hc.symmetric_sum(*((abs(w[1 + a]) + sound(w)) / h[a] for a in range(len(h)))))
