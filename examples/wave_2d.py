"""Sound in a closed room: pressure in the cells, velocity on the faces between them, leapfrog in time.

The walls reflect: no air crosses them. The scheme conserves an energy up to rounding.

python examples/wave_2d.py [cells along the short side]
"""

import os
import sys

import numpy as np

import halocline as hc

n = int(sys.argv[1]) if len(sys.argv) > 1 else 400
grid = hc.Grid((2 * n, n), extent=(2.0, 1.0))
p = grid.field("p", boundary=hc.Derivative(0.0))
v = grid.vector("v", location="face")
h = [grid.h(axis) for axis in range(grid.ndim)]


def gradient(p):
    return hc.Vector((p - hc.shift(p, a, -1)) / h[a] for a in range(grid.ndim))


def divergence(v):
    return sum((hc.shift(f, a) - f) / h[a] for a, f in enumerate(v))


@hc.program
def step(p, v, dt):
    v.set(v - dt * gradient(p))
    p.set(p - dt * divergence(v))


def pulse(x, y):
    return np.exp(-((x - 0.6) ** 2 + (y - 0.35) ** 2) / 0.03**2)


dt = 0.5 / n
sim = hc.Simulation(grid, step, dt=dt)
sim[p] = pulse
energy = 0.5 * hc.sum(p * p + hc.dot(v, v - dt * gradient(p)))
before = sim.evaluate(energy, hc.sum(p))

outcome = sim.run(until=1.5)

after = sim.evaluate(energy, hc.sum(p))
changes = [abs(b / a - 1) for a, b in zip(before, after, strict=True)]
hc.print(f"steps            {sim.steps}")
hc.print(f"million cells/s  {grid.size * sim.steps / outcome.seconds / 1e6:.0f}")
hc.print(f"energy changed   {changes[0]:.1e}")
hc.print(f"air changed      {changes[1]:.1e}")
hc.print(f"checksum         {sim.checksum(p)}")
out = os.environ.get("HALOCLINE_OUT", "out")
hc.picture(sim, p, f"{out}/wave_2d.png", title=f"Echoes of a pulse at t = {sim.time:g}", label="pressure")
assert max(changes) < 1e-11
