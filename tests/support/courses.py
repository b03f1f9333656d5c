"""Small runs with output and checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray

import halocline as hc


def heat(shape: tuple[int, ...] = (12, 10), **options: Any) -> hc.Simulation:
    """Return a small simulation of heat on a periodic grid."""
    grid = hc.Grid(shape, periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(
        grid,
        lambda T: {T: 0.1 * hc.laplacian(T)},
        **{"scheme": hc.RK3(), "dt": 1e-3, "threads": 1, **options},
    )
    sim[T] = np.random.default_rng(5).uniform(size=shape)
    return sim


def steps_of(path: Path) -> list[int]:
    """Return the step numbers in a store."""
    return [int(step) for step in xarray.open_zarr(path)["step"].values]


# -- callbacks
# -------------------------------------------------------------------------------------------------


def raises(error: Exception, at: int = 0) -> Any:
    """Return a callback that raises an error once a step is reached."""

    def callback(sim: hc.Simulation) -> None:
        if sim.steps >= at:
            raise error

    return callback
