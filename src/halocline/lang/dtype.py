"""Floating-point precisions, and the default precision of grids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ITEMSIZE = {"float64": 8, "float32": 4}  # bytes
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23}  # distance from 1 to the next number
DTYPES = tuple(ITEMSIZE)

_default = ["float64"]  # stack; the last entry is in use


def dtype_name(dtype: Any) -> str:
    """Return the name of a precision, given by name or as a type of NumPy."""
    return getattr(dtype, "__name__", None) or str(dtype)


def rounding(bound: float, dtype: str | None) -> float:
    """Return a bound on rounding errors in a precision, converted from a bound in float64.

    Parameters
    ----------
    bound : float
        Bound in float64.
    dtype : str or None
        Precision; None means float64.
    """
    return bound * (EPSILON[dtype or "float64"] / EPSILON["float64"])


def default_dtype() -> str:
    """Return the default precision of grids."""
    return _default[-1]


@contextmanager
def using_dtype(name: str | None) -> Iterator[None]:
    """Set the default precision of grids in a with block; None means float64."""
    _default.append(name or _default[0])
    try:
        yield
    finally:
        _default.pop()
