"""Heat spreads in a periodic cube, by differences of sixth order in space and a third-order scheme in time.

python examples/heat_3d.py [cells along each axis]
mpiexec -n 8 python examples/heat_3d.py 256
"""

import os
import sys

import numpy as np

import halocline as hc

n = int(sys.argv[1]) if len(sys.argv) > 1 else 128
grid = hc.Grid((n, n, n), extent=1.0, periodic=True)
T = grid.field("T")


def heat(T, kappa):
    return {T: kappa * hc.laplacian(T)}  # dT/dt


def warm_spots(variance, start=0.05**2):
    """Return a sum of Gaussians with the given variance, which grows by 2 kappa t in the solution.

    Their periodic images are too far away to matter.
    """

    def spot(a, b, x, y, z):
        distance2 = (x - a) ** 2 + (y - b) ** 2 + (z - 0.5) ** 2
        return (start / variance) ** 1.5 * np.exp(-distance2 / (2 * variance))

    return lambda x, y, z: (
        spot(0.42, 0.42, x, y, z) + spot(0.6, 0.46, x, y, z) + 0.7 * spot(0.48, 0.6, x, y, z)
    )


kappa = 0.1
dt = 0.1 * grid.spacing[0] ** 2 / kappa
sim = hc.Simulation(grid, heat, parameters={"kappa": kappa}, scheme=hc.RK3(), dt=dt, order=6)
sim[T] = warm_spots(0.05**2)
before = sim.evaluate(hc.sum(T))

outcome = sim.run(until=0.015)

exact = warm_spots(0.05**2 + 2 * kappa * sim.time)(*T.coordinates)
after, error = sim.evaluate(hc.sum(T), hc.max(abs(T - exact)))
speed = sim.steps / outcome.seconds
hc.print(f"steps            {sim.steps}")
hc.print(f"heat gained      {abs(after - before) / before:.1e} of the whole")
hc.print(f"error            {error:.1e}")
hc.print(f"million cells/s  {grid.size * speed / 1e6:.0f}")
hc.print(f"bandwidth        {sim.bytes_per_step * speed / 1e9:.1f} GB/s")
hc.print(f"checksum         {sim.checksum(T)}")
out = os.environ.get("HALOCLINE_OUT", "out")
hc.picture(sim, T, f"{out}/heat_3d.png", title=f"Warm spots at t = {sim.time:g}", label="T", cmap="inferno")
assert abs(after - before) < 1e-12 * before
assert error < 20 * grid.spacing[0] ** 3
