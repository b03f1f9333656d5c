"""Checks of a run: values within inclusive bounds pass."""

from __future__ import annotations

import math

import pytest

import halocline as hc
from halocline.run.simulation.checks import Check


@pytest.mark.parametrize(
    ("check", "passed", "bound"),
    [
        (Check("error", 0.5, maximum=0.5), True, "at most 0.5"),
        (Check("error", 0.51, maximum=0.5), False, "at most 0.5"),
        (Check("order", 1.8, minimum=1.8), True, "at least 1.8"),
        (Check("order", 1.79, minimum=1.8), False, "at least 1.8"),
        (Check("order", 2.0, minimum=1.8, maximum=2.2), True, "1.8 to 2.2"),
        (Check("order", 2.3, minimum=1.8, maximum=2.2), False, "1.8 to 2.2"),
        (Check("mean", math.inf), True, "a number"),
        (Check("mean", math.nan), False, "a number"),
        (Check("mean", math.nan, maximum=1.0), False, "at most 1"),
        (Check.not_compared("u_max", "no published value"), True, "not compared"),
    ],
)
def test_a_value_within_its_bounds_passes(check: Check, passed: bool, bound: str) -> None:
    assert (check.passed, check.bound) == (passed, bound)


def test_bounds_are_numbers() -> None:
    with pytest.raises(hc.InputError, match="check 'error': maximum is 'small'; expected a number"):
        Check("error", 0.5, maximum="small")  # type: ignore[arg-type]
    with pytest.raises(hc.InputError, match="check 'error': value is None; expected a number"):
        Check("error", None)  # type: ignore[arg-type]
