"""Two substances diffuse and react, u + 2 v -> 3 v, and a coral grows (Pearson 1993, Science 261, 189).

python examples/gray_scott.py [cells along each axis] [steps]
"""

import os
import sys

import numpy as np

import halocline as hc

n = int(sys.argv[1]) if len(sys.argv) > 1 else 256
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 8000
grid = hc.Grid((n, n), extent=float(n), periodic=True)
u, v = grid.field("u"), grid.field("v")
rates = {"feed": 0.0545, "kill": 0.062, "Du": 0.16, "Dv": 0.08}


def react(u, v, feed, kill, Du, Dv):
    reaction = u * v * v
    return {
        u: Du * hc.laplacian(u) - reaction + feed * (1 - u),
        v: Dv * hc.laplacian(v) + reaction - (feed + kill) * v,
    }


sim = hc.Simulation(grid, react, parameters=rates, scheme=hc.Euler(), dt=1.0)

centres = np.random.default_rng(7).uniform(0.1 * n, 0.9 * n, size=(12, 2))


def spots(x, y):
    return sum(np.exp(-((x - a) ** 2 + (y - b) ** 2) / 60.0) for a, b in centres)


sim[u] = lambda x, y: 1 - 0.5 * np.minimum(spots(x, y), 1.0)
sim[v] = lambda x, y: 0.5 * np.minimum(spots(x, y), 1.0)

outcome = sim.run(steps=steps)

# diffusion creates no matter: one more step changes the total by the feed and the kill only
whole = hc.sum(u + v)
supply = rates["feed"] * hc.sum(1 - u) - (rates["feed"] + rates["kill"]) * hc.sum(v)
before, expected = sim.evaluate(whole, supply)
sim.run(steps=1)
after, covered, least = sim.evaluate(whole, hc.count(v > 0.1), hc.min(v))
defect = abs(after - before - expected) / before
hc.print(f"steps            {sim.steps}")
hc.print(f"million cells/s  {grid.size * steps / outcome.seconds / 1e6:.0f}")
hc.print(f"matter made      {defect:.1e} of the whole in a step")
hc.print(f"covered          {100 * covered / grid.size:.1f} %")
hc.print(f"checksum         {sim.checksum(v)}")
out = os.environ.get("HALOCLINE_OUT", "out")
hc.picture(sim, v, f"{out}/gray_scott.png", title=f"Coral after {sim.steps} steps", label="v", cmap="magma")
assert defect < 1e-14
assert least > 0.0
