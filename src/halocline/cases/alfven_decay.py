"""A circularly polarised Alfvén wave in a viscous, resistive gas, which decays as exp(-ν k² t).

b = a B_x (0, cos kx, -sin kx) and u = -b / √(μ₀ ρ) travel along x at the Alfvén speed. |b| is uniform, so
there is no pressure gradient for any amplitude a. With ν = η, u and b decay as exp(-ν k² t).

Source: an exact solution of the equations if nu = eta (Alfvén 1942, Nature 150, 405).
"""

import math

import halocline as hc
import halocline.physics.mhd as mhd

steps = 200
shape = hc.cells(64)
amplitude = hc.setting("amplitude", 0.1, "1", "amplitude of the wave, relative to the imposed field")
waves = hc.setting("waves", 1, "1", "number of waves in the box of length 2π", minimum=1, whole=True)
physics = mhd.Physics(entropy=False, imposed=True)
step_control = mhd.time_step_settings()
values = mhd.settings(physics, nu=0.02, eta=0.02, B_x=1.0)

grid = hc.Grid(shape, extent=2 * math.pi, periodic=True)
gas = mhd.MHD(grid, physics)
dt, limit = mhd.stepping(gas, **step_control)
key_diagnostics = ("u_rms", "B_rms", "E_kin", "E_mag", "current_helicity")
ends = ()


def start(sim):
    b = amplitude * values["B_x"]
    u = amplitude * values["B_x"] / math.sqrt(values["mu0"])
    phase = waves * grid.x
    for field in gas.fields:
        sim[field] = 0.0
    sim[gas.u[1]] = -u * hc.cos(phase)
    sim[gas.u[2]] = u * hc.sin(phase)
    # B_y = -∂A_z/∂x, B_z = ∂A_y/∂x
    sim[gas.A[1]] = b / waves * hc.cos(phase)
    sim[gas.A[2]] = -b / waves * hc.sin(phase)


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
