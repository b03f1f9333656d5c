"""Rows of numbers that steps compute, and when rows of output are published."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.archive import files, series
from halocline.errors import RunError
from halocline.run.simulation import course
from test_stores import opened


def diffusion(**how: Any) -> hc.Simulation:
    """Diffusion of a field of known values on a small grid."""
    grid = hc.Grid((12, 8), periodic=True)
    T = grid.field("T")
    how = {"scheme": hc.RK2(), "dt": 1e-3, "threads": 1, **how}
    sim = hc.Simulation(grid, lambda T, kappa: {T: kappa * hc.laplacian(T)}, parameters={"kappa": 0.1}, **how)
    sim[T] = np.random.default_rng(3).standard_normal((12, 8))
    return sim


def numbers(sim: hc.Simulation) -> dict[str, Any]:
    T = sim.grid.fields["T"]
    return {"total": hc.sum(T * T), "most": hc.max(abs(T)), "mixed": hc.sum(T) / hc.max(T)}


VARYING = {"dt": lambda T: 1e-3 / (1.0 + hc.max(abs(T)))}


@pytest.mark.parametrize("how", [{}, VARYING], ids=["constant", "varying"])
def test_steps_compute_the_numbers_that_a_pause_would(tmp_path: Path, how: dict[str, Any]) -> None:
    """A callback evaluates the same expressions between two steps, and does not change the rows."""
    sim, plain = diffusion(**how), diffusion(**how)
    rows: list[tuple[float, ...]] = []

    def look(sim: hc.Simulation) -> None:
        rows.append((sim.time, sim.steps, *(sim.evaluate(e) for e in numbers(sim).values())))

    look(plain)
    plain.run(until=0.0101, every=1, callback=look)
    outputs = [
        hc.Output(tmp_path / f"{n}.zarr", numbers(sim) if n == 1 else {"most": hc.max(sim.grid.fields["T"])}, every=n)
        for n in (1, 4)
    ]
    sim.run(until=0.0101, output=outputs)
    assert sim.checksum("T") == plain.checksum("T")
    found = opened(tmp_path / "1.zarr")
    columns = [found[name].values for name in ("time", "step", *numbers(sim))]
    assert len(rows) > 8
    np.testing.assert_array_equal(np.array(columns).T, np.array(rows))
    steps = opened(tmp_path / "4.zarr")["step"].values
    assert steps.tolist() == list(range(0, sim.steps + 1, 4))
