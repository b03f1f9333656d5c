"""A small run of diffusion."""

from __future__ import annotations

from typing import Any

import numpy as np

import halocline as hc


def diffusion(**options: Any) -> hc.Simulation:
    """Return a simulation of diffusion of a field of known values on a small grid."""
    grid = hc.Grid((12, 8), periodic=True)
    T = grid.field("T")
    options = {"scheme": hc.RK2(), "dt": 1e-3, "threads": 1, **options}
    sim = hc.Simulation(
        grid, lambda T, kappa: {T: kappa * hc.laplacian(T)}, parameters={"kappa": 0.1}, **options
    )
    sim[T] = np.random.default_rng(3).standard_normal((12, 8))
    return sim
