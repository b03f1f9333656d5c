"""Stores that the tests export and list."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import halocline as hc


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write output in one to three dimensions and checkpoints, and return their folder."""
    path = tmp_path_factory.mktemp("stores")
    for shape in ((7,), (7, 5), (7, 5, 6)):
        grid = hc.Grid(shape, extent=(1.4, 1.0, 3.0)[: len(shape)])
        T = grid.field("T", boundary=hc.Value(0.0))
        v = grid.field("v", location="face-x", dtype="float32", boundary=hc.Value(0.0))
        sim = hc.Simulation(grid, lambda T, v: {T: -T, v: -v}, scheme=hc.Euler(), dt=0.1, threads=1)
        for f in (T, v):
            sim[f] = np.random.default_rng(len(shape)).uniform(size=f.points)
        options = (
            {"checkpoint": hc.Checkpoint(path / "checkpoints", every=hc.steps(2))} if len(shape) == 2 else {}
        )
        outputs = [
            hc.Output(path / f"{len(shape)}.zarr", every=hc.steps(1), units={"T": "K"}),
            hc.Output(path / f"numbers{len(shape)}.zarr", {"sum": hc.sum(T)}, every=hc.steps(1)),
        ]
        sim.run(steps=3, output=outputs, **options)
    return path
