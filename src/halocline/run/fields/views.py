"""NumPy arrays with explanatory errors for wrong indices, forbidden writes and combinations of points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.advice import COMBINING, CombinesPointsError
from halocline.lang.grid import AXES, Field
from halocline.lang.values import real_array


class LocalIndexError(InputError, IndexError):
    """Error for an index outside the points of this rank."""


class LocalView(np.ndarray):
    """View of those points of a field that belong to this rank.

    Slices, elements and results of arithmetic are plain arrays.

    Attributes
    ----------
    index_advice : str
        Error text for an index out of range.
    write_advice : str
        Error text for an assignment to a read-only view.
    """

    index_advice = "the index is out of range"
    write_advice = "the array cannot be written"

    @classmethod
    def of(cls, values: NDArray[Any], index_advice: str, write_advice: str) -> LocalView:
        """Return a view of an array with these error texts."""
        view = values.view(cls)
        view.index_advice, view.write_advice = index_advice, write_advice
        return view

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.view(np.ndarray)[key]
        except IndexError as error:
            raise LocalIndexError(f"{error}: {self.index_advice}") from None

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self.flags.writeable:
            raise InputError(self.write_advice)
        try:
            self.view(np.ndarray)[key] = value
        except IndexError as error:
            raise LocalIndexError(f"{error}: {self.index_advice}") from None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", ())
        for array in out:
            if isinstance(array, LocalView) and not array.flags.writeable:
                raise InputError(array.write_advice)
        if out:
            options["out"] = _plain(out)
        result = getattr(ufunc, method)(*_plain(inputs), **options)
        return out[0] if len(out) == 1 else result  # `view += 1` returns the same view


def index_advice(field: Field, rank: int, first: Sequence[int], shape: Sequence[int]) -> str:
    """Return the error text for an index out of range.

    Parameters
    ----------
    field : Field
    rank : int
    first : sequence of int
        Global index of the first point of the view.
    shape : sequence of int
        Number of points of the view along each axis.
    """
    ends = zip(AXES, first, shape, strict=False)
    ranges = ", ".join(f"{axis} {start} to {start + count - 1}" for axis, start, count in ends)
    return (
        f"this array holds the {tuple(shape)} points of field {field.name!r} on rank {rank}, and the whole "
        f"field has {field.points} points; local indices begin at 0, and the global indices of this array "
        f"are {ranges}. Read one point of the whole field by "
        f"sim.evaluate(hc.value({field.name}, at=({', '.join('ijk'[: len(shape)])}))), or all "
        f"points on the first rank by sim.gather({field.name})"
    )


def write_advice(name: str, reason: str) -> str:
    """Return the error text for an assignment to a read-only view of field `name`."""
    return (
        f"field {name!r} {reason}, and this array is a copy that cannot be written. Set the whole field by "
        f"sim[{name}] = values: an array with the shape of the whole field, an expression or a function of "
        "the coordinates"
    )


class RowCoordinates(np.ndarray):
    """Array with one entry per point of a row. Functions that combine entries raise an error.

    A function is evaluated separately for each row of the grid. The maximum of a row differs from the maximum
    over the grid, and a shift along a row does not reach other rows.

    Raises
    ------
    CombinesPointsError
        The array is used in a reduction or in a function of `COMBINING`. The error is also raised for an
        index other than a whole slice or one condition per entry.
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
            raise CombinesPointsError(f"the index [{key}] reads values of other points of the row")
        return _wrapped(_plain(self)[_plain(key)])


def row_function(
    function: Callable[..., Any], field: Field
) -> Callable[[Sequence[int]], NDArray[np.float64]]:
    """Return a function that computes the values of a field in one row of points.

    Parameters
    ----------
    function : callable
        Function of the coordinates, which NumPy evaluates for all points of a row at once.
    field : Field

    Returns
    -------
    callable
        Function whose argument is the position of a row: its index along each axis except the last. The
        function returns an array with the values of the row.

    Raises
    ------
    InputError
        `function` fails, returns invalid numbers or a wrong number of values, returns other values in a
        second call, or combines several points. The returned function raises the same error.
    """
    lines = [np.asarray(line) for line in field.positions]
    label = f"the function given for field {field.name!r}"

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
            raise InputError(f"{label} {trace.COMBINES_POINTS} ({error})") from None
        row = real_array(returned, f"{label} returns")
        try:
            return np.broadcast_to(np.asarray(row, np.float64), line.shape)
        except ValueError:
            raise InputError(
                f"{label} returns an array of shape {row.shape} for {len(line)} points; expected one value "
                "for each point"
            ) from None

    first = (0,) * (len(lines) - 1)
    # The first call uses plain arrays, so that masked values and wrong types give their own error messages.
    row = values(first, call=trace.call, kind=np.ndarray)
    if not np.array_equal(row, values(first), equal_nan=True):
        raise InputError(f"{label} {trace.OTHER_VALUES}")
    half = len(row) // 2
    if half:
        halves = np.concatenate([values(first, part) for part in (slice(half), slice(half, None))])
        # The results are compared with a tolerance, because vector instructions may round entries
        # differently.
        if not np.allclose(halves, row, rtol=1e-9, atol=1e-12, equal_nan=True):
            raise InputError(f"{label} {trace.COMBINES_POINTS}")
    return values


def _plain(value: Any) -> Any:
    """Convert views to plain arrays, including views inside tuples, lists and mappings."""
    if isinstance(value, (LocalView, RowCoordinates)):
        return value.view(np.ndarray)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return {key: _plain(entry) for key, entry in value.items()} if type(value) is dict else value


def _wrapped(value: Any) -> Any:
    """Convert results with one entry per point to `RowCoordinates`."""
    if type(value) is tuple:
        return tuple(map(_wrapped, value))
    return value.view(RowCoordinates) if type(value) is np.ndarray and value.ndim == 1 else value
