"""Sod's shock tube: a membrane bursts between gas at two pressures (Sod 1978), against the exact solution.

python examples/euler_1d.py [cells]
"""

import os
import sys

import hancock
import numpy as np
from gas import GAMMA
from sod_exact import density

import halocline as hc

n = int(sys.argv[1]) if len(sys.argv) > 1 else 400
grid = hc.Grid(n, extent=1.0)
still = hc.Derivative(0.0)
rho, E = grid.field("rho", boundary=still), grid.field("E", boundary=still)
m = grid.vector("m", boundary=still)
h = [grid.h(0)]


@hc.program
def step(rho, m, E, dt):
    U = hc.Vector((rho, *m, E))
    U.set(hancock.advanced(U, hancock.fluxes(U, dt, h), dt, h))


sim = hc.Simulation(grid, step, dt=lambda rho, m, E: hancock.time_step((rho, *m, E), h))
sim[rho] = lambda x: np.where(x < 0.5, 1.0, 0.125)
sim[E] = lambda x: np.where(x < 0.5, 1.0, 0.1) / (GAMMA - 1)
start = sim.evaluate(hc.sum(rho), hc.sum(E))

sim.run(until=0.2)

exact = density(grid.x, sim.time)
*final, error = sim.evaluate(hc.sum(rho), hc.sum(E), hc.sum(abs(rho - exact)) / n)
lost = [1 - after / before for before, after in zip(start, final, strict=True)]
hc.print(f"steps         {sim.steps}")
hc.print(f"mass lost     {lost[0]:.1e}")
hc.print(f"energy lost   {lost[1]:.1e}")
hc.print(f"mean error    {error:.2e}")
hc.print(f"checksum      {sim.checksum(rho)}")
out = os.environ.get("HALOCLINE_OUT", "out")
lines = {"exact": exact, f"{n} cells": rho}
hc.plot_lines(sim, lines, f"{out}/euler_1d.png", title=f"Sod's tube at t = {sim.time:g}", label="density")
assert max(map(abs, lost)) < 1e-13
assert error < 0.6 / n
