"""Regions of output: the whole grid, a slice, a box, block averages, or single points."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.lang.axes import whole_number
from halocline.lang.grid import AXES, Grid, checked_choice
from halocline.lang.values import as_quantity, plain
from halocline.plan.chunks import Selection
from halocline.run.fields.interpolation import Weights, nearest, polynomial
from halocline.words import short_repr

FACE = "_face"


def dimensions(staggered: Sequence[bool]) -> tuple[str, ...]:
    """Return the axis names of a field. If the points lie on faces of an axis, "_face" is appended."""
    return tuple(AXES[axis] + (FACE if on_face else "") for axis, on_face in enumerate(staggered))


def axis_attributes(grid: Grid, axis: int) -> dict[str, Any]:
    """Return the attributes of a coordinate array: the name of the axis, and its period or its walls."""
    ends = {"period": grid.extent[axis]} if grid.periodic[axis] else {"walls": grid.walls[axis]}
    return {"axis": AXES[axis].upper(), **ends}


ROUNDING = 1e-9  # distance by which a box may extend beyond the grid, relative to the grid extent


@dataclass(frozen=True)
class FieldPoints:
    """Points of one field in a region.

    Attributes
    ----------
    selection : Selection
        Indices of the points.
    axes : tuple of int
        Axes of the output array. Along the other axes of the grid, the selection has one element.
    coordinates : tuple of array
        Coordinates along each axis of the output array.
    at : dict of str to float
        Coordinate of the points along each axis that the output array lacks.
    """

    selection: Selection
    axes: tuple[int, ...]
    coordinates: tuple[NDArray[np.float64], ...]
    at: Mapping[str, float]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the output array."""
        return tuple(self.selection.shape[axis] for axis in self.axes)


class Region:
    """Part of a grid.

    Attributes
    ----------
    block : int
        Edge length in cells of the blocks that are averaged; 1 without averaging.
    fixed : collection of str
        Axes along which the region has a single coordinate. Output arrays lack these axes.
    """

    block = 1
    fixed: Collection[str] = ()

    def check(self, grid: Grid) -> None:
        """Raise InputError if the region is not part of a grid."""

    def interval(self, grid: Grid, axis: int, line: NDArray[np.float64]) -> tuple[int, int]:
        """Return the index of the first point along an axis, and the number of points.

        Parameters
        ----------
        line : array of float64 (points)
            Coordinates of the points of a field along the axis.
        """
        return 0, len(line)

    def choose(self, grid: Grid, staggered: Sequence[bool]) -> FieldPoints:
        """Return the points of a field in the region."""
        lines = grid.positions(staggered)
        first, shape = zip(*(self.interval(grid, axis, line) for axis, line in enumerate(lines)), strict=True)
        parts = [line[f : f + n] for line, f, n in zip(lines, first, shape, strict=True)]
        axes = tuple(axis for axis in range(grid.ndim) if AXES[axis] not in self.fixed)
        at = {name: float(parts[AXES.index(name)][0]) for name in self.fixed}
        selection = Selection(first, (1,) * grid.ndim, shape)
        return FieldPoints(selection, axes, tuple(parts[axis] for axis in axes), at)


@dataclass(frozen=True)
class Whole(Region):
    """Whole grid."""


class _AlongAxes(Region):
    """Region that is defined by a value for each of one or more axes."""

    def __init__(self, **values: Any) -> None:
        kind = type(self).__name__
        for name in values:
            if name not in tuple(AXES):
                raise InputError(f"{kind}: unknown axis {name!r}; the axes are {', '.join(AXES)}")
        if not values:
            raise InputError(f"{kind} has no axis; expected a value for at least one of {', '.join(AXES)}")
        self.values = {name: plain(value) for name, value in values.items()}

    def __repr__(self) -> str:
        texts = (f"{axis}={value!r}" for axis, value in self.values.items())
        return f"{type(self).__name__}({', '.join(texts)})"


class Slice(_AlongAxes):
    """Points of a plane or of a line: ``hc.Slice(z=0.5)``, ``hc.Slice(y=0.0, z=0.5)``.

    Parameters
    ----------
    x, y, z : float
        Coordinate of the plane. The output array of a field contains the plane of points nearest to this
        coordinate. Of two planes at equal distance, the lower plane is used. Along periodic axes, the
        distance is periodic. An attribute of the array, named after the axis, contains the coordinate of the
        plane of points.

    Raises
    ------
    InputError
        No axis is given, an axis is unknown, a coordinate is outside the grid, or all axes of the grid are
        fixed.
    """

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.fixed = tuple(self.values)

    def check(self, grid: Grid) -> None:
        """Raise InputError if the slice has unknown axes or lies outside a grid."""
        for axis, value in self.values.items():
            number = _axis("Slice", axis, grid)
            low, high = grid.origin[number], grid.origin[number] + grid.extent[number]
            if as_quantity(value) is None or not low <= value <= high:
                raise InputError(
                    f"Slice: {axis} is {short_repr(value)}; expected a number from {low:g} to {high:g}"
                )
        if len(self.values) == grid.ndim:
            raise InputError(f"Slice fixes all axes of {grid!r}; use hc.Points for single points")

    def interval(self, grid: Grid, axis: int, line: NDArray[np.float64]) -> tuple[int, int]:
        """Return the index of the first point along an axis, and the number of points."""
        if AXES[axis] not in self.values:
            return 0, len(line)
        return nearest(line, self.values[AXES[axis]], period(grid, axis)), 1


class Box(_AlongAxes):
    """Points of a box: ``hc.Box(x=(0.2, 0.4), z=(0.0, 0.5))``.

    Parameters
    ----------
    x, y, z : (float, float)
        Lower and upper end along the axis, within the grid or infinite. Along axes that are not given, the
        box contains all points. A box does not wrap around periodic axes.

    Raises
    ------
    InputError
        No axis is given, an axis is unknown, an end is outside the grid, or no cell is between the ends.
    """

    def check(self, grid: Grid) -> None:
        """Raise InputError if the box has unknown axes, lies outside a grid, or contains no cell."""
        for axis, ends in self.values.items():
            number = _axis("Box", axis, grid)
            bounds = tuple(ends) if isinstance(ends, (tuple, list)) else ()
            if len(bounds) != 2 or None in map(as_quantity, bounds) or bounds[0] >= bounds[1]:
                raise InputError(
                    f"Box: {axis} is {short_repr(ends)}; expected its lower and upper end, such as (0.2, 0.4)"
                )
            low, high = grid.origin[number], grid.origin[number] + grid.extent[number]
            slack = ROUNDING * grid.extent[number]
            for end in bounds:
                if not (low - slack <= end <= high + slack or math.isinf(end)):
                    around = ", and a box does not wrap around it" if grid.periodic[number] else ""
                    raise InputError(
                        f"Box: {axis} is {short_repr(ends)}; expected ends from {low:g} to {high:g}, the "
                        f"extent of the axis{around}. Use -inf and inf for the ends of the axis."
                    )
            if not len(_within(grid.positions()[number], *bounds)):
                raise InputError(f"Box: {axis} is {short_repr(ends)}; no cell of {grid!r} lies in this range")

    def interval(self, grid: Grid, axis: int, line: NDArray[np.float64]) -> tuple[int, int]:
        """Return the index of the first point along an axis, and the number of points."""
        name = AXES[axis]
        ends = self.values.get(name, (-math.inf, math.inf))
        inside = _within(line, *ends)
        if not len(inside):
            raise InputError(
                f"Box: {name} is {short_repr(ends)}; no face of {grid!r} lies in this range, but the output "
                f"has a field on faces along {name}. Use a box that contains points of this field."
            )
        return int(inside[0]), len(inside)


class Coarsen(Region):
    """Averages over blocks that have the same number of cells along each axis: ``hc.Coarsen(4)``.

    Parameters
    ----------
    cells : int
        Number of cells of a block along each axis. It must divide the number of cells of the grid along each
        axis.

    Raises
    ------
    InputError
        `cells` is not an integer of at least 2, `cells` does not divide the grid, or an axis is stretched.
    """

    def __init__(self, cells: int) -> None:
        block = whole_number(cells)
        if block is None or block < 2:
            raise InputError(f"Coarsen: cells is {short_repr(cells)}; expected a whole number of at least 2")
        self.block = block

    def check(self, grid: Grid) -> None:
        """Raise InputError if the grid cannot be divided into blocks, or an axis is stretched."""
        for axis, n in enumerate(grid.shape):
            if n % self.block:
                fit = [str(m) for m in range(2, 65) if not any(k % m for k in grid.shape)]
                raise InputError(
                    f"Coarsen({self.block}): axis {AXES[axis]} has {n} cells, "
                    f"not a multiple of {self.block}; "
                    + (
                        f"use {' or '.join(fit)}"
                        if fit
                        else f"no number from 2 to 64 divides the cells along each axis of {grid!r}"
                    )
                )
            if grid.maps[axis] is not None:
                raise InputError(
                    f"Coarsen({self.block}): axis {AXES[axis]} is stretched, so the cells of a block have "
                    "different weights. Use a slice or a box."
                )

    def choose(self, grid: Grid, staggered: Sequence[bool]) -> FieldPoints:
        """Return the blocks of a field. The selection contains only the first cell of each block."""
        if any(staggered):
            raise InputError(
                f"Coarsen({self.block}): expected fields in cells, because only cell values are averaged"
            )
        k = self.block
        shape = tuple(n // k for n in grid.shape)
        lines = tuple(line.reshape(-1, k).mean(axis=1) for line in grid.positions())
        return FieldPoints(
            Selection((0,) * grid.ndim, (k,) * grid.ndim, shape), tuple(range(grid.ndim)), lines, {}
        )

    def __repr__(self) -> str:
        return f"Coarsen({self.block})"


@dataclass(frozen=True)
class Stencils:
    """Stencils that interpolate a field at single points (places).

    Attributes
    ----------
    points : array of int (points read, axes)
        Indices of the points of the field that are read.
    terms : array of int (places, terms)
        Index in `points` of each term in the sum for a place. An index equal to the length of `points` means
        a term of zero.
    weights : array of float64 (places, terms)
    """

    points: NDArray[np.int64]
    terms: NDArray[np.int64]
    weights: NDArray[np.float64]

    def apply(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the interpolated values, summed term by term in a fixed order.

        At a point of the field, the result is bit-for-bit the value of the field: the other terms are -0.0,
        and the addition of -0.0 changes no number.
        """
        padded = np.append(values.astype(np.float64), -0.0)
        total = np.full(len(self.terms), -0.0)
        for term, weight in zip(self.terms.T, self.weights.T, strict=True):
            total += weight * padded[term]
        return total


INTERPOLATIONS = {"nearest": 1, "linear": 2, "cubic": 4}  # number of points along each axis


class Points(Region):
    """Single points, such as receivers: ``hc.Points([(0.1, 0.5), (0.9, 0.5)])``.

    Each field is interpolated from its own points: cells, faces, edges or nodes. At a point of the field, the
    result is bit-for-bit the value of the field. Interpolation wraps around periodic axes. Between a wall and
    the outermost points of a field, the polynomial through the nearest points extrapolates. Boundary
    conditions are not used.

    Parameters
    ----------
    places : sequence of tuple of float
        Coordinates of the points, within the grid or on its boundary. In 1D, plain numbers are accepted too.
    interpolate : {"linear", "cubic", "nearest"}
        "linear" uses polynomials through 2 points along each axis (order of accuracy 2), and "cubic"
        polynomials through 4 points (order of accuracy 4). "nearest" returns the value and the coordinates of
        the nearest point of the field. Along an axis with a single point, values are constant.

    Raises
    ------
    InputError
        There are no points, coordinates are not numbers, `interpolate` is unknown, or a point is outside the
        grid. The error is also raised if `interpolate` is "cubic" and a field has 2 or 3 points along an
        axis.
    """

    def __init__(self, places: Sequence[Sequence[float]], interpolate: str = "linear") -> None:
        self.interpolate = checked_choice("interpolate", interpolate, [*INTERPOLATIONS])
        try:
            self.places = _places(places)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"Points: places are {places!r}; expected coordinates such as [(0.1, 0.5), (0.9, 0.5)]"
            ) from None
        if not self.places:
            raise InputError("Points: no points are given; expected coordinates such as [(0.1, 0.5)]")

    def check(self, grid: Grid) -> None:
        """Raise InputError if a point is outside the grid."""
        wrong = None
        ends = [(o, o + e) for o, e in zip(grid.origin, grid.extent, strict=True)]
        if {*map(len, self.places)} != {grid.ndim}:
            wrong = next(place for place in self.places if len(place) != grid.ndim)
        else:
            low, high = zip(*ends, strict=True)
            inside = ((self._coordinates >= low) & (self._coordinates <= high)).all(axis=1)
            wrong = None if inside.all() else self.places[int(inside.argmin())]
        if wrong is not None:
            ranges = ", ".join(f"{low:g} to {high:g}" for low, high in ends)
            raise InputError(f"Points: {wrong!r} is not a point of {grid!r}; expected {ranges}")

    def coordinates(self, grid: Grid, staggered: Sequence[bool]) -> tuple[NDArray[np.float64], ...]:
        """Return the coordinates of the output values of a field, as one array per axis."""
        if self.interpolate != "nearest":
            return tuple(self._coordinates.T)
        lines, weights = grid.positions(staggered), self._weights(grid, staggered)
        return tuple(
            line[axis_weights.index[:, 0]] for line, axis_weights in zip(lines, weights, strict=True)
        )

    def stencils(self, grid: Grid, staggered: Sequence[bool]) -> Stencils:
        """Return the interpolation stencils of a field.

        Raises
        ------
        InputError
            The field has fewer points along an axis than the interpolation requires.
        """
        along, count = self._weights(grid, staggered), len(self.places)
        numbers, weights = np.zeros((count, 1), np.int64), np.ones((count, 1))
        points = grid.points(staggered)
        for axis_weights, extent in zip(along, points, strict=True):
            numbers = (numbers[:, :, np.newaxis] * extent + axis_weights.index[:, np.newaxis, :]).reshape(
                count, -1
            )
            weights = (weights[:, :, np.newaxis] * axis_weights.weight[:, np.newaxis, :]).reshape(count, -1)
        has_weight = weights != 0.0
        points_read, used_terms = np.unique(numbers[has_weight], return_inverse=True)
        terms = np.full(numbers.shape, len(points_read))
        terms[has_weight] = used_terms
        weights[~has_weight] = 1.0
        return Stencils(np.stack(np.unravel_index(points_read, points), axis=1), terms, weights)

    def _weights(self, grid: Grid, staggered: Sequence[bool]) -> list[Weights]:
        """Return the interpolation weights along each axis."""
        count, lines = INTERPOLATIONS[self.interpolate], grid.positions(staggered)
        for axis, line in enumerate(lines):
            if 1 < len(line) < count:
                raise InputError(
                    f"Points: interpolate {self.interpolate!r} needs {count} points along an axis, but a "
                    f"field of {grid!r} has {len(line)} along {AXES[axis]}: choose 'linear', or more cells"
                )
        return [
            polynomial(line, self._coordinates[:, axis], count, period(grid, axis))
            for axis, line in enumerate(lines)
        ]

    @cached_property
    def _coordinates(self) -> NDArray[np.float64]:
        """Coordinates of all points: array of float64 (places, axes)."""
        return np.array(self.places, np.float64)

    def __repr__(self) -> str:
        return f"Points({self.places!r}, interpolate={self.interpolate!r})"


def _places(places: Any) -> list[tuple[float, ...]]:
    """Return the coordinates of all points as floats."""
    try:
        array = np.asarray(places)
    except ValueError:  # The points differ in their number of coordinates.
        return [_place(place) for place in places]
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        return [_place(place) for place in places]
    array = array.astype(np.float64)
    return list(map(tuple, (array[:, np.newaxis] if array.ndim == 1 else array).tolist()))


def _place(place: Any) -> tuple[float, ...]:
    """Return the coordinates of a point as floats."""
    return tuple(map(float, place if hasattr(place, "__len__") else (place,)))


def period(grid: Grid, axis: int) -> float | None:
    """Return the length after which coordinates along an axis repeat; None for an axis with walls."""
    return grid.extent[axis] if grid.periodic[axis] else None


def _axis(kind: str, name: str, grid: Grid) -> int:
    if name not in tuple(AXES[: grid.ndim]):
        raise InputError(f"{kind} has axis {name!r}, but {grid!r} has no such axis")
    return AXES.index(name)


def _within(line: NDArray[np.float64], low: float, high: float) -> NDArray[np.int64]:
    return np.flatnonzero((line >= low) & (line <= high))
