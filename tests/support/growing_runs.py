"""Runs whose values grow until they are not finite."""

from __future__ import annotations

from typing import Any

import pytest

import halocline as hc
from halocline.errors import RunError
from halocline.run.simulation.simulation import Simulation

STEPS = 1000  # more than until the overflow


def growing(**options: Any) -> Simulation:
    """Return a simulation of T' = a T + b T³: one cell grows as exp(a t), then overflows in a few steps."""
    grid = hc.Grid((12, 6), extent=(2.0, 1.0), periodic=True)
    T = grid.field("T")

    def terms(a: Any, b: Any) -> dict[Any, dict[str, Any]]:
        return {T: {"growth": a * T, "runaway": b * T**3, "diffusion": 1e-3 * hc.laplacian(T)}}

    def equations(a: Any, b: Any) -> dict[Any, Any]:
        (named,) = terms(a, b).values()
        return {T: sum(named.values())}

    sim = Simulation(
        grid,
        equations,
        terms=terms,
        parameters={"a": 1.0, "b": 1.0},
        **{"scheme": hc.RK3(), "dt": 0.02, "threads": 1, **options},
    )
    sim[T] = lambda x, y: 1e-3 * hc.exp(-10.0 * ((x - 1.3) ** 2 + (y - 0.4) ** 2))
    return sim


def failure(sim: Simulation, **options: Any) -> str:
    with pytest.raises(RunError) as caught:
        sim.run(**{"steps": STEPS, **options})
    return str(caught.value)
