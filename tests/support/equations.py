"""Equations that several tests solve: heat in a periodic box, sound between walls, and Poisson's equation."""

from __future__ import annotations

import math
from typing import Any

import halocline as hc


def heat(shape: tuple[int, ...], **options: Any) -> hc.Simulation:
    """Return a simulation of a temperature T that starts as a product of waves."""
    grid = hc.Grid(shape, periodic=True)
    T = grid.field("T")
    step = 0.1 / (shape[0] ** 2 * grid.ndim)
    equations = lambda kappa: {T: kappa * hc.laplacian(T)}  # noqa: E731
    sim = hc.Simulation(
        grid, equations, parameters={"kappa": 1.0}, scheme=hc.RK3(), dt=step, order=6, **options
    )
    sim[T] = math.prod(hc.sin(2 * math.pi * x) for x in T.coordinates) + 0.5 * hc.cos(6 * math.pi * grid.x)
    return sim


def wave(shape: tuple[int, ...], **options: Any) -> hc.Simulation:
    """Return a simulation of a pulse of pressure p; the velocity v is on faces."""
    grid = hc.Grid(shape)
    p, v = grid.field("p", boundary=hc.Derivative(0.0)), grid.vector("v", location="face")

    @hc.program
    def step(dt: Any) -> None:
        h = [grid.h(axis) for axis in range(grid.ndim)]
        v.set(v - dt * hc.Vector((p - hc.shift(p, a, -1)) / h[a] for a in range(grid.ndim)))
        p.set(p - dt * sum((hc.shift(f, a) - f) / h[a] for a, f in enumerate(v)))

    sim = hc.Simulation(grid, step, dt=0.3 / shape[0], **options)
    sim[p] = hc.exp(-40.0 * sum((x - 0.4) ** 2 for x in grid.coordinates()))
    return sim


def poisson(n: int, dim: int, **options: Any) -> hc.LinearProblem:
    """Return the problem of UMBC HPCF-2018-10 on n points along each axis."""
    grid = hc.Grid((n,) * dim, walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    squares = [hc.sin(math.pi * x) ** 2 for x in u.coordinates]
    terms = [
        hc.cos(2 * math.pi * x) * math.prod(s for j, s in enumerate(squares) if j != i)
        for i, x in enumerate(u.coordinates)
    ]
    steps = [tuple(side * (a == axis) for a in range(dim)) for axis in range(dim) for side in (-1, 1)]
    return hc.LinearProblem(
        lambda v: 2 * dim * v - sum(v[step] for step in steps),
        u,
        grid.h(0) ** 2 * (-2 * math.pi**2 * sum(terms)),
        **options,
    )
