"""Ideal MHD with shocks: a shock tube with all seven waves: three on each side of a contact.

Source: Mendygral et al. 2017, ApJS 228, 23, Section 6.2; Ryu and Jones 1995, ApJ 442, 228, Figure 2a.
"""

import math

import halocline as hc
from halocline.physics import mhd_tvd
from halocline.physics.mhd_tvd.parameters import PAPER
from halocline.physics.mhd_tvd.tubes import Tube

UNIT = 1 / math.sqrt(4 * math.pi)

shape = hc.cells(512, also=[(128, 128, 128)])
values = mhd_tvd.settings(PAPER)
until = 0.2
tube = Tube(
    name="rj2a",
    left=(1.08, 1.2, 0.01, 0.5, 3.6 * UNIT, 2 * UNIT, 0.95),
    right=(1.0, 0.0, 0.0, 0.0, 4 * UNIT, 2 * UNIT, 1.0),
    across=2 * UNIT,
    until=until,
    error={"rho": 1.54, "p": 1.49, "u": 0.63, "v": 2.0, "w": 1.2, "By": 1.82, "Bz": 2.6},
)

grid = tube.grid(shape)
flux, limiting = values.pop("flux"), values.pop("limiting")
gas = mhd_tvd.IdealMHD(grid, flux=flux, limiting=limiting, boundary=tube.boundary(shape))
scheme_name = gas.scheme_name
key_diagnostics = ("rho_min", "rho_max", "p_min", *(["div_b"] if grid.ndim > 1 else []))
check, figures = tube.check, {"profiles": tube.figure}


def diagnostics():
    return mhd_tvd.diagnostics(gas)


def pictures():
    return mhd_tvd.derived(gas)


sim = mhd_tvd.MHDSimulation(gas, **values)
sim.set_state(**tube.state(gas))
sim.run(until=until)
