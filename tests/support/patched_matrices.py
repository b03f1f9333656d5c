"""Random matrices of formulas, as dense matrices."""

from __future__ import annotations

from typing import Any

import halocline as hc

PATCHED = (10, 8)  # points of the grid below


def box_of(grid: Any) -> Any:
    """Return the condition that a point is in the box."""
    x, y, p = grid.x, grid.y, hc.parameter
    return (x > p("left")) & (x < p("right")) & (y > p("low")) & (y < p("high"))


def patched_laplacian(method: str, dtype: str = "float64", **options: Any) -> hc.LinearProblem:
    """Return a Laplacian with terms in a box, above a threshold, at a point and on a patch of the wall x-."""
    grid = hc.Grid(PATCHED)

    def wall(u: Any) -> Any:
        y = u.coordinates[1]
        return hc.where((y > hc.parameter("from_y")) & (y < hc.parameter("to_y")), -u[0], u[0])

    sides = {"x-": hc.BoundaryKernel(wall), "other": hc.Derivative(0.0)}
    u, f = grid.field("u", dtype=dtype, boundary=sides), grid.field("f", boundary=hc.Derivative(0.0))
    m = grid.field("m", boundary=hc.Derivative(0.0))
    names = ("left", "right", "low", "high", "box", "threshold", "pin", "pinned", "wind", "from_y", "to_y")

    def operator(v: Any) -> Any:
        p, inside = hc.parameter, box_of(grid)
        return (
            -hc.laplacian(v)
            + hc.where(inside, p("box") * v, 0.0)
            + hc.maximum(m - p("threshold"), 0.0) * v
            + hc.where(grid.cell_number() == p("pinned"), p("pin") * v, 0.0)
            + hc.where(inside, p("wind") * hc.derivative(v, 0), 0.0)
        )

    start = dict.fromkeys(names, 0.0) | {"threshold": 2.0}
    return hc.LinearProblem(operator, u, f, method=method, parameters=start, threads=1, **options)
