"""A two-dimensional vortex that folds a magnetic field into current sheets and heats the gas.

u = U (-sin y, sin x, 0), B = B₀ (-sin y, sin 2x, 0), with uniform density and pressure.

Source: Orszag and Tang 1979, J. Fluid Mech. 90, 129; compressible: Dahlburg and Picone 1989, Phys. Fluids
B 1, 2153.
"""

import math

import halocline as hc
import halocline.physics.mhd as mhd

steps = 400
shape = hc.cells(128, 128)
velocity = hc.setting("velocity", 1.0, "length/time", "maximum of each velocity component", origin="the unit")
strength = hc.setting("field", 1.0, "magnetic field", "maximum field along x", origin="the unit")
physics = mhd.Physics()
step_control = mhd.time_step_settings()
values = mhd.settings(physics, nu=0.02, eta=0.02, K=0.02, cs0=3.0)

grid = hc.Grid(shape, extent=(2 * math.pi,) * len(shape), periodic=True)
gas = mhd.MHD(grid, physics)
dt, limit = mhd.stepping(gas, **step_control)
key_diagnostics = ("u_rms", "B_rms", "E_kin", "E_mag", "E_th", "j_rms")
ends = ()


def start(sim):
    x, y = grid.x, grid.y
    for field in gas.fields:
        sim[field] = 0.0
    sim[gas.lnrho] = values["lnrho0"]
    sim[gas.u[0]] = -velocity * hc.sin(y)
    sim[gas.u[1]] = velocity * hc.sin(x)
    # B = (∂A_z/∂y, -∂A_z/∂x)
    sim[gas.A[2]] = strength * (hc.cos(y) + 0.5 * hc.cos(2.0 * x))


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
