"""Difference operators of any even order, and operators of vector calculus.

Derivatives and differences of a vector are formed by component.

Central differences give the result of each operator at the location of its operand. Staggered differences
also give a first derivative half a cell away along its axis, and a mixed derivative half a cell away along
both axes. The other operands, or the field that is set, select the location; see halocline.lang.location. An
operand without a location is treated as an operand in cells if all its fields lie in cells. Otherwise the
operator raises InputError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from math import comb, factorial
from typing import Any

from halocline.errors import InputError
from halocline.lang import expression as graph
from halocline.lang import trace
from halocline.lang.axes import axis_number, whole_number
from halocline.lang.expression import Expr, Operand
from halocline.lang.ghost_products import note_difference, operand_of_call, reporting_operand
from halocline.lang.grid import Grid, Vector, by_component, pad
from halocline.lang.location import Place, form_at, locations, sorted_places, staggering
from halocline.lang.stretch import beside, check_even, neighbours, sides
from halocline.lang.weights import weights
from halocline.ranges import ORDER
from halocline.words import short_repr


def first_coefficients(order: int) -> tuple[Fraction, ...]:
    """Return the weights of the central first derivative.

    The weights are the factors c_k of (f(k) - f(-k)) / h, k = 1 .. order/2. With m = order / 2 (Fornberg
    1988, Math. Comp. 51, 699): c_k = (-1)^(k+1) (m!)^2 / (k (m-k)! (m+k)!).
    """
    m = trace.check_order(order) // 2
    return weights(range(-m, m + 1), derivative=1)[m + 1 :]


def second_coefficients(order: int) -> tuple[Fraction, ...]:
    """Return the weights of the central second derivative.

    The second derivative is (d_0 f(0) + sum_k d_k (f(k) + f(-k))) / h^2, k = 1 .. order/2. The weights are
    d_0 and d_k. With m = order / 2: d_k = 2 (-1)^(k+1) (m!)^2 / (k^2 (m-k)! (m+k)!), d_0 = -2 sum_k d_k.
    """
    m = trace.check_order(order) // 2
    return weights(range(-m, m + 1), derivative=2)[m:]


def staggered_coefficients(order: int) -> tuple[Fraction, ...]:
    """Return the weights of the staggered first derivative.

    The weights are the factors c_k of (f(k - 1/2) - f(1/2 - k)) / h, k = 1 .. order/2. With m = order / 2
    (Fornberg 1988): c_k = (-1)^(k+1) ((2m-1)!!)^2 / (2^(2m-2) (m-k)! (m+k-1)! (2k-1)^2).
    """
    return weights(_staggered_points(order), derivative=1)[order // 2 :]


def interpolation_coefficients(order: int) -> tuple[Fraction, ...]:
    """Return the Lagrange weights of the value halfway between two points.

    The weights are the factors of f(k - 1/2) + f(1/2 - k), k = 1 .. order/2, with m = order / 2:
    (-1)^(k+1) ((2m-1)!!)^2 / (2^(2m-1) (m-k)! (m+k-1)! (2k-1)).
    """
    return weights(_staggered_points(order))[order // 2 :]


def _staggered_points(order: int) -> tuple[Fraction, ...]:
    """Return the positions of `order` points, relative to the middle between the two central points."""
    m = trace.check_order(order) // 2
    return tuple(k - Fraction(1, 2) for k in range(1 - m, m + 1))


# Function that returns the result of an operator from a node without a location and the place of the node.
Formula = Callable[[Expr, Place], Expr]


def _form_result(
    e: Expr,
    formula: Formula,
    axes: Sequence[int] = (),
    staggered: Formula | None = None,
    *,
    name: str,
    detail: Any = None,
) -> Expr:
    """Return the result of an operator, with all locations at which it can be formed.

    `formula` forms the result at the locations of the operand. `staggered` forms it half a cell away along
    `axes`. `name` and `detail` are the notation of the operator; see `halocline.lang.expression`.

    Raises
    ------
    InputError
        The operand has no location, and not all of its fields lie in cells.
    """
    if not e.varies:
        return formula(e, ())

    def formed(form: Formula, operand: Expr, place: Place) -> Expr:
        return graph.with_notation(form(operand, place), name, [operand], detail)

    operand = operand_of_call(e)
    if e.placement is None:
        sources = [source for source, _ in graph.reads_of(e, keep_stages=True)]
        if not sources or any(any(source.staggered) for source in sources):
            raise InputError(_unknown("a difference", e, "difference"))
        cells = (False,) * _grid(e, "a difference").ndim
        with reporting_operand(operand):
            return graph.with_location(formed(formula, e, cells), cells)
    places = dict(e.placement.places)
    formulas: dict[Place, tuple[Formula, Place]] = {p: (formula, p) for p in places}
    if staggered is not None:
        for p, count in e.placement.places.items():
            half_a_cell_away = tuple(not s if a in axes else s for a, s in enumerate(p))
            cost = count + len(axes)
            if all(p[a] is not None for a in axes) and cost < places.get(half_a_cell_away, cost + 1):
                places[half_a_cell_away], formulas[half_a_cell_away] = cost, (staggered, p)

    def build(place: Place) -> Expr:
        form, start = formulas[place]
        with reporting_operand(operand):
            return formed(form, form_at(e, start), start)

    places = sorted_places(places)
    return graph.with_places(build(next(iter(places))), places, build)


def _unknown(label: str, e: Expr, alternative: str) -> str:
    """Return the message for an operand without a location."""
    return (
        f"{label} of {e!r}: its location is unknown, because it reads at explicit offsets. Declare the "
        "location with hc.stage(..., location='face-x'), replace the offsets by hc.to, or write the "
        f"{alternative} with offsets too."
    )


def _grid(expression: Expr, label: str) -> Grid:
    if expression.grid is None:
        raise InputError(f"{label} of {expression!r}: the expression contains no field of a grid")
    return expression.grid


def _ordered_sum(terms: Iterable[Expr]) -> Expr:
    """Return the sum of terms, in the given order."""
    return sum(terms, graph.constant(0.0))


def _neighbour(e: Expr, *steps: tuple[int, int]) -> Expr:
    """Return an expression at a neighbour: for each pair (axis, step), `step` cells further along `axis`."""
    offset = [0] * _grid(e, "a shift").ndim
    for axis, step in steps:
        offset[axis] += step
    return graph.shift(e, tuple(offset))


def shift(f: Any, axis: int | str, by: int = 1) -> Any:
    """Return the value `by` cells further along an axis; of a vector, by component.

    In a formula that serves every axis and grids of one to three axes, this function replaces ``f[1, 0]``.
    The shift is an explicit offset, even for ``by=0``: locations are not checked.

    Parameters
    ----------
    f : field, stage, expression, number, or a vector of them
    axis : int or str
        Axis of the shift. Along an axis that the grid lacks, the result is the value itself.
    by : int
        Number of cells; a negative number shifts backward.
    """
    if isinstance(f, (tuple, list)):
        return Vector(shift(c, axis, by) for c in f)
    e, a = graph.as_expr(f), axis_number(axis)
    cells = whole_number(by)
    if cells is None:
        raise InputError(f"shift by {short_repr(by)}: expected a whole number of cells")
    e = graph.without_location(e)
    if not e.varies or a >= _grid(e, "a shift").ndim:
        return e
    return _neighbour(e, (a, cells))


@by_component
def derivative(
    f: Operand, axis: int | str, axis2: int | str | None = None, *, order: int | None = None
) -> Expr:
    """Return a first derivative, or the mixed or second derivative along two axes.

    Parameters
    ----------
    f : field, stage or expression
    axis, axis2 : int or str
        Axes of the derivative. Along an axis that the grid lacks, the derivative is zero.
    order : int, optional
        Even order of accuracy; by default the order of the simulation, or 2.

    Raises
    ------
    InputError
        The expression reads at explicit offsets, and a field in it does not lie in cells.

    Notes
    -----
    The first derivative at the points of `f` is a central difference. Half a cell away along the axis, the
    first derivative is a staggered difference: on the faces across the axis for a field in cells, and in
    cells for a field on these faces. The field that is set, or the other operands, select the location. If
    neither selects a location, the result lies at the location that is staggered along fewer axes.

    The mixed derivative is bidiagonal: it reads only the diagonals of the plane (Pekkilä et al. 2022, Eq.
    14). The formula is f_xy = 1/(4 h_x h_y) sum_k d_k [f(k, k) + f(-k, -k) - f(k, -k) - f(-k, k)], and d_k
    are the weights of the second derivative. Half a cell away along both axes, the mixed derivative consists
    of two staggered differences, one along each axis.
    """
    e, a = graph.as_expr(f), axis_number(axis)
    order = trace.default_order() if order is None else order
    if axis2 is not None:
        b = axis_number(axis2)
        return second(e, a, order=order) if a == b else mixed(e, a, b, order=order)
    trace.check_order(order)
    if not e.varies:
        return graph.constant(0.0)
    grid = _grid(e, "a derivative")
    if a >= grid.ndim:
        return graph.constant(0.0)
    central = partial(_first_derivative, grid=grid, axis=a, order=order)
    between = partial(_staggered_derivative, grid=grid, axis=a, order=order)
    return _form_result(e, central, (a,), between, name="derivative", detail=(a,))


def _first_derivative(e: Expr, place: Place, *, grid: Grid, axis: int, order: int) -> Expr:
    """Return the central first derivative."""
    note_difference(grid, axis, place, order // 2)
    if grid.maps[axis] is not None:
        return (_neighbour(e, (axis, 1)) - _neighbour(e, (axis, -1))) * (
            1.0 / sum(_neighbour_distances(grid, axis, order, place))
        )
    scale = 1.0 / grid.h(axis)
    return _ordered_sum(
        (_neighbour(e, (axis, k)) - _neighbour(e, (axis, -k))) * (float(weight) * scale)
        for k, weight in enumerate(first_coefficients(order), 1)
    )


def _staggered_derivative(e: Expr, place: Place, *, grid: Grid, axis: int, order: int) -> Expr:
    """Return the first derivative halfway between the points of `e` along an axis."""
    note_difference(grid, axis, place, order // 2, staggered=True)
    if grid.maps[axis] is not None:
        _check_stretched(grid, axis, order)
        before, after = sides(grid.ndim, axis, bool(place[axis]), 1)
        _, low, high = beside(grid, axis, place)
        return (graph.shift(e, after) - graph.shift(e, before)) / (high - low)
    scale, total = 1.0 / grid.h(axis), graph.constant(0.0)
    for k, weight in enumerate(staggered_coefficients(order), 1):
        before, after = sides(grid.ndim, axis, bool(place[axis]), k)
        total = total + (graph.shift(e, after) - graph.shift(e, before)) * (float(weight) * scale)
    return total


def _interpolation(e: Expr, place: Place, *, grid: Grid, axis: int, order: int) -> Expr:
    """Return the value halfway between the points of `e` along an axis."""
    if grid.maps[axis] is not None:
        _check_stretched(grid, axis, order)
        before, after = (graph.shift(e, offset) for offset in sides(grid.ndim, axis, bool(place[axis]), 1))
        x, low, high = beside(grid, axis, place)
        return before + (after - before) * ((x - low) / (high - low))
    total = graph.constant(0.0)
    for k, weight in enumerate(interpolation_coefficients(order), 1):
        before, after = (graph.shift(e, offset) for offset in sides(grid.ndim, axis, bool(place[axis]), k))
        total = total + (before + after) * float(weight)
    return total


def to(f: Any, location: str | Sequence[str], *, order: int | None = None) -> Any:
    """Return a value interpolated to another location.

    Parameters
    ----------
    f : field, stage, expression, number, or a vector of them
    location : str or sequence of str
        "cell", "node", "face-x", "edge-z", ...; for a vector, one location for each component. "face" and
        "edge" put each component on the faces or edges of its axis.
    order : int, optional
        Even order of accuracy; by default the order of the simulation, or 2. Order 2 is the mean of two
        points along each axis. Stretched axes accept order 2 only.

    Returns
    -------
    Expr or Vector
        Value at the location. If `f` is a derivative and can be formed at the location as a staggered
        difference, the result is this difference, without an interpolation.

    Raises
    ------
    InputError
        The location is unknown, or the expression reads at explicit offsets or is a condition.

    Examples
    --------
    >>> import halocline as hc
    >>> grid = hc.Grid((8, 8), periodic=True)
    >>> u, w = grid.field("u"), grid.vector("w", location="face")
    >>> flux = hc.Vector(f * hc.to(u, f.location) for f in w)
    >>> energy = 0.5 * hc.dot(hc.to(w, "cell"), hc.to(w, "cell"))
    """
    if isinstance(f, (tuple, list)):
        places = locations(location, len(f))
        if len(places) != len(f):
            raise InputError(
                f"hc.to: location {location!r} has {len(places)} entries for {len(f)} components; give one "
                "for all, or one for each"
            )
        return Vector(to(c, place, order=order) for c, place in zip(f, places, strict=True))
    e = graph.as_expr(f)
    if not isinstance(location, str):
        raise InputError(
            f"hc.to: location is {short_repr(location)}; expected text such as 'cell' or 'face-x'"
        )
    order = trace.check_order(trace.default_order() if order is None else order)
    if not e.varies:
        return e
    grid = _grid(e, "hc.to")
    target = staggering(location, grid.ndim, "hc.to")
    if e.condition:
        raise InputError(f"hc.to: {e!r} is a condition; use hc.where(condition, 1.0, 0.0)")
    if e.placement is None:
        raise InputError(_unknown("hc.to", e, "mean"))

    def differing_axes(place: Place) -> list[int]:
        return [a for a, s in enumerate(place) if s is not None and s != target[a]]

    start = min(e.placement.places, key=lambda place: len(differing_axes(place)))
    value, place = form_at(e, start), list(start)
    for axis in differing_axes(start):
        value = _interpolation(value, tuple(place), grid=grid, axis=axis, order=order)
        place[axis] = target[axis]
    return graph.with_location(graph.with_notation(value, "to", [e]), target)


def _check_stretched(grid: Grid, axis: int, order: int) -> None:
    """Raise InputError if an order is not available along a stretched axis."""
    if order != 2:
        check_even(
            grid,
            axis,
            f"a difference of order {order}",
            "order 2, because the weights of other orders differ from point to point",
        )


def _neighbour_distances(grid: Grid, axis: int, order: int, place: Place) -> tuple[Expr, Expr]:
    """Return the distances from a point to its lower and upper neighbour along a stretched axis."""
    _check_stretched(grid, axis, order)
    return neighbours(grid, axis, place)


@by_component
def second(f: Operand, axis: int | str, *, order: int | None = None) -> Expr:
    """Return the second derivative along one axis."""
    axis = axis_number(axis)

    def formula(e: Expr, place: Place) -> Expr:
        pair, centre = _second_parts(e, place, axis, order)
        return pair if centre is None else pair + e * centre

    return _form_result(graph.as_expr(f), formula, name="derivative", detail=(axis, axis))


def _second_parts(e: Expr, place: Place, axis: int, order: int | None) -> tuple[Expr, Expr | None]:
    """Return the sum of the outer terms of a second derivative, and the weight of the central value."""
    order = trace.default_order() if order is None else order
    weights = second_coefficients(order)
    if not e.varies:
        return graph.constant(0.0), None
    grid = _grid(e, "a derivative")
    if axis >= grid.ndim:
        return graph.constant(0.0), None
    note_difference(grid, axis, place, order // 2)
    if grid.maps[axis] is not None:
        below, above = _neighbour_distances(grid, axis, order, place)
        width = 0.5 * (below + above)
        after, before = 1.0 / (above * width), 1.0 / (below * width)
        return _neighbour(e, (axis, 1)) * after + _neighbour(e, (axis, -1)) * before, -(after + before)
    scale = 1.0 / (grid.h(axis) * grid.h(axis))
    total = graph.constant(0.0)
    for k, weight in enumerate(weights[1:], 1):
        total = total + (_neighbour(e, (axis, k)) + _neighbour(e, (axis, -k))) * (float(weight) * scale)
    return total, float(weights[0]) * scale


@by_component
def mixed(f: Operand, axis: int | str, axis2: int | str, *, order: int | None = None) -> Expr:
    """Return the bidiagonal mixed derivative along two different axes; see `derivative`."""
    e, a, b = graph.as_expr(f), axis_number(axis), axis_number(axis2)
    order = trace.check_order(trace.default_order() if order is None else order)
    if not e.varies:
        return graph.constant(0.0)
    grid = _grid(e, "a derivative")
    if max(a, b) >= grid.ndim:
        return graph.constant(0.0)

    def between(e: Expr, place: Place) -> Expr:
        difference = _staggered_derivative(e, place, grid=grid, axis=a, order=order)
        place = tuple(not s if axis == a else s for axis, s in enumerate(place))
        return _staggered_derivative(difference, place, grid=grid, axis=b, order=order)

    central = partial(_mixed_derivative, grid=grid, a=a, b=b, order=order)
    return _form_result(e, central, (a, b), between, name="derivative", detail=(a, b))


def _mixed_derivative(e: Expr, place: Place, *, grid: Grid, a: int, b: int, order: int) -> Expr:
    """Return the bidiagonal mixed derivative."""
    note_difference(grid, a, place, order // 2)
    note_difference(grid, b, place, order // 2)
    if grid.maps[a] is not None or grid.maps[b] is not None:
        difference = _first_derivative(e, place, grid=grid, axis=a, order=order)
        return _first_derivative(difference, place, grid=grid, axis=b, order=order)
    scale = 0.25 / (grid.h(a) * grid.h(b))
    # The differences are grouped in this way for compile/passes/lanes.py: along a row, the differences are
    # shifted copies of one another and of the differences in the first derivative.
    a, b = min(a, b), max(a, b)
    total = graph.constant(0.0)
    for k, weight in enumerate(second_coefficients(order)[1:], 1):
        upper = _neighbour(e, (a, k), (b, k)) - _neighbour(e, (a, -k), (b, k))
        lower = _neighbour(e, (a, k), (b, -k)) - _neighbour(e, (a, -k), (b, -k))
        total = total + (upper - lower) * (float(weight) * scale)
    return total


def laplacian(f: Any, *, order: int | None = None) -> Any:
    """Return the sum of the second derivatives along all axes of the grid; of a vector, by component."""
    if isinstance(f, (tuple, list)):
        return Vector(laplacian(c, order=order) for c in f)

    def formula(e: Expr, place: Place) -> Expr:
        total, centre = graph.constant(0.0), graph.constant(0.0)
        for axis in range(_grid(e, "laplacian").ndim if e.varies else 0):
            pair, weight = _second_parts(e, place, axis, order)
            total = total + pair
            centre = centre + (0.0 if weight is None else weight)
        return total + e * centre

    return _form_result(graph.as_expr(f), formula, name="laplacian")


def grad(f: Operand, *, order: int | None = None) -> Vector:
    """Return the gradient: one component per axis of the grid.

    The gradient of a field in cells lies in cells by default. It lies on faces in an expression with a vector
    on faces, and in an assignment to a vector on faces.
    """
    e = graph.as_expr(f, "the operand of grad")
    return Vector(derivative(e, a, order=order) for a in range(_grid(e, "grad").ndim))


def div(v: Sequence[Operand], *, order: int | None = None) -> Expr:
    """Return the divergence of a vector.

    The divergence lies in cells if each component lies on the faces of its axis.
    """
    components = [graph.as_expr(component) for component in _vector(v, "div")]
    total = _ordered_sum(
        derivative(component, axis, order=order) for axis, component in enumerate(components)
    )
    return graph.with_notation(total, "div", components)


def grad_div(v: Sequence[Operand], *, order: int | None = None) -> Vector:
    """Return the gradient of the divergence, sum_j d_i d_j v_j, as three components.

    The result is formed from second and mixed derivatives, at the locations of the components of `v`.
    """
    components = list(pad(_vector(v, "grad_div"), 3))
    return Vector(
        _ordered_sum(derivative(component, i, j, order=order) for j, component in enumerate(components))
        for i in range(3)
    )


@by_component
def difference(f: Operand, axis: int | str, count: int) -> Expr:
    """Return a central difference: `count` successive first differences, where `count` is even.

    The result is sum_k (-1)^k C(count, k) f(count/2 - k), without division by h. The formula is the same on
    stretched axes: it ignores the distances between the points.
    """
    e, a = graph.as_expr(f), axis_number(axis)
    even_count = whole_number(count)
    if even_count is None or not 2 <= even_count <= ORDER.most or even_count % 2:
        raise InputError(
            f"difference of count {short_repr(count)}; expected an even number from 2 to {ORDER.most}"
        )
    if not e.varies or a >= _grid(e, "a difference").ndim:
        return graph.constant(0.0)
    grid, half = _grid(e, "a difference"), even_count // 2

    def formula(e: Expr, place: Place) -> Expr:
        note_difference(grid, a, place, half)
        total = e * float((-1) ** half * comb(even_count, half))
        for k in range(1, half + 1):
            pair = _neighbour(e, (a, k)) + _neighbour(e, (a, -k))
            total = total + pair * float((-1) ** (half - k) * comb(even_count, half - k))
        return total

    return _form_result(e, formula, name="difference", detail=(a, even_count))


def upwinding(f: Any, u: Sequence[Operand], *, order: int | None = None) -> Any:
    """Return the upwind correction of central advection, which damps features that the grid cannot resolve.

    The advection term -u·grad f plus this correction is an upwind scheme of one order less. The correction is
    sum_i ``|u_i|`` / h_i  m! (m-1)! / (2m)!  (-1)^(m+1) ``difference(f, i, 2 * m)``, with m = order / 2.
    The scheme reads the points from m points upwind to m - 1 points downwind. With order 6, it is the
    fifth-order upwinding of the Pencil Code. For a vector `f`, the correction is formed by component.
    """
    if isinstance(f, (tuple, list)):
        return Vector(upwinding(c, u, order=order) for c in f)
    e = graph.as_expr(f)
    m = trace.check_order(trace.default_order() if order is None else order) // 2
    weight = (-1) ** (m + 1) * Fraction(factorial(m) * factorial(m - 1), factorial(2 * m))
    grid, total = _grid(e, "upwinding"), graph.constant(0.0)
    for axis, component in enumerate(_vector(u, "upwinding")[: grid.ndim]):
        check_even(grid, axis, "upwinding")
        speed = graph.unary("abs", component) * (float(weight) / grid.h(axis))
        total = total + speed * difference(e, axis, 2 * m)
    return total


def hyperdiffusion(f: Any) -> Any:
    """Return the sum of the sixth derivatives along all axes, each from seven points.

    For a vector, the sum is formed by component.
    """
    if isinstance(f, (tuple, list)):
        return Vector(hyperdiffusion(c) for c in f)
    e = graph.as_expr(f)
    if not e.varies:
        return graph.constant(0.0)
    grid = _grid(e, "hyperdiffusion")
    for axis in range(grid.ndim):
        check_even(grid, axis, "a sixth derivative")
    return _ordered_sum(difference(e, axis, 6) * (1.0 / grid.h(axis) ** 6) for axis in range(grid.ndim))


def curl(v: Sequence[Operand], *, order: int | None = None) -> Vector:
    """Return the curl of a vector, always three components.

    The curl of a vector on faces lies on edges, and the curl of a vector on edges lies on faces. The curl of
    any other vector lies at the location of the vector.
    """
    x, y, z = pad(_vector(v, "curl"), 3)

    def d(f: Operand, axis: int) -> Expr:
        return derivative(f, axis, order=order)

    return Vector((d(z, 1) - d(y, 2), d(x, 2) - d(z, 0), d(y, 0) - d(x, 1)))


def cross(a: Sequence[Operand], b: Sequence[Operand]) -> Vector:
    """Return the cross product of two vectors, always three components."""
    ax, ay, az = (graph.as_expr(c) for c in pad(_vector(a, "cross"), 3))
    bx, by, bz = (graph.as_expr(c) for c in pad(_vector(b, "cross"), 3))
    return Vector((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx))


def inner(a: Sequence[Operand], b: Sequence[Operand]) -> Expr:
    """Return the pointwise product of two vectors, summed over components."""
    count = max(len(_vector(a, "dot")), len(_vector(b, "dot")))
    pairs = zip(pad(a, count), pad(b, count), strict=True)
    return _ordered_sum(graph.as_expr(p) * graph.as_expr(q) for p, q in pairs)


def traceless_strain(u: Sequence[Operand], *, order: int | None = None) -> tuple[Vector, Vector, Vector]:
    """Return the traceless rate-of-strain tensor of a velocity, as three rows of three components.

    The entries are S_ij = (d_j u_i + d_i u_j) / 2 - delta_ij div(u) / 3.
    """
    v = list(pad(_vector(u, "traceless_strain"), 3))
    third = div(u, order=order) * (1.0 / 3.0)

    def entry(i: int, j: int) -> Expr:
        strain = 0.5 * (derivative(v[i], j, order=order) + derivative(v[j], i, order=order))
        return strain - third if i == j else strain

    x, y, z = (Vector(entry(i, j) for j in range(3)) for i in range(3))
    return x, y, z


def _vector(v: Any, label: str) -> Sequence[Any]:
    if not isinstance(v, (tuple, list)):
        raise InputError(
            f"{label} needs a vector (grid.vector or a tuple of expressions), got {short_repr(v)}"
        )
    return v
