"""Restarts of a solve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError


def test_a_resumed_solve_needs_the_same_right_hand_side(tmp_path: Path) -> None:
    def problem(scale: float) -> hc.LinearProblem:
        grid = hc.Grid((24, 24), walls="node")
        u, k = grid.field("u", boundary=hc.Value(0.0)), grid.field("k", boundary=hc.Derivative(0.0))
        b = scale * np.random.default_rng(1).uniform(size=u.points)
        linear = hc.LinearProblem(lambda u: -hc.laplacian(u) + k * u, u, b, threads=1)
        linear.fields[k] = 1.0 + coefficient
        return linear

    coefficient = 0.0
    whole = problem(1.0).solve(rtol=1e-9)
    problem(1.0).solve(max_iterations=9, rtol=1e-9, checkpoint=hc.Checkpoint(tmp_path))
    with pytest.raises(InputError, match="the right-hand side has other values than in checkpoint"):
        problem(2.0).solve(resume=tmp_path)
    assert problem(1.0).solve(resume=tmp_path, rtol=1e-9).iterations == whole.iterations
    coefficient = 1.0
    with pytest.raises(InputError, match="field 'k' has other values than in checkpoint"):
        problem(1.0).solve(resume=tmp_path)
