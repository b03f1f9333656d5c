"""An acoustic wave in two layers of rock: a Ricker source, receivers, and absorbing layers at the walls.

python examples/acoustic.py
halocline run examples/acoustic.py --ranks 4 --n 560 --set frequency=15
"""

import math
import os

import halocline as hc

n = 280  # cells along each axis
frequency = 10.0  # Hz, of the source
slow, fast = 1.5, 2.5  # km/s, above and below
end = 0.5  # s
side, layer = 1.4, 0.2  # km: side of the square, and width of the absorbing layer inside each of its walls

grid = hc.Grid((n, n), extent=side, origin=-layer)
u = grid.field("u", boundary=hc.Value(0.0))
before = grid.field("before", boundary=hc.Value(0.0))
x, y = u.coordinates
dt = 0.4 * side / n / fast  # s


def speed():
    return slow + 0.5 * (fast - slow) * (1.0 + hc.tanh((y - 0.5) / 0.01))


def damping():
    """Return a damping that grows with the square of the depth in the absorbing layer.

    At normal incidence, a wave of speed `fast` that the wall reflects keeps 1/1000 of its energy.
    """
    inside = side - 2 * layer
    depth = sum(hc.maximum(-a, a - inside, 0.0) ** 2 for a in (x, y)) / layer**2
    return 1.5 * math.log(1000) * fast / layer * depth


def source(t):
    late = (math.pi * frequency * (t - 1.0 / frequency)) ** 2
    spot = hc.exp(-((x - 0.5) ** 2 + (y - 0.02) ** 2) / (2 * 0.015**2))
    return 1e3 * (1.0 - 2.0 * late) * hc.exp(-late) * spot


@hc.program
def step(u, before, t, dt):
    a = 0.5 * dt * damping()
    forward = 2.0 * u - (1.0 - a) * before + (dt * speed()) ** 2 * hc.laplacian(u) + dt**2 * source(t)
    hc.assign({before: u, u: forward / (1.0 + a)})


out = os.environ.get("HALOCLINE_OUT", "out")
receivers = hc.Points([(0.02 + 0.04 * k, 0.02) for k in range(25)])
records = hc.Output(f"{out}/receivers.zarr", [u], every=0.004, region=receivers, overwrite=True)
sim = hc.Simulation(grid, step, dt=dt, order=4)
sim.run(until=end, output=records)
hc.print(f"steps     {sim.steps}\nlargest   {sim.evaluate(hc.max(abs(u))):.4g}\nchecksum  {sim.checksum(u)}")
hc.picture(sim, u, f"{out}/acoustic.png", title=f"t = {sim.time:g} s", label="pressure", unit="km")
