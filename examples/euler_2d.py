"""A blast in a closed box: a disc of hot dense gas bursts, and its waves travel between the walls.

The flow remains symmetric about the diagonal to the last bit. The program adds up the mass that crosses
each face. The net inflow through the faces of a cell equals the gain of the cell.

python examples/euler_2d.py [cells along each axis] [end of time]
"""

import os
import sys

import hancock
import numpy as np
from gas import GAMMA

import halocline as hc

n = int(sys.argv[1]) if len(sys.argv) > 1 else 256
end = float(sys.argv[2]) if len(sys.argv) > 2 else 1.5
grid = hc.Grid((n, n), extent=1.0)
wall, bounce = hc.Symmetric(), hc.Antisymmetric()
rho, E = grid.field("rho", boundary=wall), grid.field("E", boundary=wall)
m = grid.vector("m", boundary=[{f"{a}-": bounce, f"{a}+": bounce, "other": wall} for a in "xy"])
crossed = grid.vector("crossed", location="face")  # mass through each face since the start
h = [grid.h(axis) for axis in range(grid.ndim)]


@hc.program
def step(rho, m, E, crossed, dt):
    U = hc.Vector((rho, *m, E))
    F = hancock.fluxes(U, dt, h)
    crossed.set([total + dt * f[0] for total, f in zip(crossed, F, strict=True)])
    U.set(hancock.advanced(U, F, dt, h))


def burst(inside, outside):
    return lambda x, y: np.where((x - 0.35) ** 2 + (y - 0.35) ** 2 < 0.2**2, inside, outside)


sim = hc.Simulation(grid, step, dt=lambda rho, m, E: hancock.time_step((rho, *m, E), h))
sim[rho], sim[E] = burst(1.0, 0.125), burst(1.0 / (GAMMA - 1), 0.1 / (GAMMA - 1))
totals = sim.evaluate(hc.sum(rho), hc.sum(E))

outcome = sim.run(until=end)
outflow = sum((hc.shift(total, a) - total) / h[a] for a, total in enumerate(crossed))
unaccounted, skew = rho - burst(1.0, 0.125)(grid.x, grid.y) + outflow, rho * (grid.x - grid.y)
*final, balance, skewness = sim.evaluate(hc.sum(rho), hc.sum(E), hc.max(abs(unaccounted)), hc.sum(skew))
lost = [1 - after / before for before, after in zip(totals, final, strict=True)]
hc.print(f"steps            {sim.steps}")
hc.print(f"million cells/s  {grid.size * sim.steps / outcome.seconds / 1e6:.1f}")
hc.print(f"mass lost        {lost[0]:.1e}")
hc.print(f"energy lost      {lost[1]:.1e}")
hc.print(f"flux balance     {balance:.1e}")
hc.print(f"skewness         {skewness}")
hc.print(f"checksum         {sim.checksum(rho)}")
out = os.environ.get("HALOCLINE_OUT", "out")
hc.picture(sim, rho, f"{out}/euler_2d.png", title="A blast in a box", label="density", cmap="inferno")
assert max(*map(abs, lost), balance) < 1e-11
assert skewness == 0.0
