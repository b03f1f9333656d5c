"""Solves of the Poisson problem, and published numbers."""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

from halocline.problems.problem import Problem
from halocline.problems.result import Result


def published() -> dict[int, dict[str, str]]:
    """Return the rows of UMBC HPCF-2018-10, Table 3.1, by n."""
    lines = (Path(__file__).parents[1] / "data" / "poisson_convergence.csv").read_text().splitlines()
    return {int(row["n"]): row for row in csv.DictReader(x for x in lines if not x.startswith("#"))}


def solve_with_result(n, dim=2, *, max_iterations=None, **options) -> tuple[SimpleNamespace, Result]:
    """Return the report of `solve poisson --json`, and the result behind it."""
    parameters = {name: options.pop(name) for name in ("method", "rtol") if name in options}
    case = Problem("poisson", [n], parameters, dim=dim)
    result = case.run(steps=max_iterations, **options)
    return SimpleNamespace(**asdict(result.record) | result.findings()), result


def record_of(n, dim=2, **options) -> SimpleNamespace:
    """Return the report of `solve poisson --json`."""
    return solve_with_result(n, dim, **options)[0]


# -- the published numbers -----------------------------------------------------------------------------------


def check_published(record: SimpleNamespace) -> None:
    """Check a report against the published iterations and errors."""
    row = published()[record.n]
    assert abs(record.iterations - int(row["iterations"])) <= 1
    assert f"{record.error_max:.2e}" == f"{float(row['error_max']):.2e}"
