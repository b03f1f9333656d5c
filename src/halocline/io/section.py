"""Planes and lines of a distributed field on the first rank, thinned for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.lang.axes import AXES, axis_number
from halocline.lang.grid import Field, Grid
from halocline.run.fields.fields import Fields
from halocline.run.fields.interpolation import nearest
from halocline.run.fields.regions import period
from halocline.run.memory.store import assembled_pieces


@dataclass(frozen=True)
class Section:
    """Values of a field along one, two or three axes.

    Attributes
    ----------
    name : str
        Name of the field, or text of the expression.
    values : array
        Values along the axes, in the order of `axes`.
    axes : tuple of str
        Names of the axes of the values.
    coordinates : tuple of array
        Coordinates of the points along each of the axes.
    span : tuple of (float, float)
        Lower and upper end of the domain along each of the axes.
    at : tuple of (str, float)
        Names of the other axes, with the coordinates of their cuts.
    """

    name: str
    values: NDArray[Any]
    axes: tuple[str, ...]
    coordinates: tuple[NDArray[np.float64], ...]
    span: tuple[tuple[float, float], ...]
    at: tuple[tuple[str, float], ...]

    def within(self, axis: str, low: float, high: float) -> Section:
        """Return the points of the section between two coordinates of an axis."""
        number = self.axes.index(axis)
        line = self.coordinates[number]
        inside = np.flatnonzero((low <= line) & (line <= high))
        part = slice(inside[0], inside[-1] + 1)
        coordinates, span = list(self.coordinates), list(self.span)
        coordinates[number], span[number] = line[part], (low, high)
        values = self.values[(slice(None),) * number + (part,)]
        return replace(self, values=values, coordinates=tuple(coordinates), span=tuple(span))


def cut(
    source: Any, expression: Any, at: Mapping[int | str, float | None] | None = None, *, most: int = 1024
) -> Section | None:
    """Return a section of a field along one or two axes on the first rank, and None on other ranks.

    All ranks call this function.

    Parameters
    ----------
    source : Simulation, LinearProblem, Solution or Fields
    expression : Field, str or expression
    at : mapping of int or str to float or None, optional
        Coordinates of the cuts by number or name of the axis; None for the middle. By default a grid of three
        axes is cut in the middle of z. The section contains the points nearest to each cut. If two points
        are equally near, it contains the lower one.
    most : int
        Maximum number of points along an axis. A longer axis is thinned to every second, third, ... point.

    Raises
    ------
    InputError

    Examples
    --------
    >>> section = cut(sim, p, {"y": 0.25})  # doctest: +SKIP
    """
    fields = fields_of(source)
    ndim = fields.grid.ndim
    if at is None:
        at = {"z": None} if ndim == 3 else {}
    cuts = {AXES[axis_number(axis, ndim)]: coordinate for axis, coordinate in at.items()}
    if not 1 <= ndim - len(cuts) <= 2:
        raise InputError(
            f"a section keeps one or two axes, but {len(cuts)} of {ndim} axes are cut, which leaves "
            f"{ndim - len(cuts)}"
        )
    with fields.values_as_field(expression) as field:
        return _section(fields, field, _name(expression), cuts, most)


def volume(source: Any, expression: Any, *, most: int = 128) -> Section | None:
    """Return the values of a field along all axes of its grid on the first rank, and None on other ranks.

    All ranks call this function. The parameters are those of `cut`.
    """
    fields = fields_of(source)
    with fields.values_as_field(expression) as field:
        return _section(fields, field, _name(expression), {}, most)


def _section(
    fields: Fields, field: Field, name: str, at: Mapping[str, float | None], most: int
) -> Section | None:
    grid = fields.grid
    points, positions = field.points, field.positions
    cuts = {a: _cut_index(positions[a], at[axis], a, grid) for a, axis in enumerate(AXES) if axis in at}
    axes = [a for a in range(grid.ndim) if a not in cuts]
    steps = {a: -(-points[a] // most) for a in axes}
    values = _gather(fields, field, points, cuts, steps)
    if values is None:
        return None
    return Section(
        name,
        values,
        tuple(AXES[a] for a in axes),
        tuple(positions[a][:: steps[a]] for a in axes),
        tuple((grid.origin[a], grid.origin[a] + grid.extent[a]) for a in axes),
        tuple((AXES[a], float(positions[a][i])) for a, i in cuts.items()),
    )


def fields_of(source: Any) -> Fields:
    """Return the fields of a simulation, a linear problem or its solution."""
    fields = source if isinstance(source, Fields) else getattr(source, "fields", None)
    if not isinstance(fields, Fields):
        raise InputError(f"a picture of {source!r}: expected a Simulation, LinearProblem or Solution")
    return fields


def _name(expression: Any) -> str:
    return (
        expression
        if isinstance(expression, str)
        else expression.name
        if isinstance(expression, Field)
        else repr(expression)
    )


def _cut_index(line: NDArray[np.float64], at: float | None, axis: int, grid: Grid) -> int:
    """Return the index of the point nearest to the cut of an axis, by default in the middle."""
    extent = grid.extent[axis]
    if at is None:
        at = grid.origin[axis] + 0.5 * extent
    if not float(line[0]) - extent <= at <= float(line[-1]) + extent:
        raise InputError(f"at is {at!r}: axis {AXES[axis]} has points from {line[0]:g} to {line[-1]:g}")
    return nearest(line, at, period(grid, axis))


def _gather(
    fields: Fields, field: Field, points: tuple[int, ...], cut: dict[int, int], steps: dict[int, int]
) -> NDArray[Any] | None:
    """Return the selected points of all ranks, on the first rank."""
    local_pieces = []
    for origin, view in fields.views(field):
        chosen: list[Any] = []
        places = []
        for a, (first, n) in enumerate(zip(origin, view.shape, strict=True)):
            if a in cut:
                inside = first <= cut[a] < first + n
                chosen.append(slice(cut[a] - first, cut[a] - first + 1) if inside else slice(0, 0))
                places.append(0)
            else:
                skip = -first % steps[a]
                chosen.append(slice(skip, n, steps[a]))
                places.append((first + skip) // steps[a])
        local_pieces.append((tuple(places), np.ascontiguousarray(view[tuple(chosen)])))
    pieces = fields.domain.comm.gather(local_pieces)
    if pieces is None:
        return None
    shape = [1 if a in cut else -(-n // steps[a]) for a, n in enumerate(points)]
    whole = assembled_pieces(chain.from_iterable(pieces), tuple(shape), field.dtype)
    return whole.squeeze(axis=tuple(cut))
