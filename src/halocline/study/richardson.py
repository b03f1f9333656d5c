"""Richardson extrapolation from three grids: the order, the limit and the grid-convergence index.

Grids are numbered from the finest, as in the papers: f1, f2, f3 on spacings h1 < h2 < h3, with ratios
r21 = h2/h1 and r32 = h3/h2, and differences ε21 = f2 - f1 and ε32 = f3 - f2. The model is f = f0 + a h^p.

- Roache 1994, J. Fluids Eng. 116, 405: the grid-convergence index.
- Celik et al. 2008, J. Fluids Eng. 130, 078001: the order for two different ratios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from halocline.errors import InputError

# minimum number of grids for an order without an exact solution
MIN_GRIDS = 3
# safety factor of the index with the order from three grids (Roache)
SAFETY = 1.25
# safety factor of the index with the expected order (Roache, for two grids)
SAFETY_UNKNOWN = 3.0
# minimum order: differences with a smaller order count as not falling
MIN_ORDER = 1e-6
# tolerance of the root finder for the order
ROOT_TOLERANCE = 1e-12
# maximum of p ln r, for which the square of r^p is still a finite float
MAX_EXPONENT = 300.0


class Trend(StrEnum):
    """Behaviour of the differences between successive grids."""

    FALLS = "falls"
    OSCILLATES = "oscillates"
    DOES_NOT_FALL = "does not fall"
    WITHIN_NOISE = "within noise"


@dataclass(frozen=True)
class Limit:
    """Order, limit and grid-convergence index of a number on three grids.

    Attributes
    ----------
    trend : Trend
        Behaviour of the differences. An order and a limit exist only if the differences fall, have the same
        sign, and exceed the noise on the finest grid.
    ratio : float or None
        Ratio ε32/ε21 of the differences; None if ε21 is 0.
    order : float or None
        Observed order p.
    value : float or None
        Limit f0 at zero spacing.
    index : float or None
        Grid-convergence index of the finest grid, relative to f1; None if f1 is 0. It is probably an upper
        bound of the distance between f1 and f0.
    safety : float
        Safety factor of the index: 1.25 for an observed order, 3 for the expected order.
    range_observed, range_expected : float or None
        GCI_23 / (r21^p GCI_12) with the observed order and with the expected order. Both values are near 1 in
        the asymptotic range. The value with the observed order always equals f1/f2, so it contains little
        information. The value with the expected order shows the deviation of the observed order.
    """

    trend: Trend
    ratio: float | None
    order: float | None
    value: float | None
    index: float | None
    safety: float
    range_observed: float | None
    range_expected: float | None


def limit(
    values: Sequence[float], spacings: Sequence[float], expected: float = 2.0, noise: float = 0.0
) -> Limit:
    """Return the order, the limit and the index of a number on three grids.

    Parameters
    ----------
    values, spacings : sequence of float
        Values and spacings on three grids, the coarsest grid first.
    expected : float
        Order for the index if the differences give no order.
    noise : float
        Relative error of the values, such as the remaining error of an iterative method. Differences below
        this fraction of f1 have no meaning.

    Raises
    ------
    InputError
        The number of grids is not three, the spacings do not decrease, the expected order is not positive,
        or a number is not finite.

    Examples
    --------
    >>> from halocline.study.richardson import limit
    >>> result = limit([1.16, 1.04, 1.01], [0.4, 0.2, 0.1])
    >>> print(f"{result.trend}: order {result.order:.3f}, {result.value:.3f}, {result.index:.2%}")
    falls: order 2.000, 1.000, 1.24%
    """
    r21, r32 = _ratios(spacings)
    if len(values) != 3 or not all(map(math.isfinite, values)):
        raise InputError(f"values {list(values)}: expected three finite numbers")
    if not 0 < expected < math.inf:
        raise InputError(f"order {expected}: expected a number above 0")
    f3, f2, f1 = map(float, values)
    fine, coarse, min_difference = f2 - f1, f3 - f2, noise * abs(f1)
    ratio = coarse / fine if fine else None
    if ratio is None or not math.isfinite(ratio) or abs(fine) <= min_difference:
        return _limit_without_order(
            Trend.WITHIN_NOISE, ratio, f1, max(abs(fine), min_difference), r21, expected
        )
    if ratio < 0 and abs(coarse) > min_difference:
        return _limit_without_order(Trend.OSCILLATES, ratio, f1, abs(fine), r21, expected)
    p = order(ratio, r21, r32)
    if p is None:
        return _limit_without_order(Trend.DOES_NOT_FALL, ratio, f1, abs(fine), r21, expected)
    value, uncertainty = f1 - fine / _power_minus_one(r21, p), index(f1, fine, r21, p, SAFETY)
    observed, by_expected = (asymptotic(values, spacings, order) for order in (p, expected))
    return Limit(Trend.FALLS, ratio, p, value, uncertainty, SAFETY, observed, by_expected)


def order(ratio: float, r21: float, r32: float) -> float | None:
    """Return the order p for a ratio ε32/ε21 of the differences; None if the differences do not fall.

    The equation is p ln r21 = ln(ε32/ε21) + ln((r21^p - 1) / (r32^p - 1)), Eqs. 3 of Celik et al. for
    differences of one sign. The iteration for p in the paper diverges if r32 is much larger than r21. The
    absolute value in the paper treats growing differences like decreasing ones. This function finds the root
    of the equation instead. The left side minus the last term increases with p, so the root is unique.
    """
    from scipy.optimize import brentq

    if not ratio > 0:
        return None
    a21, a32 = math.log(r21), math.log(r32)

    def excess(p: float) -> float:
        """Return ln(predicted ratio / observed ratio) for the order p."""
        return p * a32 + math.log(math.expm1(-p * a32) / math.expm1(-p * a21)) - math.log(ratio)

    if excess(MIN_ORDER) >= 0:
        return None
    high = 1.0
    while excess(high) < 0:
        high *= 2.0
    return float(brentq(excess, MIN_ORDER, high, xtol=ROOT_TOLERANCE, rtol=ROOT_TOLERANCE))


def index(fine: float, difference: float, ratio: float, p: float, safety: float) -> float | None:
    """Return the grid-convergence index of the finer of two grids, F |ε/f| / (r^p - 1) (Roache 1994).

    The result is None if the value on the finer grid is 0.
    """
    return safety * abs(difference / fine) / _power_minus_one(ratio, p) if fine else None


def asymptotic(values: Sequence[float], spacings: Sequence[float], p: float) -> float | None:
    """Return GCI_23 / (r21^p GCI_12), which is near 1 in the asymptotic range of order p.

    The result is None if an index is 0 or None.
    """
    f3, f2, f1 = values
    r21, r32 = _ratios(spacings)
    coarse = index(f2, f3 - f2, r32, p, SAFETY)
    fine = index(f1, f2 - f1, r21, p, SAFETY)
    return coarse / ((_power_minus_one(r21, p) + 1.0) * fine) if coarse and fine else None


def _power_minus_one(ratio: float, p: float) -> float:
    """Return r^p - 1, limited to about e^300."""
    return math.expm1(min(p * math.log(ratio), MAX_EXPONENT))


def _limit_without_order(
    trend: Trend, ratio: float | None, f1: float, difference: float, r21: float, expected: float
) -> Limit:
    """Return a result without order and limit. The index uses the expected order and SAFETY_UNKNOWN."""
    by_expected = index(f1, difference, r21, expected, SAFETY_UNKNOWN)
    return Limit(trend, ratio, None, None, by_expected, SAFETY_UNKNOWN, None, None)


def _ratios(spacings: Sequence[float]) -> tuple[float, float]:
    """Return the ratios r21 and r32 of the spacings."""
    if len(spacings) != 3 or not all(map(math.isfinite, spacings)):
        raise InputError(f"spacings {list(spacings)}: expected three finite numbers")
    h3, h2, h1 = spacings
    if not 0 < h1 < h2 < h3:
        raise InputError(f"spacings {list(spacings)}: expected positive numbers that decrease")
    return h2 / h1, h3 / h2
