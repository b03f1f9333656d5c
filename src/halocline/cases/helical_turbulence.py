"""Dynamo in isothermal turbulence with random forcing by helical waves.

Source: the Pencil Code's sample helical-MHDturb, with another start and time step; the forcing of Brandenburg
2001, ApJ 550, 824.
"""

import math

import halocline as hc
import halocline.physics.mhd as mhd

SAMPLE = "Pencil Code, samples/helical-MHDturb"
FIELD_SEED = 2**32  # seed of the initial field, larger than all seeds of the forcing

steps = 200
shape = hc.cells(32, 32, 32, also=[(32, 32)])
strength = hc.setting("force", 0.07, "1", "strength of the forcing, f0", origin=SAMPLE)
sigma = hc.setting(
    "sigma", 1.0, "1", "helicity of the forcing: 1 or -1 (fully helical) to 0 (not helical)", origin=SAMPLE
)
kmin = hc.setting(
    "kmin", 2.1, "1/length", "minimum wave number of the forcing, in the box of length 2π", minimum=0.0,
    origin=SAMPLE,
)  # fmt: skip
kmax = hc.setting(
    "kmax", 3.0, "1/length", "upper limit of the wave number of the forcing", above=0.0, origin=SAMPLE
)
seed = hc.setting("seed", 0, "1", "seed of the random numbers", minimum=0, maximum=10**9, whole=True)
seed_field = hc.setting("seed_field", 1e-4, "field length", "maximum initial vector potential")
physics = mhd.Physics(entropy=False)
step_control = mhd.time_step_settings()
values = mhd.settings(physics, SAMPLE, nu=5e-3, eta=5e-3)

grid = hc.Grid(shape, extent=(2 * math.pi,) * len(shape), periodic=True)
gas = mhd.MHD(grid, physics)
forcing = mhd.Forcing(kmin, kmax)
forcing.vectors(grid)  # raises InputError for unsuitable kmin or kmax
dt, limit = mhd.stepping(gas, **step_control)
key_diagnostics = ("u_rms", "B_rms", "E_kin", "E_mag", "kinetic_helicity", "magnetic_helicity")
ends = ()


def force(step, dt):
    names = {"seed": "seed", "strength": "force", "helicity": "sigma", "speed": "cs0"}
    return forcing(
        grid, step=step, dt=dt, **{argument: hc.parameter(name) for argument, name in names.items()}
    )


def equations(step, dt):
    return gas.equations(force(step, dt))


def terms():
    return gas.terms(force(hc.parameter("step"), hc.parameter("dt")))


def start(sim):
    for field in gas.fields:
        sim[field] = 0.0
    for number, field in enumerate(gas.A):
        noise = hc.random(FIELD_SEED + seed, number, grid.cell_number())
        sim[field] = seed_field * (2.0 * noise - 1.0)


def diagnostics():
    return mhd.diagnostics(gas)


sim = hc.Simulation(
    grid,
    equations,
    parameters=mhd.complete(physics, values) | {"seed": seed, "force": strength, "sigma": sigma},
    scheme=hc.RK3(),
    dt=dt,
    order=6,
    terms=terms,
)
start(sim)
sim.run(steps=steps)
