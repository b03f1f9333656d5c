"""Coordinates of a row of points as NumPy arrays for functions that give one value for each point."""

from __future__ import annotations

from typing import Any

import numpy as np

from halocline.lang.advice import COMBINING, CombinesPointsError


class RowCoordinates(np.ndarray):
    """Array with one entry for each point of a row, in which functions that combine entries raise an error.

    A row is a part of the grid, so the maximum of a row or a shift along it is not that of the grid.

    Raises
    ------
    CombinesPointsError
        A reduction, a function of `COMBINING`, or an index that is no condition for each entry.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or getattr(ufunc, "signature", None) is not None:
            raise CombinesPointsError(f"NumPy's {ufunc.__name__}.{method} combines points")
        return _wrapped(ufunc(*_plain(inputs), **_plain(options)))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function.__name__ in COMBINING:
            raise CombinesPointsError(f"NumPy's {function.__name__} combines points")
        return _wrapped(function(*_plain(args), **_plain(kwargs)))

    def __getitem__(self, key: Any) -> Any:
        is_condition = isinstance(key, np.ndarray) and key.dtype.kind == "b"
        is_whole = key is Ellipsis or (isinstance(key, slice) and key == slice(None))
        if not is_condition and not is_whole:
            raise CombinesPointsError(f"[{key}] reads other points")
        return _wrapped(_plain(self)[_plain(key)])


def _plain(value: Any) -> Any:
    """Return arrays of coordinates as plain arrays, also inside of tuples, lists and mappings."""
    if isinstance(value, RowCoordinates):
        return value.view(np.ndarray)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return {key: _plain(each) for key, each in value.items()} if type(value) is dict else value


def _wrapped(value: Any) -> Any:
    """Return results with one entry for each point as arrays of coordinates."""
    if type(value) is tuple:
        return tuple(map(_wrapped, value))
    return value.view(RowCoordinates) if type(value) is np.ndarray and value.ndim == 1 else value
