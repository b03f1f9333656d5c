"""A blast wave from almost a point, in cold gas (Sedov 1959), with a fallback to a first-order flux.

The states at the faces are reconstructed with steep slopes of the conserved variables, so that density or
pressure may be negative. At such faces, the flux is computed from the cell averages. The program
counts the vectors of 8 faces and the pieces of 128 faces in which at least one face falls back. A processor
computes the first-order flux only in the pieces that need it.

python examples/sedov.py [cells along each axis] [end of time]
"""

import os
import sys

import hancock
import numpy as np
from gas import GAMMA, hllc, primitive

import halocline as hc

n = int(sys.argv[1]) if len(sys.argv) > 1 else 128
end = float(sys.argv[2]) if len(sys.argv) > 2 else 0.15
ALPHA = 0.9840  # E t^2 / (rho R^4) in the plane (Kamm and Timmes 2007: R = 0.75 at t = 1 for E = 0.311357)
COLD = 1e-6  # pressure of the surrounding gas
grid = hc.Grid((n, n), extent=(1.0, 1.0), origin=(-0.5, -0.5), periodic=True)
rho, E, m = grid.field("rho"), grid.field("E"), grid.vector("m")
fell = grid.vector("fell", location="face")  # 1 at faces at which this step fell back
h = [grid.h(axis) for axis in range(grid.ndim)]


def steep(v, axis):
    """Return twice the smaller difference, or the central difference if it is smaller; 0 at an extremum."""
    pairs = zip(v - hc.shift(v, axis, -1), hc.shift(v, axis) - v, strict=True)
    return hc.Vector(
        hc.where(a * b > 0, hc.sign(a) * hc.min(2 * abs(a), 2 * abs(b), 0.5 * abs(a + b)), 0.0)
        for a, b in pairs
    )


def physical(w):
    return (w[0] > 0) & (w[-1] > 0)


@hc.program
def step(rho, m, E, fell, dt):
    U, F, good = hc.Vector((rho, *m, E)), [], []
    cells = primitive(U)
    for a, (below, above) in enumerate(hancock.states(U, dt, h, steep, primitive)):
        good.append(physical(below) & physical(above))
        second, first = hllc(below, above, a), hllc(hc.shift(cells, a, -1), cells, a)
        F.append(hc.stage(hc.branch(good[a], second, first), f"flux_{a}"))
    fell.set([hc.where(g, 0.0, 1.0) for g in good])
    hc.scalar("fallbacks").set(sum(hc.count(f > 0) for f in fell))
    U.set(hancock.advanced(U, F, dt, h))


def fallback_pieces(flags, length):
    """Return the number of row pieces with a face that fell back, and the number of all row pieces."""
    pieces = np.logical_or.reduceat(flags, np.arange(0, n, length), axis=-1)
    return np.array((pieces.sum(), pieces.size))


sim = hc.Simulation(grid, step, dt=lambda rho, m, E: hancock.time_step((rho, *m, E), h))
sim[rho], sim[E] = 1.0, lambda x, y: np.where(x * x + y * y < (3 / n) ** 2, 1.0, 0.0)
sim[E] = COLD / (GAMMA - 1) + E * (grid.size / sim.evaluate(hc.sum(E)))  # the energy of the blast is 1
p = primitive((rho, *m, E))[-1]
totals, ratio = sim.evaluate(hc.sum(rho), hc.sum(E)), sim.evaluate(hc.max(p)) / COLD
faces, vectors, pieces = 0, np.zeros(2), np.zeros(2)
while sim.time < end:
    count = sim.run(until=end, steps=1).scalars["fallbacks"]
    flags = [sim.gather(f) for f in fell] if count else np.zeros((2, n, n))
    faces += count
    if flags[0] is not None:  # the first rank has the flags
        vectors, pieces = vectors + fallback_pieces(flags, 8), pieces + fallback_pieces(flags, 128)

*final, peak = sim.evaluate(hc.sum(rho), hc.sum(E), hc.max(p))
lost = [1 - after / before for before, after in zip(totals, final, strict=True)]
# the blast is the region with more than a fifth of the peak pressure
inside, *least = sim.evaluate(hc.count(p > 0.2 * peak), hc.min(rho), hc.min(p))
radius, exact = np.sqrt(inside / grid.size / np.pi), (end**2 / ALPHA) ** 0.25
hc.print(f"steps             {sim.steps}")
hc.print(f"pressure ratio    {ratio:.1e}")
hc.print(f"fallbacks         {faces:.0f}")
hc.print(f"of all faces      {faces / (2 * grid.size * sim.steps):.1e}")
hc.print(f"of vectors of 8   {vectors[0] / vectors[1]:.1e}")
hc.print(f"of pieces of 128  {pieces[0] / pieces[1]:.1e}")
hc.print(f"least density     {least[0]:.3g}")
hc.print(f"least pressure    {least[1]:.3g}")
hc.print(f"mass lost         {lost[0]:.1e}")
hc.print(f"energy lost       {lost[1]:.1e}")
hc.print(f"shock radius      {radius:.4f}, of the similarity solution {exact:.4f}")
hc.print(f"radius error      {radius / exact - 1:.1e}")
hc.print(f"checksum          {sim.checksum(rho)}")
out = os.environ.get("HALOCLINE_OUT", "out")
hc.picture(sim, rho, f"{out}/sedov.png", title="A blast from a point", label="density", cmap="inferno")
assert max(map(abs, lost)) < 1e-13
assert min(least) > 0
assert abs(radius / exact - 1) < 3 / n
