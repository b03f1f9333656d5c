"""Reductions: numbers over the whole grid, for the scalar statements of a program.

A reduction covers all points at the location of the expression. Along an axis with staggered points there is
one more point, at the upper wall. An expression that reads at explicit offsets is reduced over cells. There
is one exception: along an axis where all its fields are staggered and read without an offset, the expression
is reduced over their points.

Reductions of a vector are formed by component: ``hc.max(v)`` is a Vector of scalars. The exceptions are
`norm`, and `dot` of two vectors. The maximum length is ``hc.max(hc.sqrt(hc.dot(v, v)))``.

Sums are order-independent (docs/decisions/0001): their bits do not depend on ranks, threads or patches.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import product
from typing import Any

from halocline.errors import InputError
from halocline.lang.axes import is_sequence, whole_number
from halocline.lang.expression import Expr, Operand, as_expr, place_of, reduction, unary, where
from halocline.lang.functions import maximum, minimum
from halocline.lang.grid import AXES, Grid, Vector, by_component
from halocline.lang.location import have_common_place
from halocline.lang.operators import inner
from halocline.lang.values import as_quantity

ROUNDING = 1e-12  # tolerance for the coordinate of a point, as a share of the spacing


def _operand(value: Any, label: str) -> Expr:
    e = as_expr(value, label)
    if not e.varies:
        raise InputError(
            f"{label} over the grid needs an expression that varies from cell to cell, got {e!r}"
        )
    return e


@by_component
def sum(f: Operand) -> Expr:
    """Return the sum over all cells."""
    return reduction("sum", _operand(f, "sum"))


def dot(a: Any, b: Any) -> Expr:
    """Return the dot product of two fields or expressions, or of two vectors.

    For two fields or expressions, the result is a scalar: the sum of their product over all cells. For two
    vectors, the result is an expression: their product in each cell, summed over components.
    """
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        return inner(a, b)
    return reduction("sum", _operand(as_expr(a) * as_expr(b), "dot"))


def norm(f: Any) -> Expr:
    """Return the Euclidean norm over all points and components.

    Parameters
    ----------
    f : field, stage, expression, or a vector of them and of numbers
        Components with a common location are summed over the points at this location. A component that is a
        number is then counted at each of these points. Otherwise, each component is summed over the points of
        its own location.

    Raises
    ------
    InputError
        No component varies from cell to cell, or a number is combined with components at several locations.
    """
    components = [as_expr(c) for c in f] if isinstance(f, (tuple, list)) else [as_expr(f)]
    if have_common_place(components):
        return unary("sqrt", reduction("sum", _operand(inner(components, components), "norm")))
    squares = as_expr(0.0)
    for e in components:
        if e.varies:
            squares = squares + sum(e * e)
        elif e.op != "const" or e.attribute != 0.0:
            raise InputError(
                f"norm of {e!r} with components at several locations: the number of points for {e!r} is "
                "undefined. Interpolate the components to one location, as in "
                f"hc.norm([*hc.to(v, 'cell'), 3.0]), or leave {e!r} out."
            )
    return unary("sqrt", squares)


@by_component
def min(f: Operand, *operands: Operand) -> Expr:
    """Return the minimum over all cells, or the minimum of several arguments in each cell."""
    return minimum(f, *operands) if operands else reduction("min", _operand(f, "min"))


@by_component
def max(f: Operand, *operands: Operand) -> Expr:
    """Return the maximum over all cells, or the maximum of several arguments in each cell."""
    return maximum(f, *operands) if operands else reduction("max", _operand(f, "max"))


@by_component
def count(condition: Operand) -> Expr:
    """Return the number of cells in which a condition holds."""
    c = _operand(condition, "count")
    if not c.condition:
        raise InputError(f"hc.count() needs a condition such as u > 0, got {c!r}")
    return reduction("count", where(c, 1.0, 0.0))


@by_component
def first(condition: Operand) -> Expr:
    """Return the number of the first point at which a condition holds, or infinity if there is none.

    Points are numbered in C order over the whole grid. If the fields of the condition are staggered along a
    walled axis, there is one point more than cells along this axis. The index of the point is
    ``numpy.unravel_index(int(number), points)``.
    """
    c = _operand(condition, "first")
    if not c.condition:
        raise InputError(f"hc.first() needs a condition such as u < 0, got {c!r}")
    grid = c.grid
    assert grid is not None  # an expression that varies has a grid
    return reduction("min", where(c, grid.cell_number(place_of(c)), math.inf))


def value(
    f: Any,
    at: int | Sequence[int] | None = None,
    *,
    x: float | None = None,
    y: float | None = None,
    z: float | None = None,
) -> Any:
    """Return the value at one point, given by its index or its coordinates.

    Parameters
    ----------
    f : field, stage or expression, or a vector of them, by component
    at : sequence of int, or int on a grid of one axis
        Global index of a point of `f`. Negative entries count from the upper end.
    x, y, z : float
        Coordinates of the point, one for each axis, inside the extent of the grid. The value is interpolated
        linearly between the nearest points at the location of `f`. Between a wall and the nearest point, the
        value is extrapolated linearly from the two points nearest to the wall. Periodic axes wrap around.

    Raises
    ------
    InputError
        An index is not an integer or lies outside the expression, or a coordinate is missing or lies outside
        the grid.

    Examples
    --------
    >>> import halocline as hc
    >>> grid = hc.Grid((8, 8))
    >>> u = grid.field("u")
    >>> corner, middle = hc.value(u, at=(0, 0)), hc.value(u, x=0.5, y=0.5)
    """
    if isinstance(f, (tuple, list)):
        return Vector(value(c, at, x=x, y=y, z=z) for c in f)
    e = _operand(f, "value")
    grid = e.grid
    if grid is None:
        raise InputError(f"value of {e!r}: the expression contains no field of a grid")
    place = place_of(e)
    coordinates = {axis: c for axis, c in zip(AXES, (x, y, z), strict=True) if c is not None}
    if (at is None) == (not coordinates):
        raise InputError(
            f"value of {e!r}: expected either the index of a point, at={(0,) * grid.ndim}, or coordinates, "
            f"{', '.join(f'{a}=0.5' for a in AXES[: grid.ndim])}"
        )
    if at is not None:
        return reduction("value", e, _index(at, grid.points(place)), place)
    if tuple(coordinates) != tuple(AXES[: grid.ndim]):
        raise InputError(
            f"value at {', '.join(f'{a}={c!r}' for a, c in coordinates.items())}: expected one coordinate "
            f"for each axis of the grid: {', '.join(AXES[: grid.ndim])}"
        )
    total = as_expr(0.0)
    for corner in product(*(_weights(grid, place, a, coordinates[AXES[a]]) for a in range(grid.ndim))):
        cell, weight = tuple(i for i, _ in corner), math.prod(w for _, w in corner)
        total = total + weight * reduction("value", e, cell, place)
    return total


def _index(at: Any, points: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of a point as integers from 0."""
    indices = tuple(at) if is_sequence(at) else (at,)
    entries = [i for i in map(whole_number, indices) if i is not None]
    if len(entries) < len(indices):
        raise InputError(
            f"value at {at!r}: expected whole numbers, the index of a point. Coordinates are given by name: "
            "hc.value(f, x=0.5, y=0.5)"
        )
    if len(entries) != len(points) or not all(-n <= i < n for i, n in zip(entries, points, strict=True)):
        raise InputError(f"value at {at!r}: this index lies outside the expression, which has shape {points}")
    return tuple(i % n for i, n in zip(entries, points, strict=True))


def _weights(grid: Grid, place: Sequence[bool], axis: int, coordinate: Any) -> list[tuple[int, float]]:
    """Return points along an axis with their weights in the linear interpolation at a coordinate."""
    name, low, length = AXES[axis], grid.origin[axis], grid.extent[axis]
    at = as_quantity(coordinate)
    if at is None or not low <= at <= low + length:
        raise InputError(
            f"value at {name}={coordinate!r}: expected a number from {low:g} to {low + length:g}, the extent "
            f"of axis {name}"
        )
    points = [float(p) for p in grid.positions(place)[axis]]
    if len(points) == 1:
        return [(0, 1.0)]
    last = len(points) - 1
    if grid.periodic[axis] and not points[0] <= at <= points[-1]:
        below, above, start, gap = last, 0, points[-1], points[0] + length - points[-1]
        at += length if at < points[0] else 0.0
    else:
        below = sorted((0, bisect_right(points, at) - 1, last - 1))[1]  # the axis has two points or more
        above, start, gap = below + 1, points[below], points[below + 1] - points[below]
    share = (at - start) / gap
    share = float(round(share)) if abs(share - round(share)) < ROUNDING else share
    return [(i, w) for i, w in ((below, 1.0 - share), (above, share)) if w != 0.0]
