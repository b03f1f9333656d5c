"""Incompressible flow in a channel past a square, by a projection method on a staggered grid.

Each step advects, diffuses, and solves for the pressure by conjugate gradients within the same program.

python examples/obstacle_flow.py [cells across the channel] [end of time]
"""

import os
import sys

import halocline as hc
from halocline.solvers.cg import cg

n = int(sys.argv[1]) if len(sys.argv) > 1 else 40
end = float(sys.argv[2]) if len(sys.argv) > 2 else 4.0
viscosity, dt = 2e-3, 0.2 / n  # the inflow has the width 1 and the mean speed 1

grid = hc.Grid((3 * n, n), extent=(3.0, 1.0))
inflow, wall, outflow = hc.Value(lambda x, y: 6 * y * (1 - y)), hc.Value(0), hc.Extrapolate(1)
vx = grid.field("vx", location="face-x", boundary={"x-": inflow, "x+": outflow, "other": wall})
vy = grid.field("vy", location="face-y", boundary={"x+": outflow, "other": wall})
p = grid.field("p", boundary={"x+": hc.Value(0), "other": hc.Derivative(0)})


def fluid(f):
    """Return 0 in the square, which is off the middle, and 1 elsewhere."""
    x, y = f.coordinates
    return hc.where((abs(x - 0.75) < 0.126) & (abs(y - 0.55) < 0.126), 0.0, 1.0)


@hc.program
def step(vx, vy, p, dt):
    at_vx = (vx, hc.to(hc.to(vy, "cell"), "face-x"))
    at_vy = (hc.to(hc.to(vx, "cell"), "face-y"), vy)
    velocities = {}
    for f, velocity in ((vx, at_vx), (vy, at_vy)):
        advection = sum(velocity[axis] * hc.derivative(f, axis) for axis in range(2))
        upwind = sum(abs(velocity[axis]) * grid.h(axis) / 2 * hc.second(f, axis) for axis in range(2))
        velocities[f] = fluid(f) * (f + dt * (viscosity * hc.laplacian(f) - advection + upwind))
    hc.assign(velocities)
    cg(lambda p: -hc.laplacian(p), p, -hc.div(hc.Vector((vx, vy))) / dt, rtol=1e-6, max_iterations=10_000)
    slope = hc.grad(p)
    hc.assign({vx: vx - dt * slope[0], vy: vy - dt * slope[1]})


sim = hc.Simulation(grid, step, dt=dt)
sim[vx] = lambda x, y: 6 * y * (1 - y)
sim.run(until=end)
divergence, fastest = sim.evaluate(hc.max(abs(hc.div(hc.Vector((vx, vy))))), hc.max(vx))
hc.print(f"divergence  {divergence:.1e}")
hc.print(f"fastest     {fastest:.4f}")
hc.print(f"checksum    {sim.checksum(vx)}")
out = os.environ.get("HALOCLINE_OUT", "out")
speed = hc.sqrt(hc.to(vx, "cell") ** 2 + hc.to(vy, "cell") ** 2)
hc.picture(
    sim, speed, f"{out}/obstacle_flow.png", title=f"Speed past a square, t = {sim.time:g}", label="speed"
)
