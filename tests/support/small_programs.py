"""Small grids and programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halocline as hc


def square(**options: Any) -> tuple[hc.Grid, hc.Field, hc.Field]:
    """Return a periodic grid of two axes with fields u and v."""
    grid = hc.Grid((8, 6), periodic=True, **options)
    return grid, grid.field("u"), grid.field("v")


def run(
    grid: hc.Grid, program: Callable[..., Any], values: dict[hc.Field, Any], **options: Any
) -> hc.Simulation:
    """Run a program once from these values."""
    sim = hc.Simulation(grid, hc.program(program), **options)
    for f, value in values.items():
        sim[f] = value
    sim.run()
    return sim


# --- values of fields ---


def keep(u: Any, v: Any) -> None:
    """Multiply both fields by 1.5."""
    u.set(u * 1.5)
    v.set(v * 1.5)
