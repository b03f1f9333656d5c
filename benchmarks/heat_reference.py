"""Heat equation as an array program, for comparison: weights of the star stencil, and steps in NumPy.

The module needs only NumPy, since programs in other environments import it too.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

FACTOR = 0.1 / 3  # time step times diffusivity, divided by the square of the spacing


def weights(order: int) -> list[float]:
    """Return the weights of a second difference of some order, at the distances 1, 2, ..., order / 2."""
    radius = order // 2
    return [
        (-1) ** (r + 1) * 2 * factorial(radius) ** 2 / (r**2 * factorial(radius - r) * factorial(radius + r))
        for r in range(1, radius + 1)
    ]


def centre(order: int) -> float:
    """Return the weight of the cell itself in the Laplacian of three axes."""
    return -6 * sum(weights(order))


def step(field: Any, order: int, factor: float = FACTOR, roll: Any = np.roll) -> Any:
    """Return the field after one forward Euler step with periodic sides.

    Parameters
    ----------
    field : array of three axes
    order : int
    factor : float
    roll : function
        Function of an array, a shift and an axis, such as numpy.roll or jax.numpy.roll.
    """
    laplacian = centre(order) * field
    for r, weight in enumerate(weights(order), 1):
        neighbours = [roll(field, shift, axis) for axis in range(3) for shift in (-r, r)]
        laplacian = laplacian + weight * sum(neighbours[1:], start=neighbours[0])
    return field + factor * laplacian


def tolerance(dtype: str) -> float:
    """Return the accepted difference between the results of programs, for numbers in [0, 1)."""
    return 1e-13 if dtype == "float64" else 1e-5
