"""Two gases at rest behind a diaphragm that bursts: a rarefaction, a contact and a shock.

The tube 0 < x < 1 has its diaphragm at 1/2. Its mirror image is at -1 < x < 0, so the box is periodic. The
gas on the left has s = 0.

Source: Sod 1978, J. Comput. Phys. 27, 1; exact solution: Toro 2009, Riemann Solvers and Numerical Methods for
Fluid Dynamics, Chapter 4.
"""

import math

import halocline as hc
import halocline.physics.mhd as mhd

LENGTH = 1.0
SOD = "Sod 1978"

steps = 150
shape = hc.cells(512)
left, p_left, right, p_right = (
    hc.setting(name, default, unit, f"initial value at x {side} 1/2", above=0.0, origin=SOD)
    for name, default, unit, side in (
        ("density_left", 1.0, "mass/length³", "<"),
        ("pressure_left", 1.0, "mass/(length time²)", "<"),
        ("density_right", 0.125, "mass/length³", ">"),
        ("pressure_right", 0.1, "mass/(length time²)", ">"),
    )
)
width = hc.setting("width", 1.0, "1", "width of the diaphragm, in cells", above=0.0)
physics = mhd.Physics(magnetic=False, upwind=True, shock=True)
step_control = mhd.time_step_settings()
values = mhd.settings(physics, SOD, without=("cs0", "lnrho0", "heating"), gamma=1.4)

grid = hc.Grid(shape, extent=2 * LENGTH, origin=-LENGTH, periodic=True)
gas = mhd.MHD(grid, physics)
dt, limit = mhd.stepping(gas, **step_control)
lnrho0 = math.log(left)
values |= {"cs0": math.sqrt(values["gamma"] * p_left / left), "lnrho0": lnrho0, "heating": 0.0}
key_diagnostics = ("u_max", "mass", "rho_min", "rho_max", "E_kin", "E_th")
ends = ()


def start(sim):
    # Fraction of the right state. High-order differences need an initial state that the grid resolves.
    thickness = width * 2 * LENGTH / shape[0]
    share = 0.5 + 0.5 * hc.tanh((abs(grid.x) - LENGTH / 2) / thickness)
    # density and pressure, relative to the values on the left
    rho, p = 1.0 + (right / left - 1.0) * share, 1.0 + (p_right / p_left - 1.0) * share
    for field in gas.fields:
        sim[field] = 0.0
    sim[gas.lnrho] = lnrho0 + hc.log(rho)
    sim[gas.s] = values["cp"] * (hc.log(p) / values["gamma"] - hc.log(rho))


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
