"""A small problem with a scalar and a vector."""

from __future__ import annotations

from typing import Any

import halocline as hc


def problem(shape: tuple[int, ...] = (8, 6), **execution: Any) -> tuple[hc.Simulation, hc.Field, hc.Vector]:
    """Return a simulation of decay, with its scalar and its vector field."""
    grid = hc.Grid(shape, periodic=True)
    u, w = grid.field("u"), grid.vector("w")

    def decay(u: Any, w: Any) -> Any:
        return {u: -u, w: -w}

    return hc.Simulation(grid, decay, scheme=hc.Euler(), dt=0.25, **execution), u, w
