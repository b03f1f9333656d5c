"""Numbers extrapolated from three grids: the arithmetic, its use in studies, and one small study."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from halocline.errors import InputError
from halocline.study.richardson import Trend, asymptotic, limit, order

RATIOS = st.floats(1.05, 10.0)
ORDERS = st.floats(0.25, 6.0)
NUMBERS = st.floats(0.1, 100.0) | st.floats(-100.0, -0.1)


@given(f0=NUMBERS, a=NUMBERS, p=ORDERS, r21=RATIOS, r32=RATIOS)
def test_a_power_of_the_spacing_is_recovered(f0: float, a: float, p: float, r21: float, r32: float) -> None:
    """The power is recovered for all ratios; Celik's iteration diverges for some of them."""
    spacings = [r21 * r32, r21, 1.0]
    h = [0.1 * spacing for spacing in spacings]
    values = [f0 + a * spacing**p for spacing in h]
    assume(abs(values[1] - values[2]) > 1e-4 * max(map(abs, values)))  # otherwise round-off dominates
    result = limit(values, h)
    assert result.trend == Trend.FALLS
    assert result.order == pytest.approx(p, rel=1e-6, abs=1e-6)
    assert result.value == pytest.approx(f0, rel=1e-6, abs=1e-6 * max(map(abs, values)))
    assert result.ratio == pytest.approx((values[0] - values[1]) / (values[1] - values[2]))
    if result.index:  # 1.25 times the remaining difference
        assert result.index * abs(values[2]) == pytest.approx(1.25 * abs(f0 - values[2]), rel=1e-4)
    if values[1]:
        assert result.range_observed == pytest.approx(abs(values[2] / values[1]), rel=1e-6)


@given(ratio=st.floats(1e-6, 1e16), r21=RATIOS, r32=RATIOS)
def test_an_order_solves_its_equation(ratio: float, r21: float, r32: float) -> None:
    p, least = order(ratio, r21, r32), math.log(r32) / math.log(r21)
    assume(abs(ratio / least - 1.0) > 1e-3)
    assert (p is not None) == (ratio > least)  # a smaller decrease has no limit
    if p is not None:
        a21, a32 = p * math.log(r21), p * math.log(r32)
        right = math.log(ratio) + math.log(math.expm1(-a21) / math.expm1(-a32)) + a21 - a32
        assert a21 == pytest.approx(right, rel=1e-6, abs=1e-6)
    limit([ratio + 1.0, 1.0, 0.0], [r21 * r32, r21, 1.0])  # no number is too large for a float


def test_the_example_of_nasa_is_reproduced() -> None:
    """The results agree with those of NPARC Alliance, Examining Spatial (Grid) Convergence: an inlet."""
    values, spacings = [0.96178, 0.96854, 0.97050], [4.0, 2.0, 1.0]
    result = limit(values, spacings)
    assert result.order == pytest.approx(1.786170, abs=5e-7)
    assert result.value == pytest.approx(0.97130, abs=5e-6)
    assert result.index == pytest.approx(0.103083e-2, rel=1e-5)
    assert result.range_observed == pytest.approx(0.356249 / (2**1.786170 * 0.103083), rel=1e-5)
    assert result.range_expected == asymptotic(values, spacings, 2.0) == pytest.approx(0.8640, abs=5e-5)


def test_the_example_of_celik_is_reproduced() -> None:
    """The results agree with Celik et al. 2008, Table 1, first column: 4500, 8000 and 18,000 cells."""
    result = limit([5.863, 5.972, 6.063], [(1.0 / cells) ** 0.5 for cells in (4500, 8000, 18_000)])
    assert result.order == pytest.approx(1.53, abs=5e-3)
    assert result.value == pytest.approx(6.1685, abs=5e-5)
    assert result.index == pytest.approx(0.022, abs=5e-4)


@given(f=NUMBERS, fine=NUMBERS, by=st.floats(0.01, 100.0), r21=RATIOS, r32=RATIOS)
def test_oscillating_values_have_no_order(f: float, fine: float, by: float, r21: float, r32: float) -> None:
    values = [f - fine - by * fine, f - fine, f]
    values[0] = values[1] + by * fine
    assume(abs(fine) > 1e-6 * abs(f))
    result = limit(values, [r21 * r32, r21, 1.0], 2.0)
    assert result.trend == Trend.OSCILLATES
    assert (result.order, result.value, result.range_observed, result.range_expected) == (None,) * 4
    assert result.safety == 3.0
    assert result.index == pytest.approx(3.0 * abs((values[2] - values[1]) / f) / (r21**2 - 1.0))


@pytest.mark.parametrize(
    ("values", "trend"),
    [
        ([1.0, 2.0, 4.0], Trend.DOES_NOT_FALL),
        ([1.0, 2.0, 3.0], Trend.DOES_NOT_FALL),
        ([1.0, 1.0, 2.0], Trend.DOES_NOT_FALL),
        ([1.0, 2.0, 2.0], Trend.WITHIN_NOISE),
        ([2.0, 2.0, 2.0], Trend.WITHIN_NOISE),
        ([1.0, 3.0, 2.0], Trend.OSCILLATES),
        ([1.0, 2.0, 2.5], Trend.FALLS),
    ],
)
def test_an_order_needs_decreasing_differences(values: list[float], trend: Trend) -> None:
    result = limit(values, [4.0, 2.0, 1.0])
    assert result.trend == trend
    assert (result.order is None) == (result.value is None) == (trend != Trend.FALLS)
    assert result.safety == (1.25 if trend == Trend.FALLS else 3.0)


def test_the_decrease_of_differences_is_relative_to_the_spacings() -> None:
    """A difference must fall more from spacing 10 to 2 than from 2 to 1: 8 times even at order 1."""
    assert limit([10.0, 2.0, 1.0], [10.0, 2.0, 1.0]).order == pytest.approx(1.0)
    assert limit([4.0, 2.0, 1.0], [10.0, 2.0, 1.0]).trend == Trend.DOES_NOT_FALL


def test_differences_at_the_iteration_tolerance_have_no_order() -> None:
    values, spacings = [1.16, 1.04, 1.01], [4.0, 2.0, 1.0]
    assert limit(values, spacings, noise=0.02).trend == Trend.FALLS
    result = limit(values, spacings, noise=0.04)
    assert result.trend == Trend.WITHIN_NOISE
    assert result.index == pytest.approx(0.04)  # 3 times the noise, over 2² - 1
    assert limit([0.4, 0.1, 0.0], spacings).index is None  # zero has no relative value


@pytest.mark.parametrize(
    ("values", "spacings", "expected", "words"),
    [
        ([1.0, 2.0], [4.0, 2.0, 1.0], 2.0, "expected three finite numbers"),
        ([1.0, 2.0, math.nan], [4.0, 2.0, 1.0], 2.0, "expected three finite numbers"),
        ([1.0, 2.0, 3.0], [4.0, 2.0], 2.0, "expected three finite numbers"),
        ([1.0, 2.0, 3.0], [4.0, 2.0, 2.0], 2.0, "expected positive numbers that decrease"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], 2.0, "expected positive numbers that decrease"),
        ([1.0, 2.0, 3.0], [4.0, 2.0, 0.0], 2.0, "expected positive numbers that decrease"),
        ([1.0, 2.0, 3.0], [4.0, 2.0, 1.0], 0.0, "order 0.0: expected a number above 0"),
    ],
)
def test_invalid_grids_are_rejected(
    values: list[float], spacings: list[float], expected: float, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        limit(values, spacings, expected)
