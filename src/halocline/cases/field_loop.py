"""Ideal MHD: a weak magnetic field loop that the flow carries twice through a periodic box.

In 2D, the axis of the loop is along z. In 3D, the loop is a cylinder along (-1, 0, 2)/√5. The distance
between the periodic images of the cylinder is 2/√5 (Gardiner and Stone 2008, Section 6.1).

Source: Mendygral et al. 2017, ApJS 228, 23, Section 6.7; Gardiner and Stone 2005 and 2008.
"""

import math

import halocline as hc
from halocline.io.figure import Figure, Map
from halocline.io.section import cut
from halocline.physics import mhd_tvd
from halocline.physics.mhd_tvd.checks import general
from halocline.physics.mhd_tvd.gas import squared
from halocline.physics.mhd_tvd.parameters import why_unbounded
from halocline.physics.mhd_tvd.transport import at_cells

FULL = {2: 128, 3: 200}  # Cells along the shorter side for which the bounds hold, by number of axes.
LOST = 0.15  # Maximum relative loss of magnetic energy at the end.
APART = 0.3  # Maximum relative difference of the field at the end.
SMEARED = 1e-3
ALONG = 1e-12  # limit of rounding errors in float64 of the field along z

shape = hc.cells(256, 128, also=[(200, 200, 300)])
amplitude = hc.setting("amplitude", 1e-3, "field × length", "slope of the vector potential", above=0.0)
radius = hc.setting("radius", 0.3, "length", "radius of the loop", above=0.0, maximum=0.4)
v_z = hc.setting("v_z", 0.0, "length/time", "velocity along the axis of the loop; only in 2D")
values = mhd_tvd.settings()
until = 2.0

axes = len(shape)
if axes == 3 and v_z != 0.0:
    raise hc.InputError(f"v_z is {v_z:g}; in 3D the gas moves along (1, 1, 2): leave v_z out")
extent = (2.0, 1.0) if axes == 2 else (1.0, 1.0, 2.0)
v = (2.0, 0.5, v_z) if axes == 2 else (1.0, 1.0, 2.0)
grid = hc.Grid(shape, extent=extent, origin=tuple(-e / 2 for e in extent), periodic=True)
gas = mhd_tvd.IdealMHD(grid, flux=values.pop("flux"), limiting=values.pop("limiting"))
scheme_name = gas.scheme_name
key_diagnostics = ("E_mag", "div_b", "flux_z")


def plane(x, y):
    return 0.0, 0.0, hc.maximum(amplitude * (radius - hc.sqrt(x * x + y * y)), 0.0)


def space(x, y, z):
    c, s, across = 2 / math.sqrt(5), 1 / math.sqrt(5), 2 / math.sqrt(5)
    along = c * x + s * z
    images = [along - n * across for n in range(-2, 3)]
    size = hc.maximum(*(amplitude * (radius - hc.sqrt(u * u + y * y)) for u in images), 0.0)
    return -s * size, 0.0, c * size


def initial_coordinate(x, way, period):
    """Return the initial coordinate of gas that has moved by `way` to x, in the period centred on 0."""
    offset = math.remainder(way, period)
    if offset == 0.0:
        return x
    before, half = x - offset, 0.5 * period
    return hc.where(before > half, before - period, hc.where(before < -half, before + period, before))


def exact(time):
    def carried(*x):
        potential = plane if axes == 2 else space
        return potential(*(initial_coordinate(c, u * time, e) for c, u, e in zip(x, v, extent, strict=False)))

    return mhd_tvd.conserved(gas, 1.0, v, 1.0, mhd_tvd.curl(grid, carried))


def diagnostics():
    return mhd_tvd.diagnostics(gas)


def pictures():
    return mhd_tvd.derived(gas)


def check(sim, record):
    """Return the checks of the energy, position and smearing of the loop.

    In 2D, another check tests that B_z is 0.
    """
    checks = general(sim, record)
    energy = record.series[-1]["E_mag"] / record.series[0]["E_mag"]
    # Second-order schemes smear an edge over the width h^(2/3) t^(1/3), and lose magnetic energy at this
    # edge.
    coarser, later = max(1.0, FULL[axes] / min(shape)), max(1.0, sim.time / until)
    smeared = coarser ** (2 / 3) * later ** (1 / 3)
    difference, along = error_and_divergence(sim)
    if reason := why_unbounded(sim.numbers):
        checks += [hc.Check.not_compared(name, reason) for name in ("magnetic energy", "loop advection")]
    else:
        lowest, most = max(0.0, 1.0 - LOST * smeared), 1.0 + grid.rounding(1e-12)
        about = "relative to the initial magnetic energy"
        checks.append(hc.Check("magnetic energy", energy, minimum=lowest, maximum=most, about=about))
        # The scheme smears a loop that moves. A smaller difference means that the loop has not moved.
        least = SMEARED * min(1.0, sim.time)
        about = "difference from the field of a loop that moves with the gas, relative to this field"
        most = min(1.0, APART * smeared)
        checks.append(hc.Check("loop advection", difference, minimum=least, maximum=most, about=about))
    if axes == 2:
        about = "maximum |B_z|, relative to the field of the loop"
        checks.append(hc.Check("B_z", along / amplitude, maximum=grid.rounding(ALONG), about=about))
    return checks


def error_and_divergence(sim):
    """Return the mean error of b divided by the mean of the exact |b|, and the maximum |b_z|."""
    solution = exact(sim.time)
    total_difference = sum(abs(f - solution[f]) for f in gas.b)
    size = sum(abs(solution[f]) for f in gas.b)
    difference, whole, along = sim.evaluate(hc.sum(total_difference), hc.sum(size), hc.max(abs(gas.b[2])))
    return difference / whole, along


def maps(sim):
    """Return the figure of B² at the start and at present (Figure 21); None on other ranks.

    In 2D, the figure shows the square in the middle of the grid. In 3D, it shows the mid-plane in z.
    """
    solution = exact(0.0)
    at_start = squared(at_cells(hc.Vector(solution[f] for f in gas.b), axes))
    before, after = (cut(sim, quantity) for quantity in (at_start, 2.0 * pictures()["p_magnetic"]))
    if before is None or after is None:
        return None
    before, after = (section.within("x", -0.5, 0.5) for section in (before, after))
    limits = (0.0, amplitude**2)  # B² within the loop
    panels = [Map(before, "$B^2$ at t = 0", limits), Map(after, f"$B^2$ at t = {sim.time:.4g}", limits)]
    return Figure(panels, columns=2)


figures = {"maps": maps}

sim = mhd_tvd.MHDSimulation(gas, **values)
for field, value in exact(0.0).items():
    sim[field] = value
sim.run(until=until)
