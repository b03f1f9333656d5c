"""Sound on a staggered grid."""

from __future__ import annotations

import math
from typing import Any

import halocline as hc


def acoustic(n: int, order: int, **options: Any) -> tuple[Any, Any]:
    """Return the simulation of a standing wave between walls, and the maximum error of its pressure."""
    grid = hc.Grid((n, n))
    p = grid.field("p", boundary=hc.Derivative(0.0))
    wall = {"x": hc.Antisymmetric(), "y": hc.Symmetric()}
    v = grid.vector(
        "v",
        location="face",
        boundary=[
            {"x-": wall["x"], "x+": wall["x"], "other": hc.Symmetric()},
            {"y-": wall["x"], "y+": wall["x"], "other": hc.Symmetric()},
        ],
    )
    sim = hc.Simulation(
        grid,
        lambda p, v: {p: -hc.div(v), v: -hc.grad(p)},
        scheme=hc.RK4(),
        dt=0.2 / n,
        order=order,
        **options,
    )
    k, time = math.pi, 0.4
    sim[p] = hc.cos(k * grid.x) * hc.cos(k * grid.y)
    sim[v[0]] = sim[v[1]] = 0.0
    sim.run(until=time)
    exact = math.cos(math.sqrt(2.0) * k * time) * hc.cos(k * grid.x) * hc.cos(k * grid.y)
    return sim, sim.evaluate(hc.max(abs(p - exact)))
