"""Functions of the coordinates that NumPy evaluates row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.advice import COMBINING, CombinesPointsError
from halocline.lang.grid import Field
from halocline.lang.values import real_array


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


def row_function(
    function: Callable[..., Any], field: Field
) -> Callable[[Sequence[int]], NDArray[np.float64]]:
    """Return a function that gives the values of a row of points of a field.

    Parameters
    ----------
    function : callable
        Function of the coordinates, which NumPy evaluates for all points of a row at once.
    field : Field

    Returns
    -------
    callable
        Takes the indices of a row along all axes but the last. Returns an array (points along the last axis).

    Raises
    ------
    InputError
        The function fails, returns no real numbers or another number of them, returns another value in the
        second call, or combines the values of several points. The returned function raises it too.
    """
    lines = [np.asarray(line) for line in field.positions]
    what = f"the function given for field {field.name!r}"

    def values(
        place: Sequence[int],
        part: slice = slice(None),
        call: Callable[..., Any] = trace.attempt,
        kind: type[np.ndarray[Any, Any]] = RowCoordinates,
    ) -> NDArray[np.float64]:
        line = lines[-1][part]
        at = [np.full(line.shape, lines[axis][i]) for axis, i in enumerate(place)]
        try:
            returned = call(function, *(np.array(x).view(kind) for x in (*at, line)))
        except CombinesPointsError as error:
            raise InputError(f"{what} {trace.COMBINES_POINTS} ({error})") from None
        row = real_array(returned, f"{what} returns")
        try:
            return np.broadcast_to(np.asarray(row, np.float64), line.shape)
        except ValueError:
            raise InputError(
                f"{what} returns an array of shape {row.shape} for {len(line)} points; expected one value "
                "for each"
            ) from None

    first = (0,) * (len(lines) - 1)
    # a plain array first: masked values and other types have messages of their own
    row = values(first, call=trace.call, kind=np.ndarray)
    if not np.array_equal(row, values(first), equal_nan=True):
        raise InputError(f"{what} {trace.OTHER_VALUES}")
    half = len(row) // 2
    if half:
        halves = np.concatenate([values(first, part) for part in (slice(half), slice(half, None))])
        # vector instructions round a few entries of a row differently
        if not np.allclose(halves, row, rtol=1e-9, atol=1e-12, equal_nan=True):
            raise InputError(f"{what} {trace.COMBINES_POINTS}")
    return values


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
