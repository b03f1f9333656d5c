"""A program of many fields with different halos."""

from __future__ import annotations

from typing import Any

import numpy as np

import halocline as hc


def sum_of_fields(count: int, device: str) -> hc.Simulation:
    """Return a simulation whose first field becomes a sum over many fields with different halos."""
    grid = hc.Grid((6, 9), periodic=True)
    fields = [grid.field(f"u{n}") for n in range(count)]

    def change() -> dict[hc.Field, Any]:
        return {fields[0]: sum(u[n % 3, n % 2] / (n + 1) for n, u in enumerate(fields))}

    sim = hc.Simulation(grid, change, scheme=hc.Euler(), dt=1.0, device=device)
    random = np.random.default_rng(3)
    for u in fields:
        sim[u] = random.uniform(size=grid.shape)
    return sim
