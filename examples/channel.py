"""Hot water flows through a channel and cools: four walls of three kinds, relaxed to a steady state.

The temperature at the inlet is prescribed. Nothing diffuses through the outlet and the middle. The cold side
takes heat in proportion to its temperature, by a user-defined boundary condition.

python examples/channel.py [cells across]
"""

import os
import sys

import numpy as np

import halocline as hc

n = int(sys.argv[1]) if len(sys.argv) > 1 else 48
length, speed, k = 3.0, 2.0, 1.0
transfer = k * np.tan(k)  # coefficient of heat transfer, for which the profile across is cos(k y)


def losing_heat(T):
    """Return the ghost value for dT/dy = -transfer T on the wall, half-way between ghost and first cell."""
    return T[0] * (2 - transfer * T.h) / (2 + transfer * T.h)


grid = hc.Grid((3 * n, n), extent=(length, 1.0))
inlet = hc.Value(lambda x, y: np.cos(k * y))
walls = {"x-": inlet, "y+": hc.BoundaryKernel(losing_heat), "other": hc.Derivative(0.0)}
T = grid.field("T", boundary=walls)


@hc.program
def relax(T):
    dt = 0.2 * grid.h(0) ** 2
    change = hc.scalar("change")
    change.set(1.0)
    with hc.loop(until=change < 1e-12, limit=1_000_000, record=change):
        new = hc.stage(T + dt * (hc.laplacian(T) - speed * hc.derivative(T, "x")))
        change.set(hc.max(abs(new - T)))
        T.set(new)


def exact(x, y):
    """Return cos(k y) f(x) with f'' - speed f' - k^2 f = 0, f(0) = 1, f'(length) = 0."""
    a, b = speed / 2 + np.sqrt(speed**2 / 4 + k**2) * np.array([1.0, -1.0])
    ea, eb = a * np.exp(a * length), b * np.exp(b * length)
    return np.cos(k * y) * (eb * np.exp(a * x) - ea * np.exp(b * x)) / (eb - ea)


sim = hc.Simulation(grid, relax)
outcome = sim.run()
error = sim.evaluate(hc.max(abs(T - exact(grid.x, grid.y))))
hc.print(f"passes           {len(outcome.history)}")
hc.print(f"million cells/s  {grid.size * len(outcome.history) / outcome.seconds / 1e6:.0f}")
hc.print(f"error            {error:.1e}")
hc.print(f"checksum         {sim.checksum(T)}")
out = os.environ.get("HALOCLINE_OUT", "out")
hc.picture(sim, T, f"{out}/channel.png", title="Water cools", label="temperature", cmap="coolwarm")
assert error < 1.0 / n**2
