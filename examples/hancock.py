"""The MUSCL-Hancock scheme, un-split, of second order (Toro 2009, Sections 14.4 and 16.5).

Each intermediate is a stage that the next one reads at neighbouring cells. How many cells the whole step
reaches, and what has to travel between ranks for it, follows from the formulas.
"""

from gas import conserved, flux, hllc, primitive, sound

import halocline as hc


def limited(w, axis):
    """Van Leer's mean of the differences to both neighbours: nothing at an extremum."""
    pairs = zip(w - hc.shift(w, axis, -1), hc.shift(w, axis) - w, strict=True)
    return hc.Vector(hc.where(a * b > 0, 2 * a * b / (a + b), 0.0) for a, b in pairs)


def states(v, dt, h, slope=limited, read=lambda v: v):
    """On both sides of the lower face of each cell, along every axis, the state in the middle of the step.

    `v` is what slopes are taken of; `read` makes density, velocity and pressure of it where it is not these.
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
    """The fluxes through the lower face of each cell, along every axis, in the middle of the step."""
    between = states(primitive(U), dt, h)
    return [hc.stage(hllc(*sides, a), f"flux_{a}") for a, sides in enumerate(between)]


def advanced(U, F, dt, h):
    """The state after the step."""
    return U - hc.symmetric_sum(*((hc.shift(f, a) - f) * (dt / h[a]) for a, f in enumerate(F)))


def time_step(U, h, cfl=0.8):
    """How long no wave crosses more than a part of a cell."""
    w = primitive(U)
    return cfl / hc.max(hc.symmetric_sum(*((abs(w[1 + a]) + sound(w)) / h[a] for a in range(len(h)))))
