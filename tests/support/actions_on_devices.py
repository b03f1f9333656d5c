"""Actions of users on devices, compared with the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import halocline as hc
from runs_on_devices import BOTH

ALONE = "opencl:0"  # on one rank the device runs ahead of the host


def on_both(act: Callable[..., Any], *devices: str) -> Any:
    """Return the result of an action, which must be the same on the CPU and on devices."""
    expected = act(threads=1)
    for device in devices or (BOTH,):
        assert act(device=device) == expected
    return expected


def smooth(u: Any) -> None:
    u.set(u + 0.1 * (u[1, 0] + u[-1, 0] - 2 * u) * u[0, 1])


def smoothed(active: Any = None, **options: Any) -> hc.Simulation:
    """Return a run of the program that most tests of actions use; it is compiled once."""
    grid = hc.Grid((18, 21), periodic=(True, False), active=active)
    u = grid.field("u", boundary=hc.Extrapolate(2))
    sim = hc.Simulation(grid, hc.program(smooth), dt=0.5, **options)
    sim[u] = np.random.default_rng(9).uniform(0.5, 1.5, grid.shape)
    return sim
