"""Cells with deficient values, before and after mixing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import halocline as hc
from halocline.lang.program import scalar
from halocline.physics.mhd_tvd import IdealMHD
from halocline.physics.mhd_tvd.mixing import mix
from halocline.problems.record import Record

BELOW = ("density floor", "pressure floor")


def mixed(
    shape: tuple[int, ...], fields: dict[str, Any], walls: Any = None, dtype: str = "float64", **options: Any
) -> dict[str, NDArray[np.float64]]:
    """Return the fields after the exchange passes, on a periodic grid or one with walls on all sides."""
    boundary = None if walls is None else {"rho": walls, "m": walls, "E": walls, "b": hc.Symmetric()}
    mhd = IdealMHD(hc.Grid(shape, periodic=walls is None, dtype=dtype), boundary=boundary)

    @hc.program
    def step() -> None:
        cells = scalar("cells")
        cells.set(1.0)
        mix(mhd.rho, mhd.m, mhd.E, mhd.b, cells)

    sim = hc.Simulation(mhd.grid, step, **{"threads": 1} | options)
    for name, values in fields.items():
        sim[name] = values
    sim.run(steps=1)
    return {name: np.array(sim.gather(name)) for name in fields}


def random_fields(shape: tuple[int, ...], seed: int, share: float) -> dict[str, Any]:
    """Return a gas in which a share of the cells lacks mass or heat, by less than the total of the grid."""
    draw = np.random.default_rng(seed)
    rho = draw.uniform(0.5, 2.0, shape)
    rho[draw.random(shape) < share] = -0.1
    fields: dict[str, Any] = {"rho": rho}
    fields |= {f"m_{a}": draw.normal(size=shape) for a in "xyz"}
    fields |= {f"b_{a}": np.full(shape, draw.normal()) for a in "xyz"}
    heat = draw.uniform(1.0, 3.0, shape)
    heat[draw.random(shape) < share] = -0.5
    motion = sum(fields[f"m_{a}"] ** 2 for a in "xyz") / np.where(rho > 0, rho, 1.0)
    magnetic = sum(fields[f"b_{a}"] ** 2 for a in "xyz")
    return fields | {"E": heat + 0.5 * motion + 0.5 * magnetic}


def kept_without_floors(record: Record) -> None:
    """Assert that no floor acted, and that mass and energy are those of the start."""
    assert record.events is not None
    assert [record.events[name]["count"] for name in BELOW] == [0, 0]
    before, after = record.series[0], record.series[-1]
    for name in ("mass", "energy"):
        assert after[name] == pytest.approx(before[name], rel=1e-13), name
