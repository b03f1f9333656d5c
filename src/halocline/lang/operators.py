"""Difference operators of any even order, and vector calculus built from them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb, factorial
from typing import Any

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.axes import axis_number
from halocline.lang.expression import Expr, Operand, as_expr, constant, unary
from halocline.lang.expression import shift as shift_by
from halocline.lang.grid import Grid, Vector, pad
from halocline.lang.stretch import check_even, neighbours


def first_coefficients(order: int) -> list[Fraction]:
    """Weights c_k of (f(k) - f(-k)) / h, k = 1 .. order/2, of the central first derivative.

    c_k = (-1)^(k+1) (m!)^2 / (k (m-k)! (m+k)!), m = order / 2 (Fornberg 1988, Math. Comp. 51, 699).
    """
    m = trace.check_order(order) // 2
    return [
        Fraction((-1) ** (k + 1) * factorial(m) ** 2, k * factorial(m - k) * factorial(m + k))
        for k in range(1, m + 1)
    ]


def second_coefficients(order: int) -> list[Fraction]:
    """Weights d_0 of f(0) and d_k of f(k) + f(-k), k = 1 .. order/2, over h^2, of the central second
    derivative.

    d_k = 2 (-1)^(k+1) (m!)^2 / (k^2 (m-k)! (m+k)!), d_0 = -2 sum_k d_k.
    """
    m = trace.check_order(order) // 2
    outer = [
        Fraction(2 * (-1) ** (k + 1) * factorial(m) ** 2, k * k * factorial(m - k) * factorial(m + k))
        for k in range(1, m + 1)
    ]
    return [-2 * sum(outer, Fraction(0)), *outer]


def _grid(expression: Expr, what: str) -> Grid:
    if expression.grid is None:
        raise InputError(f"{what} of {expression!r}: no field of a grid is in it")
    return expression.grid


def _unit(grid: Grid, *steps: tuple[int, int]) -> tuple[int, ...]:
    offset = [0] * grid.ndim
    for axis, step in steps:
        offset[axis] += step
    return tuple(offset)


def shift(f: Any, axis: int | str, by: int = 1) -> Any:
    """The value `by` cells further along an axis; of a vector, by component.

    The same as ``f[1, 0]`` and so on, for formulas that serve every axis and grids of one to three axes.

    Parameters
    ----------
    f : field, stage, expression, number, or a vector of them
    axis : int or str
        Along an axis that the grid lacks everything is constant: the value itself.
    by : int
        Negative values look backward.
    """
    if isinstance(f, (tuple, list)):
        return Vector(shift(c, axis, by) for c in f)
    e, a = as_expr(f), axis_number(axis)
    if isinstance(by, bool) or not isinstance(by, int):
        raise InputError(f"shift by {by!r}: expected a whole number of cells")
    if not e.varies or a >= _grid(e, "a shift").ndim:
        return e
    return shift_by(e, _unit(_grid(e, "a shift"), (a, by)))


def derivative(
    f: Operand, axis: int | str, axis2: int | str | None = None, *, order: int | None = None
) -> Expr:
    """A first derivative, or the mixed or second derivative along two axes, by central differences.

    Parameters
    ----------
    f : field, stage or expression
    axis, axis2 : int or str
        Along an axis that the grid lacks the derivative is zero.
    order : int, optional
        Even order of accuracy; by default that of the simulation, else 2.

    Notes
    -----
    The mixed derivative is bidiagonal: it reads only the diagonals of the plane,
    f_xy = 1 / (4 h_x h_y) sum_k d_k [f(k, k) + f(-k, -k) - f(k, -k) - f(-k, k)] with the weights d_k of the
    second derivative (Pekkilä et al. 2022, Eq. 14).
    """
    e, a = as_expr(f), axis_number(axis)
    order = trace.default_order() if order is None else order
    if axis2 is not None:
        b = axis_number(axis2)
        return second(e, a, order=order) if a == b else mixed(e, a, b, order=order)
    weights = first_coefficients(order)
    if not e.varies:
        return constant(0.0)
    grid = _grid(e, "a derivative")
    if a >= grid.ndim:
        return constant(0.0)
    total = constant(0.0)
    if grid.maps[a] is not None:
        return _central(e, grid, a) * (1.0 / sum(_distances(e, grid, a, order)))
    scale = 1.0 / grid.h(a)
    for k, weight in enumerate(weights, 1):
        total = total + (shift_by(e, _unit(grid, (a, k))) - shift_by(e, _unit(grid, (a, -k)))) * (
            float(weight) * scale
        )
    return total


def _central(e: Expr, grid: Grid, axis: int) -> Expr:
    """The difference of the values after and before."""
    return shift_by(e, _unit(grid, (axis, 1))) - shift_by(e, _unit(grid, (axis, -1)))


def _distances(e: Expr, grid: Grid, axis: int, order: int) -> tuple[Expr, Expr]:
    """To the points before and after those of an expression, along a stretched axis."""
    if order != 2:
        check_even(grid, axis, f"a difference of order {order}", "order 2: weights of others differ by point")
    return neighbours(e, grid, axis)


def second(f: Operand, axis: int | str, *, order: int | None = None) -> Expr:
    """The second derivative along one axis."""
    pair, centre = _second_parts(as_expr(f), axis_number(axis), order)
    return pair if centre is None else pair + as_expr(f) * centre


def _second_parts(e: Expr, axis: int, order: int | None) -> tuple[Expr, Expr | None]:
    """The outer terms of a second derivative and the weight of its centre."""
    order = trace.default_order() if order is None else order
    weights = second_coefficients(order)
    if not e.varies:
        return constant(0.0), None
    grid = _grid(e, "a derivative")
    if axis >= grid.ndim:
        return constant(0.0), None
    if grid.maps[axis] is not None:
        below, above = _distances(e, grid, axis, order)
        width = 0.5 * (below + above)
        after, before = 1.0 / (above * width), 1.0 / (below * width)
        pair = shift_by(e, _unit(grid, (axis, 1))) * after + shift_by(e, _unit(grid, (axis, -1))) * before
        return pair, -(after + before)
    scale = 1.0 / (grid.h(axis) * grid.h(axis))
    total = constant(0.0)
    for k, weight in enumerate(weights[1:], 1):
        total = total + (shift_by(e, _unit(grid, (axis, k))) + shift_by(e, _unit(grid, (axis, -k)))) * (
            float(weight) * scale
        )
    return total, float(weights[0]) * scale


def mixed(f: Operand, axis: int | str, axis2: int | str, *, order: int | None = None) -> Expr:
    """The mixed derivative along two different axes, bidiagonal; see `derivative`."""
    e, a, b = as_expr(f), axis_number(axis), axis_number(axis2)
    order = trace.default_order() if order is None else order
    weights = second_coefficients(order)
    if not e.varies:
        return constant(0.0)
    grid = _grid(e, "a derivative")
    if max(a, b) >= grid.ndim:
        return constant(0.0)
    if grid.maps[a] is not None or grid.maps[b] is not None:
        return derivative(derivative(e, a, order=order), b, order=order)
    scale = 0.25 / (grid.h(a) * grid.h(b))
    # differences across the later axis of differences across the earlier one: along a row these are shifts of
    # one another, and those of the first derivative (compile/lanes.py)
    a, b = min(a, b), max(a, b)
    total = constant(0.0)
    for k, weight in enumerate(weights[1:], 1):
        upper = shift_by(e, _unit(grid, (a, k), (b, k))) - shift_by(e, _unit(grid, (a, -k), (b, k)))
        lower = shift_by(e, _unit(grid, (a, k), (b, -k))) - shift_by(e, _unit(grid, (a, -k), (b, -k)))
        total = total + (upper - lower) * (float(weight) * scale)
    return total


def laplacian(f: Any, *, order: int | None = None) -> Any:
    """The sum of the second derivatives along all axes of the grid; of a vector, by component."""
    if isinstance(f, (tuple, list)):
        return Vector(laplacian(c, order=order) for c in f)
    e = as_expr(f)
    total, centre = constant(0.0), constant(0.0)
    for axis in range(_grid(e, "laplacian").ndim if e.varies else 0):
        pair, weight = _second_parts(e, axis, order)
        total = total + pair
        centre = centre + (0.0 if weight is None else weight)
    return total + e * centre


def grad(f: Operand, *, order: int | None = None) -> Vector:
    """The gradient: one component per axis of the grid."""
    e = as_expr(f)
    return Vector(derivative(e, a, order=order) for a in range(_grid(e, "grad").ndim))


def div(v: Sequence[Operand], *, order: int | None = None) -> Expr:
    """The divergence of a vector."""
    total = constant(0.0)
    for axis, component in enumerate(_vector(v, "div")):
        total = total + derivative(component, axis, order=order)
    return total


def grad_div(v: Sequence[Operand], *, order: int | None = None) -> Vector:
    """The gradient of the divergence, always three components: sum_j d_i d_j v_j, of second and mixed
    derivatives."""
    components = list(pad(_vector(v, "grad_div"), 3))
    sums = []
    for i in range(3):
        total = constant(0.0)
        for j, component in enumerate(components):
            total = total + derivative(component, i, j, order=order)
        sums.append(total)
    return Vector(sums)


def difference(f: Operand, axis: int | str, count: int) -> Expr:
    """The central difference of an even count, sum_k (-1)^k C(count, k) f(count/2 - k): `count` first
    differences one after the other, without division by h. It is of neighbouring points, on stretched axes
    too."""
    e, a = as_expr(f), axis_number(axis)
    if isinstance(count, bool) or not isinstance(count, int) or count < 2 or count % 2:
        raise InputError(f"difference of count {count!r}; expected an even number from 2")
    if not e.varies or a >= _grid(e, "a difference").ndim:
        return constant(0.0)
    grid, half = _grid(e, "a difference"), count // 2
    total = e * float((-1) ** half * comb(count, half))
    for k in range(1, half + 1):
        pair = shift_by(e, _unit(grid, (a, k))) + shift_by(e, _unit(grid, (a, -k)))
        total = total + pair * float((-1) ** (half - k) * comb(count, half - k))
    return total


def upwinding(f: Operand, u: Sequence[Operand], *, order: int | None = None) -> Expr:
    """What makes central advection lean upwind: -u·grad f plus this is of one order less, and damps what a
    grid cannot resolve.

    sum_i |u_i| / h_i  m! (m-1)! / (2m)!  (-1)^(m+1) times the difference of count 2m, with m = order / 2:
    the difference from m points upwind to m - 1 downwind; for the sixth order the fifth-order upwinding of
    the Pencil Code.
    """
    e = as_expr(f)
    m = trace.check_order(trace.default_order() if order is None else order) // 2
    weight = (-1) ** (m + 1) * Fraction(factorial(m) * factorial(m - 1), factorial(2 * m))
    grid, total = _grid(e, "upwinding"), constant(0.0)
    for axis, component in enumerate(_vector(u, "upwinding")[: grid.ndim]):
        check_even(grid, axis, "upwinding")
        speed = unary("abs", component) * (float(weight) / grid.h(axis))
        total = total + speed * difference(e, axis, 2 * m)
    return total


def hyperdiffusion(f: Any) -> Any:
    """The sum of the sixth derivatives along all axes, each from seven points; of a vector, by component."""
    if isinstance(f, (tuple, list)):
        return Vector(hyperdiffusion(c) for c in f)
    e, total = as_expr(f), constant(0.0)
    if not e.varies:
        return total
    grid = _grid(e, "hyperdiffusion")
    for axis in range(grid.ndim):
        check_even(grid, axis, "a sixth derivative")
        total = total + difference(e, axis, 6) * (1.0 / grid.h(axis) ** 6)
    return total


def curl(v: Sequence[Operand], *, order: int | None = None) -> Vector:
    """The curl of a vector, always three components."""
    x, y, z = pad(_vector(v, "curl"), 3)

    def d(f: Operand, axis: int) -> Expr:
        return derivative(f, axis, order=order)

    return Vector((d(z, 1) - d(y, 2), d(x, 2) - d(z, 0), d(y, 0) - d(x, 1)))


def cross(a: Sequence[Operand], b: Sequence[Operand]) -> Vector:
    """The cross product, three components."""
    ax, ay, az = (as_expr(c) for c in pad(_vector(a, "cross"), 3))
    bx, by, bz = (as_expr(c) for c in pad(_vector(b, "cross"), 3))
    return Vector((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx))


def inner(a: Sequence[Operand], b: Sequence[Operand]) -> Expr:
    """The pointwise product of two vectors, summed over components."""
    count = max(len(_vector(a, "dot")), len(_vector(b, "dot")))
    total = constant(0.0)
    for p, q in zip(pad(a, count), pad(b, count), strict=True):
        total = total + as_expr(p) * as_expr(q)
    return total


def traceless_strain(u: Sequence[Operand], *, order: int | None = None) -> tuple[Vector, Vector, Vector]:
    """S_ij = (d_j u_i + d_i u_j) / 2 - delta_ij div(u) / 3, three rows of three."""
    v = list(pad(_vector(u, "traceless_strain"), 3))
    third = div(u, order=order) * (1.0 / 3.0)
    rows = []
    for i in range(3):
        row = []
        for j in range(3):
            entry = 0.5 * (derivative(v[i], j, order=order) + derivative(v[j], i, order=order))
            row.append(entry - third if i == j else entry)
        rows.append(Vector(row))
    return rows[0], rows[1], rows[2]


def _vector(v: Any, what: str) -> Sequence[Any]:
    if not isinstance(v, (tuple, list)):
        raise InputError(f"{what} needs a vector (grid.vector or a tuple of expressions), got {v!r}")
    return v
