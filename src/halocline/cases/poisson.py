"""Poisson equation -Δu = f with u = 0 on the boundary of the unit interval, square or cube.

The spacing is h = 1 / (n + 1), and walls are at distance h from the outer points. The exact solution is
u = Π sin²(π x_i), so f = -2 π² Σ_i cos(2 π x_i) Π_(j≠i) sin²(π x_j).

Source: UMBC HPCF-2018-10, Sections 2 and 3.
"""

import math

import halocline as hc

shape = hc.cells(512, 512, also=[(512,), (96, 96, 96)])
method = hc.setting(
    "method",
    "cg-fused",
    "1",
    "cg: conjugate gradients as in the UMBC report; cg-fused: the same with two sweeps per iteration",
    words=("cg", "cg-fused"),
)
rtol = hc.setting(
    "rtol",
    1e-6,
    "1",
    "relative tolerance: residual norm at the end, relative to the norm of the right-hand side",
    above=0.0,
)

if len(set(shape)) > 1:
    points = ",".join(map(str, shape))
    raise hc.InputError(f"n is {points}; expected the same number of points along each axis")
grid = hc.Grid(shape, walls="node")
u = grid.field("u", boundary=hc.Value(0))


def operator(v):
    """Return h² times the negative Laplacian: 2 dim v minus the sum of the neighbours (Eqs. 2.2 and 2.3)."""
    axes = range(grid.ndim)
    neighbours = [v[tuple(side * (a == axis) for a in axes)] for axis in axes for side in (-1, 1)]
    return 2 * grid.ndim * v - sum(neighbours[1:], start=neighbours[0])


def squared_sines(coordinates):
    return math.prod(hc.sin(math.pi * x) ** 2 for x in coordinates)


def right_hand_side():
    """Return h² f (Eq. 3.1)."""
    x = u.coordinates
    terms = [hc.cos(2 * math.pi * x[i]) * squared_sines(x[:i] + x[i + 1 :]) for i in range(len(x))]
    return grid.h(0) ** 2 * (-2 * math.pi**2 * sum(terms[1:], start=terms[0]))


def exact(time):
    return {u: squared_sines(u.coordinates)}


def pictures():
    return {"solution": u, "error": u - exact(0.0)[u]}


key_diagnostics = ("residual_relative", "true_residual_relative")
hc.solve(operator, u, right_hand_side(), method=method, rtol=rtol)
