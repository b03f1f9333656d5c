"""Runs that write output."""

from __future__ import annotations

from typing import Any

import numpy as np

import halocline as hc


def heat(shape: tuple[int, ...] = (12, 10, 8), **options: Any) -> hc.Simulation:
    grid = hc.Grid(shape, extent=(1.2, 1.0, 0.8)[: len(shape)], periodic=(True, False, True)[: len(shape)])
    T = grid.field("T", boundary=hc.Value(0.25))
    v = grid.field("v", location="face-y", dtype="float32", boundary=hc.Value(0.0))
    sim = hc.Simulation(
        grid,
        lambda T, v, kappa: {T: kappa * hc.laplacian(T), v: -v},
        **{"parameters": {"kappa": 0.1}, "scheme": hc.RK3(), "dt": 1e-3, "threads": 1, **options},
    )
    draw = np.random.default_rng(8)
    for f in (T, v):
        sim[f] = draw.uniform(size=f.points)
    return sim
