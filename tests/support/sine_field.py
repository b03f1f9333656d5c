"""A small simulation, and a field of sines."""

from __future__ import annotations

from typing import Any

import halocline as hc


def sine(c: Any) -> Any:
    return {c: hc.laplacian(c)}


def simulation(shape: tuple[int, ...] = (8, 6)) -> hc.Simulation:
    grid = hc.Grid(shape, periodic=True)
    grid.field("c")
    return hc.Simulation(grid, sine, scheme=hc.Euler(), dt=1e-3, threads=1)
