"""Ideal MHD with shocks: a shock tube with a switch-on rarefaction, which creates a transverse field.

Source: Mendygral et al. 2017, ApJS 228, 23, Section 6.3; Ryu and Jones 1995, ApJ 442, 228, Figure 4a.
"""

import halocline as hc
from halocline.physics import mhd_tvd
from halocline.physics.mhd_tvd.parameters import PAPER
from halocline.physics.mhd_tvd.tubes import Tube

shape = hc.cells(512, also=[(128, 128, 128)])
values = mhd_tvd.settings(PAPER)
until = 0.15
tube = Tube(
    name="rj4a",
    left=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0),
    right=(0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1),
    across=1.0,
    until=until,
    error={"rho": 0.63, "p": 0.42, "u": 1.1, "v": 1.27, "w": 0.1, "By": 0.58, "Bz": 0.1},
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
