"""Runs with shocks, and their checks."""

from __future__ import annotations

import functools
from typing import Any

from halocline.problems.problem import Problem
from halocline.problems.result import Result
from halocline.run.simulation.checks import Check

SMALL = {
    "rj2a": (40,),
    "orszag-tang": (20, 18),
    "field-loop": (24, 12),
    "blast": (12, 14, 16),
}  # the smallest grids that halos of five allow


def run(name: str, n: tuple[int, ...], parameters: dict[str, Any] | None = None, **options: Any) -> Result:
    """Run a case and return the result."""
    return Problem(name, n, parameters).run(**{"threads": 1, **options})


def passed_checks(
    name: str, n: tuple[int, ...], parameters: dict[str, Any] | None = None
) -> dict[str, Check]:
    """Return the checks of a case, all of which pass."""
    problem = Problem(name, n, parameters)
    checks = {check.name: check for check in problem.run(threads=1).check()}
    assert all(check.passed for check in checks.values()), [c for c in checks.values() if not c.passed]
    return checks


def passed_checks_until(
    name: str, n: tuple[int, ...], until: float, parameters: dict[str, Any] | None = None
) -> dict[str, Check]:
    """Return the checks of a case at the time `until`, all of which pass."""
    problem = Problem(name, n, parameters)
    checks = {check.name: check for check in problem.run(until=until, threads=1).check()}
    assert all(check.passed for check in checks.values()), [c for c in checks.values() if not c.passed]
    return checks


def wave_error(n: tuple[int, ...], parameters: dict[str, Any]) -> float:
    """Return the error of a wave after one period."""
    return known_wave_error(n, **parameters)


@functools.cache
def known_wave_error(n: tuple[int, ...], **parameters: Any) -> float:
    """Return the error of a wave after one period, from a cache."""
    problem = Problem("linear-wave", n, parameters)
    return next(c.value for c in problem.run(threads=1).check() if c.name == "error")


# -- identical bits ------------------------------------------------------------------------------------------


@functools.cache
def checksum_of_run(name: str, **parameters: Any) -> str:
    """Return the checksum of a small run in this process."""
    checksum = run(name, SMALL[name], parameters, steps=4).record.checksum
    assert checksum is not None
    return checksum
