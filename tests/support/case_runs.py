"""Short runs of cases."""

from __future__ import annotations

from typing import Any

from halocline.problems.problem import Problem
from halocline.problems.result import Result


def run(name: str, n: list[int], parameters: dict[str, float] | None = None, **options: Any) -> Result:
    """Run a case and return the result."""
    return Problem(name, n, parameters).run(**{"threads": 1, **options})


# -- convection ----------------------------------------------------------------------------------------


def layer(n: list[int], until: float, **parameters: float) -> list[dict[str, Any]]:
    """Run a convection layer and return its time series."""
    return run("convection", n, parameters, until=until, every=50).record.series
