"""Boundary conditions: values of the ghost cells beyond a wall.

A condition belongs to one field and one side. For each ghost layer, it gives an expression of interior
values. Layers are counted outward from 0, and interior values inward from the wall. The formula depends on
the position of the wall: halfway between the first point and the first ghost, on the first ghost
(``Grid(walls="node")``), or on the first point (points staggered along the axis). A point on a wall belongs
to its field. The equations give the value of this point unless the condition sets it: see `with_wall_values`.

If the ghosts have an error of h^p, the first derivative next to the wall has order p - 1, and the second
derivative has order p - 2. A higher order of the differences does not change this limit. Each class
states the p of its ghosts. The order of a condition is independent of the order of the differences, for two
reasons. First, a field has one condition, but differences of several orders may read the field. Second,
ghosts of higher order make the matrix of a symmetric operator unsymmetric.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from halocline.errors import InputError
from halocline.lang import expression as graph
from halocline.lang import trace
from halocline.lang.axes import whole_number
from halocline.lang.callables import argument_count
from halocline.lang.expression import Expr, Operators
from halocline.lang.location import form_at_target
from halocline.lang.weights import weights
from halocline.ranges import ORDER, Range

if TYPE_CHECKING:
    from halocline.lang.grid import Field, Grid

SIDES = ("x-", "x+", "y-", "y+", "z-", "z+")
OTHER = "other"  # key of the condition for all sides that a mapping does not name


@dataclass(frozen=True)
class Ghost:
    """Ghost point: a point in layer `layer` outside the wall on one side of a field.

    Layer 0 is the first point outside, and layer -1 is the first interior point.
    """

    field: Field
    axis: int
    side: int  # -1 lower, +1 upper
    layer: int

    @property
    def wall(self) -> Fraction:
        """Distance from the first interior point outward to the wall, in spacings: 0, 1/2 or 1."""
        walls = self.field.grid.walls[self.axis]
        if self.field.staggered[self.axis]:
            return Fraction(0) if walls == "face" else Fraction(1, 2)
        return Fraction(1, 2) if walls == "face" else Fraction(1)

    def inner(self, m: int, field: Field | None = None, along: Sequence[int] = ()) -> Expr:
        """Return the value `m` cells inward from the first interior point, read relative to this ghost point.

        Parameters
        ----------
        m : int
            Number of cells inward.
        field : Field, optional
            Field that is read; by default the field of the ghost point.
        along : sequence of int
            Offsets along the other axes, in points.
        """
        of = self.field if field is None else field
        offset = list(along or [0] * (of.grid.ndim - 1))
        offset.insert(self.axis, -self.side * (self.layer + 1 + m))
        if self.side > 0:
            # Points that are staggered along the axis have one more index, so the last indices may differ.
            offset[self.axis] += of.staggered[self.axis] - self.field.staggered[self.axis]
        return graph.read(of, trace.version(of), tuple(offset))

    @property
    def mirror(self) -> Expr:
        """Interior value at the mirror image of this ghost point about the wall."""
        return self.inner(int(self.layer + 1 - 2 * self.wall))

    @property
    def distance(self) -> Fraction:
        """Distance from the wall to this ghost point, in spacings."""
        return self.layer + 1 - self.wall

    @property
    def h(self) -> Expr:
        """Spacing along the axis."""
        return self.field.grid.h(self.axis)

    @property
    def is_stretched(self) -> bool:
        """True if the axis is stretched."""
        return self.field.grid.maps[self.axis] is not None

    def rise(self, slope: Expr) -> Expr:
        """Return the difference between the ghost value and the mirror value, for a slope on the wall."""
        if not self.is_stretched:
            return slope * self.h * float(2 * self.distance * self.side)
        x = self.field.coordinates[self.axis]
        inward = [0] * self.field.grid.ndim
        inward[self.axis] = -self.side * int(2 * self.distance)
        return slope * (x - graph.shift(x, tuple(inward)))

    def step(self, slope: Expr) -> Expr:
        """Return the increase of a field over one spacing across the wall.

        On a stretched axis, this spacing is the distance between two positions: half an index before and half
        an index after the wall.

        Parameters
        ----------
        slope : Expr
            Slope of the field on the wall.
        """
        if not self.is_stretched:
            return slope * self.h
        x = self.field.coordinates[self.axis]
        return slope * (self._at_distance(x, self._inward + 0.5) - self._at_distance(x, self._inward - 0.5))

    @property
    def _inward(self) -> float:
        """Signed distance from this ghost point to the wall, in spacings along the axis."""
        return float(-self.side * self.distance)

    def _at_distance(self, value: Expr, spacings: float) -> Expr:
        """Return an expression of coordinates, evaluated `spacings` spacings further along the axis."""

        def leaf(current: Expr) -> Expr:
            across = current.op == "index" and current.attribute[0] == self.axis
            return graph.binary("add", current, spacings) if across else current

        return graph.rebuild(value, leaf)

    def at_wall(self, value: Any) -> Expr:
        """Return `value`, a number, scalar or function of the coordinates, evaluated at the wall."""
        name = f"field {self.field.name!r}"
        subject = f"the boundary value of {name}"
        if callable(value) and not isinstance(value, Operators):
            value = trace.trace_function(value, self.field.coordinates, subject)
        wall = form_at_target(
            graph.as_expr(value, "boundary value"), self.field.staggered, f"the wall of {name}"
        )
        graph.check_grid(wall, self.field.grid, subject)
        if wall.op == "const" and not math.isfinite(wall.attribute):
            raise InputError(f"{subject} is {wall.attribute}; expected a finite number")
        for current in graph.walk((wall,)):
            if current.op in ("read", "stage"):
                raise InputError(
                    f"{subject} reads a field. Use hc.BoundaryKernel for values that depend on fields."
                )
            places = graph.walk(current.args) if current.op == "random" else ()
            if any(place.op == "index" and place.attribute[0] == self.axis for place in places):
                raise InputError(
                    f"{subject} uses random numbers that depend on the cell index normal to the wall, but a "
                    "point of the wall has no such index. Use the index along the wall, "
                    "grid.cell_number(axes=...)."
                )
        return self._at_distance(wall, self._inward)


class BoundaryCondition:
    """Base class of all boundary conditions."""

    def ghost(self, at: Ghost) -> Expr:
        """Return the value at a ghost point."""
        raise NotImplementedError(type(self).__name__)

    def on_wall(self, at: Ghost) -> Expr | None:
        """Return the value of a point on the wall, or None if the equations give the value."""
        return None

    def homogeneous(self) -> BoundaryCondition:
        """Return the condition of a correction to a field: the same condition with zero wall values."""
        return self


@dataclass(frozen=True)
class Periodic(BoundaryCondition):
    """Condition without effect that may be given, for clarity, on the sides of a periodic axis."""


@dataclass(frozen=True)
class Value(BoundaryCondition):
    """Dirichlet condition: the field has the value `value` on the wall.

    The ghosts are antisymmetric about the wall value. Points of the field on the wall have this value, even
    if a statement sets the field to another value.

    Without `order`, the ghosts have an error of h² f'' at any order of the differences. Next to the wall, a
    first derivative has order 1, and a second derivative does not converge. The solution of a problem still
    has order 2. With `order`, the ghosts have an error of h^(order + 1). Differences of order k keep their
    order with ``order=k + 1``.

    Parameters
    ----------
    value : float, parameter, expression of coordinates, or function of the coordinates
        Value on the wall.
    order : int, optional
        Degree of a polynomial that replaces the antisymmetric continuation. The polynomial passes through
        the wall value and `order` interior points.
    """

    value: Any
    order: int | None = None

    def ghost(self, at: Ghost) -> Expr:
        wall = at.at_wall(self.value)
        if at.distance == 0:
            return wall
        if self.order is not None:
            return _polynomial(at, _check_order(self.order), wall, derivative=False)
        return 2.0 * wall - at.mirror

    def on_wall(self, at: Ghost) -> Expr:
        return at.at_wall(self.value)

    def homogeneous(self) -> Value:
        return Value(0.0, self.order)


@dataclass(frozen=True)
class Derivative(BoundaryCondition):
    """Neumann condition: the derivative along the axis has the value `value` on the wall.

    The derivative is along the axis, not along the outward normal. The ghosts have an error of
    h^(order + 1), which is h³ by default. By default, a first derivative next to the wall has order 2 and a
    second derivative order 1, at any order of the differences. Differences of order k keep their order with
    ``order=k + 1``.

    With order 2, the ghosts mirror the interior. If the wall lies on the first ghost, the value of this ghost
    follows from the one-sided formula, (4 u_1 - u_2) / 3 for a zero derivative. Points of the field on the
    wall obey the equations, which read these ghosts. With other orders, the ghosts follow the polynomial
    through `order` interior points with the given derivative at the wall.

    Parameters
    ----------
    value : float, parameter, expression of coordinates, or function of the coordinates
        Derivative on the wall.
    order : int
        Order of the condition.
    """

    value: Any = 0.0
    order: int = 2

    def ghost(self, at: Ghost) -> Expr:
        slope = at.at_wall(self.value)
        if _check_order(self.order) > 2 and at.is_stretched:
            raise InputError(
                f"field {at.field.name!r}: Derivative(order={self.order}) on a wall of a stretched axis; "
                "expected order 1 or 2, because a stretched axis has no differences of higher order at walls"
            )
        if self.order != 2 or at.distance == 0:
            return _polynomial(at, self.order, at.step(slope), derivative=True)
        return at.mirror + at.rise(slope)

    def homogeneous(self) -> Derivative:
        return Derivative(0.0, self.order)


@dataclass(frozen=True)
class Symmetric(BoundaryCondition):
    """Symmetric condition: ghosts mirror the interior.

    The ghosts are exact for fields that are even about the wall, if the points on both sides have equal
    distances from the wall. Otherwise the accuracy is that of `Derivative`.
    """

    def ghost(self, at: Ghost) -> Expr:
        return Derivative(0.0).ghost(at)


@dataclass(frozen=True)
class Antisymmetric(BoundaryCondition):
    """Antisymmetric condition: ghosts mirror the interior with the opposite sign.

    The ghosts are exact for fields that are odd about the wall, if the points on both sides have equal
    distances from the wall. Otherwise the accuracy is that of `Value`. Unlike `Value`, this condition does
    not set points on the wall to zero.
    """

    def ghost(self, at: Ghost) -> Expr:
        return Value(0.0).ghost(at)


@dataclass(frozen=True)
class Extrapolate(BoundaryCondition):
    """Extrapolation: ghosts continue the polynomial through the first `order` interior points.

    Order 1 copies the first value, and order 2 is linear. The ghosts have an error of h^order. Differences of
    order k keep their order with ``order=k + 2``.
    """

    order: int = 2

    def ghost(self, at: Ghost) -> Expr:
        return _weighted_sum(at, weights(range(_check_order(self.order)), -at.layer - 1), graph.as_expr(0.0))


@dataclass(frozen=True)
class BoundaryKernel(BoundaryCondition):
    """User-defined condition, given by a function.

    Parameters
    ----------
    function : callable
        Halocline calls ``function(u)`` or ``function(u, layer)``, which returns the ghost value. Any further
        parameters of `function` need a default, which is used.

        ``u[m]`` is the value `m` cells inward from the wall, and ``u.of(T)[m]`` is the value of the field T
        at the same point. ``u.h`` is the spacing, and ``u.coordinates`` are the coordinates of the ghost. In
        two dimensions, ``u[m, s]`` is the value `s` points further along the other axis. In three dimensions,
        ``u[m, s, t]`` is the value `s` and `t` points further along the other axes, in the order of the axes.
        ``u.of(T)`` accepts the same offsets.

    The function may read values on other ranks. It may also read ghosts beyond a wall of another axis.
    Halocline then computes these ghosts first. The ghosts of two walls must not depend on each other.

    Examples
    --------
    >>> no_flux = BoundaryKernel(lambda u: u[0] * 1.0)
    >>> smooth = BoundaryKernel(lambda u: 0.5 * u[0] + 0.25 * (u[0, -1] + u[0, 1]))  # in two dimensions
    """

    function: Callable[..., Any]

    def ghost(self, at: Ghost) -> Expr:
        subject = f"the boundary kernel of field {at.field.name!r}"
        count = argument_count(self.function, subject, (1, 2), "(u) or (u, layer)")
        result = trace.call(self.function, *(Inward(at), at.layer)[:count])
        if result is None:
            raise InputError(f"{subject} {trace.RETURNS_NONE}")
        value = graph.as_expr(result, "boundary kernel's result")
        ghost = form_at_target(value, at.field.staggered, f"the wall of field {at.field.name!r}")
        graph.check_grid(ghost, at.field.grid, subject)
        for leaf in graph.walk((ghost,)):
            if leaf.op == "read":
                _check_inward(at, *leaf.attribute)
        return ghost

    def homogeneous(self) -> BoundaryCondition:
        return LinearPart(self)


@dataclass(frozen=True)
class LinearPart(BoundaryCondition):
    """Linear part of a user-defined condition.

    A correction to the field satisfies this linear condition.
    """

    condition: BoundaryCondition

    def ghost(self, at: Ghost) -> Expr:
        ghost = self.condition.ghost(at)
        reads = [leaf for leaf in graph.walk((ghost,)) if leaf.op == "read" and leaf.attribute[0] is at.field]
        rest = _replace_reads(ghost, dict.fromkeys(reads, 0.0))
        if rest.op == "const" and rest.attribute == 0:
            return ghost
        total = graph.as_expr(0.0)
        for leaf in reads:
            unit = {other: float(other is leaf) for other in reads}
            total = total + (_replace_reads(ghost, unit) - rest) * leaf
        return total

    def homogeneous(self) -> LinearPart:
        return self


def _check_inward(at: Ghost, field: Field, _: int, offset: tuple[int, ...]) -> None:
    """Raise InputError if a formula reads a field beyond the wall, where the ghosts are not formed yet."""
    nearest = at.inner(0, field).attribute[2][at.axis]
    if -at.side * (offset[at.axis] - nearest) < 0:
        name = "u" if field is at.field else f"u.of({field.name})"
        raise InputError(
            f"the boundary kernel of field {at.field.name!r} reads field {field.name!r} beyond the wall, "
            f"where its ghosts are not computed yet; expected cells inside the wall: {name}[0] is the first "
            "one"
        )


def _replace_reads(root: Expr, values: Mapping[Expr, float]) -> Expr:
    """Return an expression with the reads in `values` replaced by numbers."""
    return graph.rebuild(root, lambda leaf: graph.as_expr(values[leaf]) if leaf in values else leaf)


@dataclass(frozen=True)
class Inward:
    """Values of a field for a boundary kernel, indexed inward from the wall and along the wall."""

    at: Ghost
    field: Field | None = None

    def __getitem__(self, place: int | tuple[int, ...]) -> Expr:
        m, *along = cast("tuple[int, ...]", place if isinstance(place, tuple) and place else (place,))
        name, ndim = self.at.field.name, self.at.field.grid.ndim
        if whole_number(m) is None or m < 0:
            raise InputError(
                f"the boundary kernel of field {name!r} reads [{m!r}]; expected a whole number from 0. It "
                "counts cells inward from the wall: u[0] is the first one."
            )
        if along and 1 + len(along) != ndim:
            expected = ("[m]", "[m] or [m, s]", "[m] or [m, s, t]")[ndim - 1]
            raise InputError(
                f"the boundary kernel of field {name!r} reads {[m, *along]}; in {ndim}D expected {expected}. "
                "The first index counts cells inward from the wall. Further indices count points along the "
                "other axes."
            )
        for s in along:
            if whole_number(s) is None:
                raise InputError(
                    f"the boundary kernel of field {name!r} reads {[m, *along]}; expected whole numbers. "
                    "The first index counts cells inward from the wall. Further indices count points along "
                    "the other axes."
                )
        return self.at.inner(int(m), self.field, [int(s) for s in along])

    def of(self, field: Field) -> Inward:
        """Return the values of another field on the same grid, with the same indices."""
        if field.grid is not self.at.field.grid:
            raise InputError(
                f"the boundary kernel of field {self.at.field.name!r} reads field {field.name!r} of another "
                "grid; expected a field of the same Grid object"
            )
        return Inward(self.at, field)

    @property
    def h(self) -> Expr:
        """Spacing along the axis of the wall."""
        return self.at.h

    @property
    def coordinates(self) -> tuple[Expr, ...]:
        """Coordinates of the ghost point."""
        return self.at.field.coordinates


def _check_order(order: Any) -> int:
    return Range(1, ORDER.most).check("order of a boundary condition", order)


def _weighted_sum(at: Ghost, weights: Sequence[Fraction], total: Expr, first: int = 0) -> Expr:
    """Return `total` plus a weighted sum of interior values. The first value is ``at.inner(first)``."""
    for m, weight in enumerate(weights, first):
        total = total + at.inner(m) * float(weight)
    return total


def _polynomial(at: Ghost, order: int, wall: Expr, *, derivative: bool) -> Expr:
    """Return the ghost value of the polynomial that has a given value or slope on the wall.

    The polynomial has degree `order` and passes through `order` interior points. `wall` is the value on the
    wall, or the slope times the spacing.
    """
    # positions relative to the wall, in spacings, positive inward
    inset = at.wall
    points = [m + (inset or 1) for m in range(order)]
    if derivative:
        # The weights give the slope of the polynomial through the ghost point and the interior points. The
        # equation of the slope is solved for the value at the ghost point.
        ghost_weight, *inner_weights = weights((-at.distance, *points), derivative=1)
        inner = [-weight / ghost_weight for weight in inner_weights]
        # On an upper side, the slope along the axis is minus the inward slope.
        scale = -at.side / ghost_weight
    else:
        scale, *inner = weights((0, *points), -at.distance)
    return _weighted_sum(at, inner, wall * float(scale), 0 if inset else 1)


def with_wall_values(
    field: Field, value: Expr, conditions: Mapping[str, BoundaryCondition] | None = None
) -> Expr:
    """Return the value to assign to a field, with the values of boundary conditions at points on walls.

    Where walls of two axes meet, the condition of the later axis in the order x, y, z applies.

    Parameters
    ----------
    field : Field
    value : Expr
        Value at the points that do not lie on a wall.
    conditions : mapping of str to BoundaryCondition, optional
        Conditions by side; by default the conditions of the field.
    """
    of = field.boundary if conditions is None else conditions
    for axis, staggered in enumerate(field.staggered):
        if not staggered or field.grid.walls[axis] != "face":
            continue
        for side, name in ((-1, SIDES[2 * axis]), (1, SIDES[2 * axis + 1])):
            wall = of[name].on_wall(Ghost(field, axis, side, -1)) if name in of else None
            if wall is not None:
                if field.dtype == "float64" and value.precision == "float32":
                    value = graph.cast(value, field.dtype)  # keeps the precision of the wall value
                last = graph.as_expr(0.0) if side < 0 else field.grid.cells(axis)
                value = graph.where(graph.binary("eq", graph.index(field.grid, axis), last), wall, value)
    return value


def known_ghosts(field: Field, axis: int, side: int, layers: int) -> Iterator[Expr]:
    """Yield the ghost values of the first layers at a wall.

    Layers for which the condition raises InputError are skipped, because a user-defined condition may support
    only a few layers. If the program reads such a layer, the analysis of halos raises the error.

    Parameters
    ----------
    field : Field
    axis : int
    side : int
        -1 for the lower wall of the axis, 1 for the upper wall.
    layers : int
        Number of layers.
    """
    condition = field.boundary.get(SIDES[2 * axis + (side > 0)])
    if condition is not None:
        for layer in range(layers):
            with suppress(InputError):
                yield condition.ghost(Ghost(field, axis, side, layer))


def has_wall_values(field: Field) -> bool:
    """Return True if a condition of the field sets the values of some of its points."""
    placeholder = graph.as_expr(math.nan)
    return with_wall_values(field, placeholder) is not placeholder


def resolve_sides(boundary: Any, grid: Grid, name: str) -> dict[str, BoundaryCondition]:
    """Return the condition of each wall of a field, by side.

    Raises
    ------
    InputError
        The boundary is neither a condition nor a mapping, or names an unknown side. A side of a periodic
        axis, or a grid without walls, has a condition other than `Periodic`. A wall has the condition
        `Periodic`.
    """
    sides = SIDES[: 2 * grid.ndim]
    walls = [s for i, s in enumerate(sides) if not grid.periodic[i // 2]]
    if boundary is None:
        return {}
    if isinstance(boundary, BoundaryCondition):
        boundary = {OTHER: boundary}
    if not isinstance(boundary, Mapping):
        raise InputError(
            f"field {name!r}: boundary {boundary!r} is neither a condition such as hc.Value(0) nor a "
            "mapping from sides to conditions"
        )
    result: dict[str, BoundaryCondition] = {}
    for side, condition in boundary.items():
        if side != OTHER and side not in sides:
            raise InputError(
                f"field {name!r}: boundary side {side!r} is unknown; expected one of {', '.join(sides)}, "
                "other"
            )
        if not isinstance(condition, BoundaryCondition):
            raise InputError(
                f"field {name!r}: side {side!r} has {condition!r}; expected a condition such as hc.Value(0)"
            )
        if side == OTHER:
            continue
        if side not in walls:
            if isinstance(condition, Periodic):
                continue
            raise InputError(
                f"field {name!r}: side {side!r} lies on a periodic axis and cannot have "
                f"{type(condition).__name__}"
            )
        result[side] = condition
    if OTHER in boundary:
        condition = boundary[OTHER]
        if not walls and not isinstance(condition, Periodic):
            raise InputError(
                f"field {name!r}: all axes are periodic, so the field cannot have "
                f"{type(condition).__name__}. Leave the boundary out, or create a grid with walls."
            )
        result |= {side: condition for side in walls if side not in boundary}
    for side, condition in result.items():
        if isinstance(condition, Periodic):
            raise InputError(
                f"field {name!r}: side {side!r} is periodic, but its axis is not. Write hc.Grid(..., "
                f"periodic={side[0]!r}), or another condition such as hc.Value(0)"
            )
    return result
