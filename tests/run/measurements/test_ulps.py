"""Differences in units in the last place."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from halocline.run.measurements.ulps import greatest_ulps, ulps_of_states


@pytest.mark.parametrize("value", [1.0, -1.5, 3.0, 1e300, -7e-12, 2.0**-1000])
def test_units_are_those_of_each_value(value: float) -> None:
    """A unit in the last place follows Eq. 15: ε = 2^(⌊log2 |m|⌋ - p + 1), p = 53."""
    unit = math.ldexp(1.0, math.frexp(abs(value))[1] - 53)
    model = np.array([value, 1e-9, 5.0])
    assert greatest_ulps(model, np.array([value + 3 * unit, 1e-9, 5.0])) == 3.0
    assert greatest_ulps(model, model) == 0.0


def test_single_precision_has_larger_units() -> None:
    model = np.array([1.0], dtype=np.float32)
    assert greatest_ulps(model, model + np.float32(2.0**-22)) == 2.0


def test_nonfinite_values_are_equal_to_themselves() -> None:
    model = np.array([np.nan, np.inf, 0.0])
    assert greatest_ulps(model, model.copy()) == 0.0
    assert greatest_ulps(model, np.array([np.nan, np.inf, 5e-324])) == 1.0


def test_a_nonfinite_and_a_finite_value_differ_infinitely(tmp_path: Path) -> None:
    ones, broken = np.ones(2), np.array([1.0, np.nan])
    assert greatest_ulps(ones, broken) == greatest_ulps(broken, ones) == math.inf
    assert greatest_ulps(ones, np.array([1.0, np.inf])) == math.inf
    assert greatest_ulps(np.array([np.inf]), np.array([-np.inf])) == math.inf
    np.savez(tmp_path / "a.npz", u=ones, v=ones)
    np.savez(tmp_path / "b.npz", u=ones, v=broken)
    assert ulps_of_states(tmp_path / "a.npz", tmp_path / "b.npz") == math.inf


def test_states_are_compared_field_by_field(tmp_path: Path) -> None:
    ones = np.ones(3)
    np.savez(tmp_path / "a.npz", u=ones, v=ones, **{"u@": np.array([True])})
    np.savez(tmp_path / "b.npz", u=ones, v=ones + 2.0**-51, **{"u@": np.array([False])})
    assert ulps_of_states(tmp_path / "a.npz", tmp_path / "b.npz") == 2.0
