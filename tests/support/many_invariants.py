"""A program with many values that are equal in all cells, some of which change at each step."""

from __future__ import annotations

from typing import Any

import numpy as np

import halocline as hc

COUNT = 100  # more than fit into the registers of a thread


def weighted_steps(device: str, **execution: Any) -> list[str]:
    """Return the checksums of a field after two runs in which the weights depend on time."""
    grid = hc.Grid((12, 10, 8), periodic=True)
    u = grid.field("u")

    def change(t: Any, late: Any) -> dict[hc.Field, Any]:
        total: Any = u[1, 0, 0]
        for n in range(COUNT):
            total = hc.sqrt(abs(total)) * hc.exp(-t * (late + n))
        return {u: total}

    sim = hc.Simulation(
        grid, change, scheme=hc.RK3(), dt=0.01, parameters={"late": 0.5}, device=device, **execution
    )
    sim[u] = np.random.default_rng(3).uniform(1.0, 2.0, size=grid.shape)
    checksums = []
    for steps in (3, 2):
        sim.run(steps=steps)
        checksums.append(sim.checksum(u))
    return checksums
