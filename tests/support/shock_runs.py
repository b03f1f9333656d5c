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
}  # as few cells as halos of five allow


def run(name: str, n: tuple[int, ...], given: dict[str, Any] | None = None, **how: Any) -> Result:
    return Problem(name, n, given).run(**{"threads": 1, **how})


def checked(name: str, n: tuple[int, ...], given: dict[str, Any] | None = None) -> dict[str, Check]:
    """What a case checks of itself, all of which must pass."""
    ready = Problem(name, n, given)
    found = {check.name: check for check in ready.run(threads=1).check()}
    assert all(check.passed for check in found.values()), [c for c in found.values() if not c.passed]
    return found


def checked_until(
    name: str, n: tuple[int, ...], until: float, given: dict[str, Any] | None = None
) -> dict[str, Check]:
    """The same at another time than the case's own."""
    ready = Problem(name, n, given)
    found = {check.name: check for check in ready.run(until=until, threads=1).check()}
    assert all(check.passed for check in found.values()), [c for c in found.values() if not c.passed]
    return found


def wave_error(n: tuple[int, ...], given: dict[str, Any]) -> float:
    """The error of a wave after one period."""
    return known_wave_error(n, **given)


@functools.cache
def known_wave_error(n: tuple[int, ...], **given: Any) -> float:
    ready = Problem("linear-wave", n, given)
    return next(c.value for c in ready.run(threads=1).check() if c.name == "error")


# -- the same bits everywhere ------------------------------------------------------------------------------


@functools.cache
def alone(name: str, **given: Any) -> str:
    checksum = run(name, SMALL[name], given, steps=4).record.checksum
    assert checksum is not None
    return checksum
