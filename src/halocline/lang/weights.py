"""Exact weights of differences and interpolations, as fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import factorial


@cache
def weights(
    points: Sequence[int | Fraction], at: int | Fraction = 0, derivative: int = 0
) -> tuple[Fraction, ...]:
    """Return the weights of the values at some points in a derivative of the interpolating polynomial.

    The polynomial passes through the values at all points.

    Parameters
    ----------
    points : sequence of int or Fraction
        Positions of the points, as a tuple or range.
    at : int or Fraction
        Position at which the derivative is evaluated.
    derivative : int
        Order of the derivative; 0 for the value of the polynomial.

    Returns
    -------
    tuple of Fraction
        One weight for each point.
    """
    result = []
    for point in points:
        # Taylor series, about `at`, of the Lagrange polynomial of the point
        series = [Fraction(1), *[Fraction(0)] * derivative]
        for other in points:
            if other != point:
                shifted = [Fraction(0), *series[:-1]]
                series = [
                    (r - (other - at) * s) / (point - other) for r, s in zip(shifted, series, strict=True)
                ]
        result.append(factorial(derivative) * series[derivative])
    return tuple(result)
