"""Ideal MHD with shocks: a shock tube with a compound wave (a slow shock with an attached rarefaction).

Source: Mendygral et al. 2017, ApJS 228, 23, Section 6.4; Brio and Wu 1988, J. Comput. Phys. 75, 400.
"""

import halocline as hc
from halocline.physics import mhd_tvd
from halocline.physics.mhd_tvd.parameters import PAPER
from halocline.physics.mhd_tvd.tubes import Tube

shape = hc.cells(400)
values = mhd_tvd.settings(PAPER, gamma=2.0)
until = 0.08
tube = Tube(
    name="brio-wu",
    left=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0),
    right=(0.125, 0.0, 0.0, 0.0, -1.0, 0.0, 0.1),
    across=0.75,
    until=until,
    gamma=2.0,
    energy="e",
    error={"rho": 1.23, "p": 1.29, "u": 2.53, "v": 2.1, "w": 0.1, "By": 0.74, "Bz": 0.1},
)

grid = tube.grid(shape)
flux, limiting = values.pop("flux"), values.pop("limiting")
gas = mhd_tvd.IdealMHD(grid, flux=flux, limiting=limiting, boundary=tube.boundary(shape))
scheme_name = gas.scheme_name
key_diagnostics = ("rho_min", "rho_max", "p_min")
check, figures = tube.check, {"profiles": tube.figure}


def diagnostics():
    return mhd_tvd.diagnostics(gas)


def pictures():
    return mhd_tvd.derived(gas)


sim = mhd_tvd.MHDSimulation(gas, **values)
sim.set_state(**tube.state(gas))
sim.run(until=until)
