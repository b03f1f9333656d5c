"""A user-defined linear operator: -div(a grad u) + c u = f, in which a varies by a factor of fifty.

The system is solved by conjugate gradients on two grids and compared with a chosen solution.

python examples/own_operator.py [cells along each axis]
"""

import os
import sys

import numpy as np

import halocline as hc

n = int(sys.argv[1]) if len(sys.argv) > 1 else 256
c, pi, out = 3.0, np.pi, os.environ.get("HALOCLINE_OUT", "out")


def material(x, y):
    return np.exp(2 * np.sin(2 * pi * x) * np.sin(2 * pi * y))


def chosen(x, y):
    return np.sin(pi * x) * np.sin(2 * pi * y)


def source(x, y):
    """Return the operator applied to the chosen solution, derived by hand."""
    a, u = material(x, y), chosen(x, y)
    bend = np.cos(2 * pi * x) * np.cos(pi * x) * np.sin(2 * pi * y) ** 2
    bend = bend + 2 * np.sin(2 * pi * x) * np.sin(pi * x) * np.cos(2 * pi * y) ** 2
    return a * (5 * pi**2 * u - 4 * pi**2 * bend) + c * u


def solve(n):
    grid = hc.Grid((n, n))
    u = grid.field("u", boundary=hc.Value(0.0))

    def operator(u):
        result = c * u
        for axis in range(grid.ndim):
            faces = grid.coordinates(staggered=[a == axis for a in range(grid.ndim)])
            flow = material(*faces) * (u - hc.shift(u, axis, -1)) / grid.h(axis)
            result = result - (hc.shift(flow, axis) - flow) / grid.h(axis)
        return result

    solution = hc.solve(operator, u, source, rtol=1e-10)
    return u, solution, solution.fields.evaluate(hc.max(abs(u - chosen(grid.x, grid.y))))


(_, _, coarse), (u, solution, fine) = solve(n // 2), solve(n)
order = np.log2(coarse / fine)
hc.print(f"iterations  {solution.iterations}, residual {solution.residual_relative:.1e}")
hc.print(f"error       {fine:.2e}, on half the cells {coarse:.2e}: order {order:.2f}")
hc.print(f"checksum    {solution.fields.checksum(u)}")
flow = material(u.grid.x, u.grid.y) * hc.sqrt(hc.dot(hc.grad(u), hc.grad(u)))
hc.picture(solution, flow, f"{out}/own_operator.png", title="Flow through the material", label="|a grad u|")
assert solution.converged
assert 1.9 < order < 2.1
