"""Residuals of conjugate gradients."""

from __future__ import annotations

import json
import os

import preloaded
from linear_problem import problem


def test_single_precision_reaches_the_rounding_limit_earlier() -> None:
    solution = problem(dtype="float32").solve(rtol=1e-9)
    assert (solution.converged, solution.reason) == (False, "rounding limit")
    assert solution.residual_relative <= 1e-9 < 1e-8 < solution.true_residual_relative


def test_the_command_reports_both_residuals(tmp_path) -> None:
    line = "solve poisson --n 64 --rtol 1e-30 --json r.json"
    process = preloaded.halocline(*line.split(), cwd=tmp_path, env={**os.environ, "COLUMNS": "120"})
    assert process.returncode == 0
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["residual_relative"] <= 1e-30 < 1e-16 < record["true_residual_relative"]
    assert (record["converged"], record["reason"]) == (False, "rounding limit")
    (line,) = (line for line in process.stdout.splitlines() if line.startswith("true residual"))
    assert line.split()[2] == f"{record['true_residual_relative']:.3g}"
    assert line.endswith("limited by rounding errors")
    assert "because of rounding errors. Use rtol=" in process.stderr
