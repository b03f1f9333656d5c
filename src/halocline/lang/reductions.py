"""Reductions: numbers over the whole grid, usable in the scalar statements of a program.

They run over the cells; along an axis that every field in the expression is staggered along, and is read in
place, over the points of these fields, of which there is one more at an upper wall.

Sums are order-independent (docs/decisions/0001): their bits do not depend on ranks, threads or patches.
"""

from __future__ import annotations

import math
from typing import Any

from halocline.errors import InputError
from halocline.lang.expression import Expr, Operand, as_expr, place_of, reduction, unary, where
from halocline.lang.functions import maximum, minimum
from halocline.lang.operators import inner


def _operand(value: Any, what: str) -> Expr:
    e = as_expr(value, what)
    if not e.varies:
        raise InputError(f"{what} over the grid needs an expression that varies from cell to cell, got {e!r}")
    return e


def sum(f: Operand) -> Expr:
    """The sum over all cells."""
    return reduction("sum", _operand(f, "sum"))


def dot(a: Any, b: Any) -> Expr:
    """Of two fields or expressions: the sum over all cells of their product, a scalar.

    Of two vectors: their product at each cell, summed over components, an expression.
    """
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        return inner(a, b)
    return reduction("sum", _operand(as_expr(a) * as_expr(b), "dot"))


def norm(f: Any) -> Expr:
    """The Euclidean norm over all cells (and components, each over the points of its own location)."""
    components = [as_expr(c) for c in f] if isinstance(f, (tuple, list)) else [as_expr(f)]
    if len({e.placement.first for e in components if e.placement is not None}) > 1:
        squares = as_expr(0.0)
        for e in components:
            squares = squares + (sum(e * e) if e.varies or e.attribute != 0 else 0.0)
        return unary("sqrt", squares)
    return unary("sqrt", reduction("sum", _operand(inner(components, components), "norm")))


def min(f: Operand, *others: Operand) -> Expr:
    """With one argument the least value over all cells; with several the least of them by cell."""
    return minimum(f, *others) if others else reduction("min", _operand(f, "min"))


def max(f: Operand, *others: Operand) -> Expr:
    """With one argument the greatest value over all cells; with several the greatest of them by cell."""
    return maximum(f, *others) if others else reduction("max", _operand(f, "max"))


def count(condition: Operand) -> Expr:
    """In how many cells a condition holds."""
    c = _operand(condition, "count")
    if not c.condition:
        raise InputError(f"count needs a condition such as u > 0, got {c!r}")
    return reduction("count", where(c, 1.0, 0.0))


def first(condition: Operand) -> Expr:
    """The number of the first point where a condition holds, counted in C order over the whole grid; infinity
    where it holds nowhere.

    There is one point more than cells along a walled axis that the condition's fields are staggered along.
    ``numpy.unravel_index(int(number), points)`` gives its index back.
    """
    c = _operand(condition, "first")
    if not c.condition:
        raise InputError(f"first needs a condition such as u < 0, got {c!r}")
    grid = c.grid
    assert grid is not None  # it varies
    return reduction("min", where(c, grid.cell_number(place_of(c)), math.inf))


def value(f: Operand, at: int | tuple[int, ...]) -> Expr:
    """The value at one cell.

    Parameters
    ----------
    at : tuple of int, or int on a grid of one axis
        The cell's global index; negative entries count from the upper end.
    """
    e = _operand(f, "value")
    grid = e.grid
    if grid is None:
        raise InputError(f"value of {e!r}: no field of a grid is in it")
    place = place_of(e)
    points = grid.points(place)
    at = (at,) if isinstance(at, int) else tuple(at)
    if len(at) != grid.ndim or not all(-n <= i < n for i, n in zip(at, points, strict=True)):
        raise InputError(f"value at {at!r}: no point of an expression of shape {points}")
    cell = tuple(i + n if i < 0 else i for i, n in zip(at, points, strict=True))
    return reduction("value", e, cell, place)
