"""Starts of a linear solve: the tolerance does not depend on the start."""

from __future__ import annotations

import numpy as np

import halocline as hc


def test_an_implicit_step_may_start_from_the_last_one() -> None:
    """The right-hand side reads the values of the unknown before the solve, for any start."""
    grid = hc.Grid((24, 20), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    step = hc.LinearProblem(lambda v: v - 1e-3 * hc.laplacian(v), u, u + 1e-3)
    result = {}
    for start in ("zero", "last"):
        step.fields[u] = lambda x, y: x * (1 - x) * y
        result[start] = [step.solve(rtol=1e-10, start=start) for _ in range(3)][-1].fields.gather(u).copy()
    np.testing.assert_allclose(result["last"], result["zero"], rtol=1e-8)
    assert result["zero"].max() > 0.1
