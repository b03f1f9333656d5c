"""Ideal MHD with shocks: hot gas that bursts out along a strong field.

Source: Mendygral et al. 2017, ApJS 228, 23, Section 6.8; Londrillo and Del Zanna 2000, ApJ 530, 508.
"""

import math

import halocline as hc
from halocline.io.figure import Figure
from halocline.physics import mhd_tvd
from halocline.physics.mhd_tvd import drawn
from halocline.physics.mhd_tvd.checks import general, primitives, rotation_asymmetry
from halocline.physics.mhd_tvd.parameters import PAPER, STEADY

BURST = 0.1  # minimum kinetic energy at the end, relative to the initial excess heat of the sphere
LEAST_HEAT = 1e-9
USUAL_PRESSURE = 100.0
STRONG_FIELD = 50.0  # For this and stronger fields, density oscillates unless entropy waves have viscosity.

shape = hc.cells(200, 300, 200, also=[(200, 300)])
radius = hc.setting("radius", 0.125, "length", "radius of the hot sphere", above=0.0, origin=PAPER)
pressure = hc.setting(
    "pressure",
    USUAL_PRESSURE,
    "mass/(length time²)",
    "pressure inside the sphere; it is 1 outside",
    above=0.0,
    origin=PAPER,
)
strength = hc.setting("field", 10.0, "field", "strength of the magnetic field, along (1, 1, 0)", origin=PAPER)
steadied = {"epsilon_entropy": 0.05} if abs(strength) >= STRONG_FIELD else {}
values = mhd_tvd.settings(STEADY, courant=0.25, **steadied)
until = 0.02

extent = (1.0, 1.5, 1.0)[: len(shape)]
grid = hc.Grid(shape, extent=extent, origin=tuple(-e / 2 for e in extent), periodic=True)
gas = mhd_tvd.IdealMHD(grid, flux=values.pop("flux"), limiting=values.pop("limiting"))
scheme_name = gas.scheme_name
key_diagnostics = ("rho_min", "p_min", "E_mag", "div_b")


def diagnostics():
    return mhd_tvd.diagnostics(gas)


def pictures():
    return mhd_tvd.derived(gas)


def check(sim, record):
    """Return the checks of floors, of the symmetry under a rotation by 180°, and of the kinetic energy."""
    checks, state = general(sim, record), primitives(sim, values["gamma"])
    floors = sum(record.events[name]["count"] for name in ("density floor", "pressure floor"))
    checks.append(
        hc.Check(
            "floors",
            floors,
            maximum=0,
            about="number of cells in which density or pressure was raised to its floor",
        )
    )
    if state is not None:
        about = "difference from the field rotated by 180°, relative to its maximum"
        checks += [
            hc.Check(
                f"{quantity} symmetric",
                rotation_asymmetry(state[quantity]),
                maximum=grid.rounding(1e-13),
                about=about,
            )
            for quantity in ("rho", "p")
        ]
        checks.append(burst(sim, record, state))
    return checks


def burst(sim, record, state):
    """Return the check of the kinetic energy, relative to the initial excess heat of the sphere.

    The excess heat is the heat above that of the surrounding gas. At first, pressure accelerates the gas
    uniformly. Therefore the kinetic energy grows as the square of time until the end of the case.
    """
    # For lower pressures, the bound does not apply: kinetic energy is proportional to pressure², but heat to
    # pressure.
    if pressure < USUAL_PRESSURE:
        reason = f"no bound is known for pressure = {pressure:g}, below {USUAL_PRESSURE:g}"
        return hc.Check.not_compared("kinetic energy", reason)
    before = record.series[0]
    heat = before["energy"] - before["E_mag"] - 1.0 / (values["gamma"] - 1.0)
    if abs(heat) < LEAST_HEAT:
        return hc.Check.not_compared("kinetic energy", "the sphere is not hotter than its surroundings")
    kinetic = 0.5 * float((state["rho"] * sum(state[f"v_{a}"] ** 2 for a in "xyz")).mean())
    share = min(1.0, sim.time / until)
    about = "relative to the initial excess heat of the sphere"
    return hc.Check("kinetic energy", kinetic / abs(heat), minimum=BURST * share**2, maximum=1.0, about=about)


def maps(sim):
    """Return the figure of maps (Figure 22), on the first rank; None on other ranks.

    In 3D, the maps show the plane z = 0.
    """
    panels = drawn.maps(sim, "rho", "kinetic", "p_magnetic", p_magnetic="magnetic energy")
    return None if panels is None else Figure(panels, columns=3)


figures = {"maps": maps}

sim = mhd_tvd.MHDSimulation(gas, **values)
inside = hc.symmetric_sum(*(x * x for x in mhd_tvd.centred(grid))) < radius**2
b = strength / math.sqrt(2.0)
sim.set_state(rho=1.0, p=hc.where(inside, pressure, 1.0), b=(b, b, 0.0))
sim.run(until=until)
