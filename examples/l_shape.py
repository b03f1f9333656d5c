"""The lowest mode of an L-shaped drum of three unit squares, by inverse iteration on a grid with a hole.

The block of the fourth square is inactive: it is not computed, needs no memory and is zero, as the rim is.
The eigenvalue is compared with 9.6397238440219 (Betcke and Trefethen, SIAM Review 47, 2005).

python examples/l_shape.py [points along both squares, an odd number]
"""

import os
import sys

import numpy as np

import halocline as hc

n = int(sys.argv[1]) if len(sys.argv) > 1 else 255
out = os.environ.get("HALOCLINE_OUT", "out")


def lowest_mode(n):
    # n is odd, so the points at the rim of the hole belong to the inactive block
    grid = hc.Grid((n, n), extent=2.0, walls="node", active=[[True, True], [True, False]])
    u, f = (grid.field(name, boundary=hc.Value(0.0)) for name in "uf")
    problem = hc.LinearProblem(lambda u: -hc.laplacian(u), u, f)
    problem.fields[u] = 1.0
    for _ in range(8):
        problem.fields[f] = u / problem.fields.evaluate(hc.max(abs(u)))
        solution = problem.solve(rtol=1e-8, start="last")  # the previous mode is the initial guess
    uu, uf = problem.fields.evaluate(hc.dot(u, u), hc.dot(u, f))
    return u, solution, uf / uu


(_, _, coarse), (u, solution, eigenvalue) = lowest_mode(n // 2), lowest_mode(n)
exact = 9.6397238440219
error, coarse_error = abs(eigenvalue - exact), abs(coarse - exact)
order = np.log2(coarse_error / error)
hc.print(f"eigenvalue  {eigenvalue:.6f}, exact {exact:.6f}")
hc.print(f"error       {error:.2e}, on half the points {coarse_error:.2e}: order {order:.2f}")
hc.print(f"computed    {u.grid.active_cells} of {u.grid.size} points")
hc.print(f"checksum    {solution.fields.checksum(u)}")
hc.picture(solution, u, f"{out}/l_shape.png", title="The lowest mode", label="u")
assert solution.converged
assert 1.0 < order < 2.1
