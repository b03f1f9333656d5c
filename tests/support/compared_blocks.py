"""Runs with inactive blocks, compared with those of whole grids."""

from __future__ import annotations

from typing import Any

import numpy as np

import halocline as hc
from halocline.errors import InputError


def spread(mask: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The mask cell by cell, by the rule that blocks differ by at most one cell."""
    cells = np.zeros(shape, dtype=bool)
    for place in np.ndindex(mask.shape):
        box = tuple(
            slice(i * n // c, (i + 1) * n // c) for i, n, c in zip(place, shape, mask.shape, strict=True)
        )
        cells[box] = mask[place]
    return cells


def at_walls(grid: hc.Grid, condition: Any) -> Any:
    """Return the condition if the grid has walls."""
    return None if all(grid.periodic) else condition


def compared(case: dict[str, Any]) -> None:
    """Thin blocks at walls, conditions that read another field and far inward, several subdomains."""
    shape, mask, (a, b, c) = case["shape"], case["mask"], case["offsets"]
    cells = spread(mask, shape)
    start = np.random.default_rng(5).uniform(1, 2, shape) * cells
    made = []
    for holes in (True, False):
        grid = hc.Grid(shape, periodic=case["periodic"], active=mask if holes else None)
        far = hc.BoundaryKernel(lambda q: 0.5 * q[0] + q[case["depth"]] + 0.25)
        u = grid.field("u", boundary=at_walls(grid, far))
        v = grid.field("v", boundary=at_walls(grid, hc.BoundaryKernel(lambda q: q.of(u)[0] - 0.5)))  # noqa: B023
        fields = {"u": u, "v": v}
        if not holes:
            fields["inside"] = grid.field("inside", boundary=at_walls(grid, hc.Value(0.0)))

        def step(u: Any, v: Any, inside: Any = None) -> None:
            def kept(value: Any) -> Any:
                return value if inside is None else hc.where(inside > 0, value, 0.0)

            v.set(kept(0.5 * v[a] + u[b] + 1.0))
            u.set(kept(0.25 * u + 0.5 * v[c] - 0.125 * u[a]))

        program = hc.program(step if not holes else (lambda u, v: step(u, v)))
        how = {"subdomains_per_rank": case["subdomains"]} if holes else {}
        try:
            sim = hc.Simulation(grid, program, patch=3, **how)
        except InputError as error:
            if "cells along axis" in str(error) or "subdomain" in str(error):
                return  # too thin for what is read
            raise
        sim[u], sim[v] = start, 0.5 * start
        if not holes:
            sim["inside"] = cells.astype(float)
        sim.run(steps=3)
        made.append([np.array(sim.gather(name)) for name in "uv"])
    for with_holes, dense in zip(*made, strict=True):
        assert np.array_equal(with_holes, dense), case
