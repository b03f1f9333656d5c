"""Ideal MHD: a circularly polarised Alfvén wave that travels obliquely through a periodic box.

The wave is an exact solution for any amplitude. The box contains one wave.

Source: Mendygral et al. 2017, ApJS 228, 23, Section 6.9; Tóth 2000, J. Comput. Phys. 161, 605.
"""

import math

import numpy as np

import halocline as hc
from halocline.io.figure import Curve, Figure, Lines
from halocline.physics import mhd_tvd
from halocline.physics.mhd_tvd import checks, drawn
from halocline.physics.mhd_tvd.setup import Direction

# box with one wave, and direction of the wave, by number of axes
EXTENTS = {1: (1.0,), 2: (math.sqrt(5), math.sqrt(5) / 2), 3: (3.0, 1.5, 1.5)}
ALONG = {1: (1.0,), 2: (1.0, 2.0), 3: (1.0, 2.0, 2.0)}
ERROR = 100.0  # Maximum of error · n², with n cells along the shorter side.
SCATTER = 1e-13  # Rounding errors in float64 between cells of equal phase, relative to the mean field.
PERIOD = "After one period"  # Left panel of Figure 23.

shape = hc.cells(64, 32, also=[(64,), (64, 32, 32)])
amplitude = hc.setting(
    "amplitude", 0.1, "1", "amplitude of velocity and field", above=0.0, origin="Tóth 2000"
)
carried = hc.setting("v", 0.0, "length/time", "velocity of the gas along the wave", above=-1.0)
values = mhd_tvd.settings()

axes, k = len(shape), 2 * math.pi
extent = EXTENTS[axes]
grid = hc.Grid(shape, extent=extent, origin=tuple(-e / 2 for e in extent), periodic=True)
gas = mhd_tvd.IdealMHD(grid, flux=values.pop("flux"), limiting=values.pop("limiting"))
along = Direction.of(*ALONG[axes])
# Velocity and field have the same sign: the wave travels against the mean field, with speed 1 in the gas.
speed = 1.0 + carried
until = 1.0 / speed

scheme_name = gas.scheme_name
key_diagnostics = ("rho_min", "p_min", "E_mag", *(["div_b"] if axes > 1 else []))
error_name = "L1 error, relative to the amplitude"
families = (hc.Family(PERIOD, 2, (32, 64, 128)), hc.Family(PERIOD, 3, (32, 64)))


def exact(time):
    s, distance = along.along(grid.coordinates()), 0.0 - speed * time

    def y(s):
        return amplitude * hc.sin(k * (s - distance))

    def z(s):
        return amplitude * hc.cos(k * (s - distance))

    b = along.field(grid, (1.0, 0.0, 0.0), [y, z], [lambda s: -z(s) / k, lambda s: y(s) / k])
    v = along.rotate((0.0 - carried, y(s), z(s)))
    return mhd_tvd.conserved(gas, 1.0, v, 0.1, b)


def diagnostics():
    return mhd_tvd.diagnostics(gas)


def pictures():
    return mhd_tvd.derived(gas)


def error(sim):
    return checks.error(sim, exact, amplitude)


def check(sim, record):
    """Return the checks of the error and of the equality of cells with the same phase."""
    results = checks.general(sim, record)
    results.append(checks.wave_error(sim, exact, amplitude, ERROR, until))
    wave = profile(sim)
    if wave is not None:
        about = "maximum spread of B₂ among cells of equal phase, relative to the amplitude"
        spread = scatter(shape, wave[1]) / amplitude
        results.append(hc.Check("scatter", spread, maximum=grid.rounding(SCATTER) / amplitude, about=about))
    return results


def profile(sim):
    """Return wave coordinate and transverse field of every cell, on the first rank; None on other ranks.

    The transverse field is the component in the x-y plane normal to the wave direction. All ranks call this
    function.
    """
    known = pictures()
    across = sum(e * known[f"B_{a}"] for e, a in zip(along.e1, "xyz", strict=True) if e)
    field = sim.gather(across)
    if field is None:
        return None
    places = np.meshgrid(*grid.positions(), indexing="ij")
    return np.tensordot(along.n[: grid.ndim], places, 1), field


def scatter(shape, values):
    """Return the largest difference of values between cells of the same phase.

    In exact arithmetic, all cells of the same phase have the same value. In floating point, their values
    differ by rounding errors.
    """
    # The phase increases by one period along each axis. The phase of a cell is the sum of index / number of
    # cells over all axes.
    parts = math.lcm(*shape)
    steps = [np.arange(n) * (parts // n) for n in shape]
    phase = sum(np.meshgrid(*steps, indexing="ij")) % parts
    least, most = np.full(parts, np.inf), np.full(parts, -np.inf)
    np.minimum.at(least, phase, values)
    np.maximum.at(most, phase, values)
    return float((most - least).max())


def wave_front(sim):
    """Return the figure of the transverse field, with the exact solution (Figure 23, right).

    Ranks other than the first return None.
    """
    wave = profile(sim)
    if wave is None:
        return None
    s, field = (array.ravel() for array in wave)
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
