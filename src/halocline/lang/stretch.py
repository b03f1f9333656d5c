"""Stretched axes: smooth maps from the coordinates of an even grid to the positions of the points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.axes import AXES, axis_number
from halocline.lang.callables import argument_count
from halocline.lang.expression import Expr, as_expr, shift, without_location
from halocline.lang.location import Place
from halocline.lang.values import real_array
from halocline.words import short_repr

if TYPE_CHECKING:
    from halocline.lang.grid import Grid

Map = Callable[[Any], Any]
BEYOND = 4  # number of ghost layers for which a map must be defined
ENDS = 1e-9  # tolerance for the ends of a map, as a share of the extent


def maps_of(stretch: Mapping[str, Map], grid: Grid) -> tuple[Map | None, ...]:
    """Return the map of each axis of the grid, or None for an evenly spaced axis.

    Raises
    ------
    InputError
        An axis is not part of the grid, is named twice, or is periodic. A map raises an error, does not
        increase, or does not map the ends of the axis to themselves.
    """
    known = AXES[: grid.ndim]
    if not isinstance(stretch, Mapping):
        raise InputError(
            f"stretch is {short_repr(stretch)}; expected a map for each axis, such as {{'x': lambda x: ...}}"
        )
    maps: dict[int, Any] = {}
    for axis, function in stretch.items():
        try:
            number = axis_number(axis, grid.ndim)
        except InputError:
            raise InputError(f"stretch has axis {axis!r}; expected some of {', '.join(known)}") from None
        if number in maps:
            raise InputError(f"stretch names axis {AXES[number]} twice; expected one map for each axis")
        maps[number] = function
    return tuple(_check_map(maps[axis], grid, axis) if axis in maps else None for axis in range(grid.ndim))


def _check_map(function: Any, grid: Grid, axis: int) -> Map:
    import numpy as np

    name = f"the map of axis {AXES[axis]}"
    if grid.periodic[axis]:
        raise InputError(
            f"axis {AXES[axis]} is periodic and cannot be stretched; expected an axis with walls"
        )
    if not callable(function):
        raise InputError(
            f"{name} is {short_repr(function)}; expected a function of the coordinate of an even grid"
        )
    argument_count(function, name, (1,), "the coordinate of an even grid")
    first, length = grid.origin[axis], grid.extent[axis]
    end_values = np.asarray(map_coordinates(function, np.array([first, first + length]), name))
    for end, target in zip(end_values, (first, first + length), strict=True):
        if not abs(end - target) <= ENDS * length:
            raise InputError(
                f"{name} maps {target:g} to {end:g}; expected {target:g}, because the map must keep both "
                "ends of the axis"
            )
    halves = np.arange(-2 * BEYOND, 2 * (grid.shape[axis] + BEYOND) + 1)
    even = first + 0.5 * halves * grid.even_spacing(axis)
    places = map_coordinates(function, even, name)
    if not np.array_equal(places, map_coordinates(function, even, name), equal_nan=True):
        raise InputError(f"{name} {trace.OTHER_VALUES}")
    decreasing = np.flatnonzero(~(np.diff(places) > 0.0))
    if decreasing.size:
        inside = decreasing[(first <= even[decreasing]) & (even[decreasing] < first + length)]
        at = int((inside if inside.size else decreasing)[0])
        region = "" if inside.size else ", beyond the wall, where ghosts lie"
        raise InputError(
            f"{name} does not increase from {even[at]:g} to {even[at + 1]:g}{region}: its values are "
            f"{places[at]:g} and {places[at + 1]:g}; expected a smooth, strictly increasing map"
        )
    return function  # type: ignore[no-any-return]


def map_coordinates(function: Map, even: Any, name: str) -> Any:
    """Return the coordinates that a map gives, as an array of the shape of `even`."""
    import numpy as np

    try:
        with np.errstate(all="ignore"):
            values = function(even)
    except Exception as error:
        raise InputError(f"{name} raised {error!r} on an array of coordinates") from error
    is_unusable = values is None or np.ma.is_masked(values)
    coordinates = real_array(values, f"{name} makes") if is_unusable else np.asarray(values)
    if coordinates.shape != even.shape or coordinates.dtype.kind not in "fiu":
        raise InputError(
            f"{name} returns an array of shape {coordinates.shape} and dtype {coordinates.dtype} for "
            f"coordinates of shape {even.shape}; expected real numbers with the shape of the coordinates"
        )
    return coordinates.astype(np.float64)


def trace_map(function: Map, even: Expr, name: str) -> Expr:
    """Return the coordinate that a map gives, as an expression."""
    try:
        return as_expr(trace.call(function, even), name)
    except InputError as error:
        raise InputError(f"{name} cannot be traced: {error}") from error


def check_even(grid: Grid, axis: int, label: str, instead: str = "an evenly spaced axis") -> None:
    """Raise InputError if an axis is stretched; `label` names the formula, which needs even spacing."""
    if grid.maps[axis] is not None:
        raise InputError(f"{label} along axis {AXES[axis]}, which is stretched: expected {instead}")


def neighbours(grid: Grid, axis: int, place: Place) -> tuple[Expr, Expr]:
    """Return the distances from a point at a location to its lower and upper neighbour along an axis."""
    x = without_location(grid.coordinates([bool(p) for p in place])[axis])
    step = tuple(int(a == axis) for a in range(grid.ndim))
    return x - shift(x, tuple(-s for s in step)), shift(x, step) - x


def beside(grid: Grid, axis: int, place: Place) -> tuple[Expr, Expr, Expr]:
    """Return the coordinates of a halfway point along an axis, and of the points before and after it.

    The points before and after lie at location `place`.
    """
    x = without_location(grid.coordinates([bool(p) for p in place])[axis])
    between = without_location(grid.coordinates([a == axis and not p for a, p in enumerate(place)])[axis])
    before, after = sides(grid.ndim, axis, bool(place[axis]), 1)
    return between, shift(x, before), shift(x, after)


def sides(ndim: int, axis: int, on_faces: bool, k: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the offsets from a halfway point to the k-th points before and after it.

    `on_faces` is True if the points before and after lie on faces. Face i is the lower face of cell i.
    """
    low, high = (1 - k, k) if on_faces else (-k, k - 1)
    return tuple(low * (a == axis) for a in range(ndim)), tuple(high * (a == axis) for a in range(ndim))
