"""Ideal MHD with shocks: vortices of flow and field that steepen into shocks.

Source: Mendygral et al. 2017, ApJS 228, 23, Section 6.5; Orszag and Tang 1979, J. Fluid Mech. 90, 129.
"""

import math

import halocline as hc
from halocline.physics import mhd_tvd
from halocline.physics.mhd_tvd.converged import Converged, square

TURN = 2 * math.pi
B0 = 1 / math.sqrt(4 * math.pi)

shape = hc.cells(192, 192)
values = mhd_tvd.settings()
until = 0.5

grid = square(shape)
gas = mhd_tvd.IdealMHD(grid, flux=values.pop("flux"), limiting=values.pop("limiting"))
scheme_name = gas.scheme_name
key_diagnostics = ("rho_min", "p_min", "E_mag", "div_b")
converged = Converged(
    "orszag-tang",
    until=until,
    gamma=5 / 3,
    maximum_errors={"rho": (0.015, 192), "p": (0.025, 192)},
    maps=("rho", "p", "kinetic", "p_magnetic"),
    cuts=(("p", "y", -0.0723), ("p", "y", -0.1875)),
)
check, figures = converged.check, {"maps": converged.figure}


def diagnostics():
    return mhd_tvd.diagnostics(gas)


def pictures():
    return mhd_tvd.derived(gas)


def potential(x, y):
    return 0.0, 0.0, B0 / TURN * (0.5 * hc.cos(2 * TURN * x) + hc.cos(TURN * y))


sim = mhd_tvd.MHDSimulation(gas, **values)
x, y = mhd_tvd.centred(grid)
sim.set_state(
    rho=25 / (36 * math.pi),
    p=5 / (12 * math.pi),
    v=(-hc.sin(TURN * y), hc.sin(TURN * x), 0.0),
    b=mhd_tvd.curl(grid, potential, mhd_tvd.centred),
)
sim.run(until=until)
