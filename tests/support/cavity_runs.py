"""Runs of cavities, and published numbers."""

from __future__ import annotations

import functools
import math
from typing import Any

from halocline.problems.problem import Problem
from halocline.problems.result import Result


def published(name: str) -> dict[float, dict[str, float]]:
    """Return the published numbers in the file of a case, by Rayleigh number."""
    problem = Problem(name)
    assert problem.program
    numbers: dict[float, dict[str, float]] = problem.script.top["KNOWN"]
    return numbers


PLANAR, CUBIC = published("cavity-2d"), published("cavity")


def run(name: str, n: tuple[int, ...], parameters: dict[str, Any] | None = None, **options: Any) -> Result:
    """Run a case and return the result."""
    return Problem(name, n, parameters).run(**{"threads": 1, **options})


@functools.cache
def steady(name: str, n: int, rayleigh: float, **parameters: float | str) -> Result:
    """Run a cavity to its steady state and return the result."""
    result = run(name, (n,), {"Ra": rayleigh, **parameters}, steps=200_000)
    assert result.record.steps < 200_000
    return result


def steady_diagnostic(
    name: str, n: int, rayleigh: float, name_of_diagnostic: str, **parameters: float | str
) -> float:
    """Return a diagnostic of a cavity in its steady state."""
    diagnostics = steady(name, n, rayleigh, **parameters).record.diagnostics
    assert diagnostics is not None
    return float(diagnostics[name_of_diagnostic] or math.nan)


def richardson(values: list[float], sizes: list[int]) -> tuple[float, float]:
    """Return the observed order on three meshes of equal refinement ratio, and the extrapolated value.

    The extrapolation uses the last two meshes and order 2.
    """
    ratio = (sizes[-1] + 1) / (sizes[-2] + 1)
    order = math.log((values[0] - values[1]) / (values[1] - values[2])) / math.log(ratio)
    return order, values[2] + (values[2] - values[1]) / (ratio**2 - 1)


SMALL = {"cavity": (12, 12, 11), "cavity-2d": (20, 18)}


@functools.cache
def alone(name: str, stages: int, **settings: Any) -> str:
    from mpi4py import MPI

    all_settings = {"stages": stages, "watch": 5, **settings}
    record = (
        Problem(name, SMALL[name], all_settings).run(steps=12, threads=1, communicator=MPI.COMM_SELF).record
    )
    assert record.checksum is not None
    return record.checksum


GATHERED = {"gathered": 0.5}
