"""Shallow water on a rotating plane: a mound of water collapses, and the Coriolis force turns the waves.

Height is in cells, velocity on faces (Arakawa C-grid). The equations are linear, with a wave speed of 1.

python examples/shallow_water.py [cells along each axis]
"""

import os
import sys

import numpy as np

import halocline as hc

n = int(sys.argv[1]) if len(sys.argv) > 1 else 256
f = 8.0  # Coriolis parameter, in units of wave speed per length of the box
dt = 0.25 / n

grid = hc.Grid((n, n), periodic=True)
h = grid.field("h")
u = grid.field("u", location="face-x")
v = grid.field("v", location="face-y")


def shallow_water(h, u, v):
    v_at_u = hc.to(hc.to(v, "cell"), "face-x")
    u_at_v = hc.to(hc.to(u, "cell"), "face-y")
    return {
        h: -hc.div(hc.Vector((u, v))),
        u: -hc.derivative(h, "x") + f * v_at_u,
        v: -hc.derivative(h, "y") - f * u_at_v,
    }


sim = hc.Simulation(grid, shallow_water, scheme=hc.SSPRK3(), dt=dt)
sim[h] = lambda x, y: np.exp(-200 * ((x - 0.5) ** 2 + (y - 0.5) ** 2))
energy = hc.sum(u * u) + hc.sum(v * v) + hc.sum(h * h)
mass_before, energy_before = sim.evaluate(hc.sum(h), energy)
sim.run(until=0.4)
mass, energy_after, highest = sim.evaluate(hc.sum(h), energy, hc.max(h))
hc.print(f"mass changed    {abs(mass / mass_before - 1):.1e}")
hc.print(f"energy changed  {abs(energy_after / energy_before - 1):.1e}")
hc.print(f"highest         {highest:.4f}")
hc.print(f"checksum        {sim.checksum(h)}")
out = os.environ.get("HALOCLINE_OUT", "out")
hc.picture(sim, h, f"{out}/shallow_water.png", title=f"Height, t = {sim.time:g}", label="height")
