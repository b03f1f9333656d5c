"""Exact weights of differences and interpolations."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import factorial


@cache
def weights(
    points: Sequence[int | Fraction], at: int | Fraction = 0, derivative: int = 0
) -> tuple[Fraction, ...]:
    """Return the weights of values at some points in a derivative of the polynomial through them.

    Parameters
    ----------
    points : sequence of int or Fraction
        A tuple or range.
    at : int or Fraction
        Place of the derivative.
    derivative : int
        Order of the derivative; 0 for the value of the polynomial.

    Returns
    -------
    tuple of Fraction
        One weight for each point.
    """
    found = []
    for own in points:
        series = [
            Fraction(1),
            *[Fraction(0)] * derivative,
        ]  # Taylor series at the place of Lagrange's polynomial
        for other in points:
            if other != own:
                raised = [Fraction(0), *series[:-1]]
                series = [(r - (other - at) * s) / (own - other) for r, s in zip(raised, series, strict=True)]
        found.append(factorial(derivative) * series[derivative])
    return tuple(found)
