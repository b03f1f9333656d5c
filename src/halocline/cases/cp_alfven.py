"""Ideal MHD: a circularly polarised Alfvén wave that travels through a periodic box, obliquely.

It is an exact solution of any amplitude. The box holds one wave.

Source: Mendygral et al. 2017, ApJS 228, 23, Section 6.9; Tóth 2000, J. Comput. Phys. 161, 605.
"""

import math

import numpy as np

import halocline as hc
from halocline.io.figure import Curve, Figure, Lines
from halocline.physics import mhd_tvd
from halocline.physics.mhd_tvd import checks, drawn
from halocline.physics.mhd_tvd.setup import Direction

# boxes that hold one wave, and its direction, by their number of axes
EXTENTS = {1: (1.0,), 2: (math.sqrt(5), math.sqrt(5) / 2), 3: (3.0, 1.5, 1.5)}
ALONG = {1: (1.0,), 2: (1.0, 2.0), 3: (1.0, 2.0, 2.0)}
ERROR = 100.0  # over the square of the cells along the shorter side
SCATTER = 1e-13  # what rounding in float64 leaves between cells that are alike, over the mean field
PERIOD = "After one period"  # the panel on the left of Figure 23

shape = hc.cells(64, 32, also=[(64,), (64, 32, 32)])
amplitude = hc.setting("amplitude", 0.1, "1", "of velocity and field", above=0.0, origin="Tóth 2000")
carried = hc.setting("v", 0.0, "length/time", "velocity of the gas along the wave", above=-1.0)
values = mhd_tvd.settings()

axes, k = len(shape), 2 * math.pi
extent = EXTENTS[axes]
grid = hc.Grid(shape, extent=extent, origin=tuple(-e / 2 for e in extent), periodic=True)
gas = mhd_tvd.IdealMHD(grid, flux=values.pop("flux"), limiting=values.pop("limiting"))
along = Direction.of(*ALONG[axes])
# velocity and field of one sign: the wave travels against the mean field, with 1 through the gas
speed = 1.0 + carried
until = 1.0 / speed

scheme_name = gas.scheme_name
shown = ("rho_min", "p_min", "E_mag", *(["div_b"] if axes > 1 else []))
error_name = "L1 error over amplitude"
families = (hc.Family(PERIOD, 2, (32, 64, 128)), hc.Family(PERIOD, 3, (32, 64)))


def exact(time):
    s, gone = along.along(grid.coordinates()), 0.0 - speed * time

    def y(s):
        return amplitude * hc.sin(k * (s - gone))

    def z(s):
        return amplitude * hc.cos(k * (s - gone))

    b = along.field(grid, (1.0, 0.0, 0.0), [y, z], [lambda s: -z(s) / k, lambda s: y(s) / k])
    v = along.turned((0.0 - carried, y(s), z(s)))
    return mhd_tvd.conserved(gas, 1.0, v, 0.1, b)


def diagnostics():
    return mhd_tvd.diagnostics(gas)


def pictures():
    return mhd_tvd.derived(gas)


def error(sim):
    return checks.error(sim, exact, amplitude)


def check(sim, record):
    """Check the error, and that cells of the same phase are alike."""
    found = checks.general(sim, record)
    found.append(checks.wave_error(sim, exact, amplitude, ERROR, until))
    wave = profile(sim)
    if wave is not None:
        about = "greatest spread of B₂ among cells of the same phase, over the amplitude"
        off = scatter(shape, wave[1]) / amplitude
        found.append(hc.Check("scatter", off, most=grid.rounding(SCATTER) / amplitude, about=about))
    return found


def profile(sim):
    """Return the coordinate along the wave of every cell, and the component of the field across it that lies
    in the plane; on the first rank, None on others. All ranks call this."""
    known = pictures()
    across = sum(e * known[f"B_{a}"] for e, a in zip(along.e1, "xyz", strict=True) if e)
    field = sim.gather(across)
    if field is None:
        return None
    places = np.meshgrid(*grid.positions(), indexing="ij")
    return np.tensordot(along.n[: grid.ndim], places, 1), field


def scatter(shape, values):
    """Return the greatest range of values among cells of the same phase.

    The grid and the start look the same from all of these, so that only rounding tells them apart.
    """
    # each axis holds one period: the phase of a cell is the sum of its indices over the cells of their axes
    parts = math.lcm(*shape)
    steps = [np.arange(n) * (parts // n) for n in shape]
    phase = sum(np.meshgrid(*steps, indexing="ij")) % parts
    least, most = np.full(parts, np.inf), np.full(parts, -np.inf)
    np.minimum.at(least, phase, values)
    np.maximum.at(most, phase, values)
    return float((most - least).max())


def wave_front(sim):
    """Draw the field across the wave of every cell, and that of the exact solution (Figure 23, right)."""
    found = profile(sim)
    if found is None:
        return None
    s, field = (array.ravel() for array in found)
    end = float(np.ceil(2 * np.abs(s).max())) / 2
    x = np.linspace(-end, end, 401)
    solution = amplitude * np.sin(k * (x + speed * sim.time))
    curves = [
        Curve(s, field, f"each of {drawn.cells(sim)}", points=True),
        Curve(x, solution, "exact solution"),
    ]
    return Figure([Lines(curves, "$B_2$", "$x_1$, along the wave", (-end, end))], columns=1)


figures = {"wave": wave_front}

sim = mhd_tvd.MHDSimulation(gas, **values)
for field, value in exact(0.0).items():
    sim[field] = value
sim.run(until=until)
