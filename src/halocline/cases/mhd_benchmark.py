"""Benchmark of all terms of the MHD equations on random fields, as in Pekkilä et al. 2022.

Source: Pekkilä et al. 2022, Parallel Computing 111, 102904, Section 5.
"""

import math

import halocline as hc
import halocline.physics.mhd as mhd

steps = 10
shape = hc.cells(128, 128, 128)
dt = hc.setting("dt", 2.0**-23, "time", "time step", above=0.0, origin="Pekkilä et al. 2022")
seed = hc.setting("seed", 0, "1", "seed of the random fields", minimum=0, maximum=10**9, whole=True)
physics = mhd.Physics()
values = mhd.settings(physics, nu=5e-3, zeta=5e-3, eta=5e-3, K=5e-3)

grid = hc.Grid(shape, extent=tuple(2 * math.pi for _ in shape), periodic=True)
gas = mhd.MHD(grid, physics)
key_diagnostics = ("u_rms", "B_rms", "E_kin", "E_mag", "E_th")


def start(sim):
    for number, field in enumerate(gas.fields):
        sim[field] = hc.random(seed, number, grid.cell_number())


def diagnostics():
    return mhd.diagnostics(gas)


sim = hc.Simulation(
    grid,
    gas.equations,
    parameters=mhd.complete(physics, values),
    scheme=hc.RK3(),
    dt=dt,
    order=6,
    terms=gas.terms,
)
start(sim)
sim.run(steps=steps)
