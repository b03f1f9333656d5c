"""A program with a wide stencil, a wall and a sum."""

from __future__ import annotations

from typing import Any

import numpy as np

import halocline as hc


def star(shape: tuple[int, ...], order: int, **options: Any) -> tuple[str, float]:
    """Return the checksum and the sum of a wide stencil with walls and a periodic axis."""
    grid = hc.Grid(shape, periodic=(False,) * (len(shape) - 1) + (True,))
    u = grid.field("u", boundary=hc.Extrapolate(1))

    def step(u: Any) -> None:
        u.set(u + 0.01 * hc.laplacian(u, order=order) * grid.h(0) ** 2 + 0.1 * u * u)
        hc.scalar("total").set(hc.sum(u * u))

    sim = hc.Simulation(grid, hc.program(step), **options)
    sim[u] = np.random.default_rng(7).uniform(-1, 1, grid.shape)
    sim.run(steps=3)
    return sim.checksum(u), sim.values["total"]
