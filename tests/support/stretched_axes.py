"""Maps of stretched axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import halocline as hc


def wall_map(amount: float, length: float = 1.0) -> Any:
    """Return a map that concentrates the points at both walls."""

    def coordinate(x: Any) -> Any:
        return x - amount * length / (2 * math.pi) * np.sin(2 * math.pi * x / length)

    return coordinate


def one_wall(x: Any) -> Any:
    """Map an axis from 1 to 3 so that points concentrate at the lower wall, with curvature at both walls."""
    s = 0.5 * (x - 1.0)
    return 1.0 + 2.0 * s * (0.6 + 0.4 * s)


def convection(**options: Any) -> str:
    """Return the checksum of diffusion and advection on three axes, two of them stretched."""
    grid = hc.Grid(
        (9, 8, 12),
        extent=(2.0, 1.0, 1.0),
        origin=(1.0, 0.0, 0.0),
        periodic=(False, True, False),
        walls=("face", "face", "node"),
        stretch={"x": one_wall, "z": wall_map(0.6)},
    )
    conditions = {"x-": hc.Value(1.0), "x+": hc.Derivative(0.5), "other": hc.Derivative(0.0)}
    T = grid.field("T", boundary=conditions)
    sim = hc.Simulation(
        grid,
        lambda T: {T: 0.01 * hc.laplacian(T) - hc.derivative(T, 0) - 0.3 * hc.derivative(T, 2, 0)},
        scheme=hc.RK3(),
        dt=1e-3,
        **options,
    )
    sim[T] = lambda x, y, z: np.exp(-x) + np.cos(2 * math.pi * y) * z
    sim.run(steps=6)
    return sim.checksum(T)
