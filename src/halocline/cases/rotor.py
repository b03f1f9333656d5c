"""Ideal MHD with shocks: a dense rotating disk, which loses angular momentum by Alfvén waves.

The disk, r < 0.1, rotates with v = 2 r / 0.1. Between r = 0.1 and r = 0.115, density and velocity change
linearly to those of the gas at rest.

Source: Mendygral et al. 2017, ApJS 228, 23, Section 6.6; the first rotor problem of Tóth 2000, J. Comput.
Phys. 161, 605.
"""

import math

import halocline as hc
from halocline.physics import mhd_tvd
from halocline.physics.mhd_tvd.converged import Converged, square
from halocline.physics.mhd_tvd.parameters import STEADY

shape = hc.cells(400, 400)
values = mhd_tvd.settings(STEADY, gamma=1.4, courant=0.4)
until = 0.15

grid = square(shape)
gas = mhd_tvd.IdealMHD(grid, flux=values.pop("flux"), limiting=values.pop("limiting"))
scheme_name = gas.scheme_name
key_diagnostics = ("rho_min", "p_min", "E_mag", "div_b")
converged = Converged(
    "rotor",
    until=until,
    gamma=1.4,
    maximum_errors={"rho": (0.03, 400), "p": (0.008, 400)},
    maps=("rho", "p", "mach", "p_magnetic"),
    cuts=(("B_y", "y", 0.0), ("B_x", "x", 0.0)),
)
check, figures = converged.check, {"maps": converged.figure}


def diagnostics():
    return mhd_tvd.diagnostics(gas)


def pictures():
    return mhd_tvd.derived(gas)


sim = mhd_tvd.MHDSimulation(gas, **values)
x, y = mhd_tvd.centred(grid)
r0, r1, v0 = 0.1, 0.115, 2.0
r = hc.sqrt(x * x + y * y)
taper = hc.minimum(hc.maximum((r1 - r) / (r1 - r0), 0.0), 1.0)
spin = taper * (v0 / hc.maximum(r, r0))
sim.set_state(
    rho=1.0 + 9.0 * taper,
    p=1.0,
    v=(-spin * y, spin * x, 0.0),
    b=(5 / math.sqrt(4 * math.pi), 0.0, 0.0),
)
sim.run(until=until)
