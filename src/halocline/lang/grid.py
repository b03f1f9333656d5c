"""Grids and the fields on them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from hashlib import blake2b
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from halocline.errors import InputError
from halocline.lang import expression as graph
from halocline.lang import trace
from halocline.lang.advice import missing_attribute
from halocline.lang.attributes import KnownAttributes, Sealed
from halocline.lang.axes import AXES, axis_flags, axis_number, is_sequence, per_axis, whole
from halocline.lang.blocks import Blocks
from halocline.lang.boundary import BoundaryCondition, Value, resolve_sides
from halocline.lang.dtype import DTYPES, default_dtype, dtype_name, rounding
from halocline.lang.expression import Assignable, Expr, Offset, Operators
from halocline.lang.location import Place, locations, sorted_places, staggering
from halocline.lang.stretch import mapped, maps_of, traced
from halocline.lang.values import as_name, as_quantity, as_real, identifier
from halocline.ranges import POINTS
from halocline.words import near, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")

CELLS = trace.OWN + "cells_"  # scalars: how many cells there are along an axis
STATISTIC = "_statistic_"  # prefix of fields that hold statistics over time, in checkpoints too
AMBIGUOUS_PRODUCT = "the product of two vectors is ambiguous: use hc.dot or hc.cross"
# spacing and origin per axis, as every program knows them
GRID_SCALARS = tuple(f"{kind}_{axis}" for kind in "ho" for axis in AXES)


def _dtype(given: Any, what: str) -> str:
    """Return the name of a precision; InputError for any other value."""
    dtype = dtype_name(given)
    if dtype not in DTYPES:
        raise InputError(f"{what}: dtype {dtype!r} is unknown; expected one of {', '.join(DTYPES)}")
    return dtype


def _wall(value: Any) -> str | None:
    """Return a kind of walls, or None for any other value."""
    return str(value) if isinstance(value, str) and value in ("face", "node") else None


class Grid(Sealed):
    """A structured grid of one to three axes, x, y, z; the last axis is contiguous in memory.

    Parameters
    ----------
    shape : int or tuple of int
        Number of cells (points that are computed) per axis.
    extent : float, or sequence or mapping of float
        Length of the domain per axis; axes that a mapping such as ``{"x": 2.0}`` leaves out have 1.
    origin : float, or sequence or mapping of float
        Coordinate of the lower end of the domain; axes that a mapping leaves out have 0.
    periodic : bool, sequence or mapping of bool, or names of axes
        Axes that wrap around: ``True`` for all, ``(True, False)``, ``{"x": True}``, ``"xz"`` or
        ``("x", "z")``; the others have walls.
    walls : {"face", "node"}, or sequence or mapping of them
        Where the ends of axes that are not periodic lie, for all or per axis. "face": half a cell outside
        the first and last point, x_i = origin + (i + 1/2) h with h = extent / n. "node": on a point just
        outside, x_i = origin + (i + 1) h with h = extent / (n + 1). Periodic axes have h = extent / n; a
        mapping must not give them "node".
    stretch : mapping of axis to callable, optional
        Maps of axes, by "x", "y", "z": from the coordinate that a point has on an even grid to where it is,
        in the same interval, as ``{"x": lambda x: x - 0.1 * np.sin(2 * np.pi * x)}`` from 0 to 1. They must
        be smooth, rise, and keep both ends. Differences are of second order there. Periodic axes have none.
    active : array of bool, optional
        The grid in blocks, as many along each axis as the array has entries there (sizes differ by at most
        one cell): where it is False, nothing is computed, no memory is held, and every field is zero. What
        is computed next to such a block reads these zeros; reductions leave its cells out. A point on a face
        or edge belongs to the cell above it.
    dtype : {"float64", "float32"}, optional
        Precision of the fields that name none; by default that of the option ``--dtype`` of a command, else
        float64.

    Raises
    ------
    InputError
        For a shape, extent or option that makes no grid.

    Examples
    --------
    >>> grid = Grid((64, 32), extent=(2.0, 1.0), periodic=(True, False))
    >>> grid.spacing
    (0.03125, 0.03125)
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        extent: float | Sequence[float] | Mapping[str, float] = 1.0,
        *,
        origin: float | Sequence[float] | Mapping[str, float] = 0.0,
        periodic: bool | str | Sequence[bool | str] | Mapping[str, bool] = False,
        walls: str | Sequence[str] | Mapping[str, str] = "face",
        stretch: Mapping[str, Callable[[Any], Any]] | None = None,
        active: Any = None,
        dtype: str | None = None,
    ) -> None:
        counts: tuple[Any, ...] = tuple(shape) if is_sequence(shape) else (shape,)  # type: ignore[arg-type]
        if not 1 <= len(counts) <= 3:
            raise InputError(f"shape {shown(shape)} has {len(counts)} axes; a grid has 1, 2 or 3")
        for axis, n in enumerate(counts):
            what = f"shape {shown(shape)}: axis {AXES[axis]} has {shown(n)} cells"
            if whole(n) is None:
                raise InputError(f"{what}; expected a whole number")
            if int(n) < 1:
                raise InputError(f"{what}; at least 1 is needed")
            if int(n) > POINTS.most:
                raise InputError(f"{what}; at most {POINTS.most} can be numbered")
        self.shape: tuple[int, ...] = tuple(int(n) for n in counts)
        self.ndim = len(self.shape)
        self.extent = per_axis(extent, self.ndim, "extent", as_quantity, "a number", default=1.0)
        self.origin = per_axis(origin, self.ndim, "origin", as_quantity, "a number", default=0.0)
        self.periodic = axis_flags(periodic, self.ndim, "periodic")
        if not all(map(math.isfinite, self.origin)):
            raise InputError(f"origin {shown(origin)}: expected finite numbers")
        for axis, length in enumerate(self.extent):
            if not (math.isfinite(length) and length > 0):
                raise InputError(
                    f"extent {shown(extent)}: axis {AXES[axis]} has length {length}; "
                    "expected a positive number"
                )
        self.walls = per_axis(walls, self.ndim, "walls", _wall, "'face' or 'node'", default="face")
        if isinstance(walls, Mapping):  # other forms give a value to periodic axes too
            for axis, (wall, wraps) in enumerate(zip(self.walls, self.periodic, strict=True)):
                if wraps and wall == "node":
                    raise InputError(
                        f"walls {walls!r}: axis {AXES[axis]} is periodic, so it has no walls; leave it out"
                    )
        outside = [w == "node" and not p for w, p in zip(self.walls, self.periodic, strict=True)]
        self._even_spacings: tuple[float, ...] = tuple(
            map(operator.truediv, self.extent, map(operator.add, self.shape, outside))
        )
        self.has_default_dtype = dtype is None
        self.dtype = default_dtype() if dtype is None else _dtype(dtype, "grid")
        self.maps = maps_of(stretch, self)
        self.blocks = None if active is None else Blocks.of(active, self.shape)
        self.fields: dict[str, Field] = {}
        self.vectors: dict[str, Vector] = {}
        self._own: dict[Any, Field] = {}  # see Program.own_field
        # spacing, origin and counts of cells are run-time scalars, so that one kernel serves every resolution
        # the order of operations, and so where multiply-adds are, follows from digests: grids whose walls are
        # alike keep the digests, and so the bits, that they always had
        kinds: str | tuple[str, ...] = self.walls[0] if len({*self.walls}) == 1 else self.walls
        self.digest = blake2b(repr((self.ndim, self.periodic, kinds)).encode(), digest_size=8).digest()
        if any(self.maps):
            self.coordinates()  # one that cannot be traced is an error now

    def __repr__(self) -> str:
        def axes(these: Iterable[object]) -> str:
            return "".join(a for a, each in zip(AXES, these, strict=False) if each)

        open_axes = [not p for p in self.periodic]
        points = [wall == "node" and is_open for wall, is_open in zip(self.walls, open_axes, strict=True)]
        said = (
            f"extent={self.extent}",
            f"periodic in {axes(self.periodic)}" if any(self.periodic) else "",
            f"walls on nodes in {axes(points)}" if any(points) else "",
            f"stretched in {axes(self.maps)}" if any(self.maps) else "",
            f"dtype={self.dtype!r}" if self.dtype != "float64" else "",
        )
        return f"Grid({', '.join(filter(None, (str(self.shape), *said)))})"

    @property
    def spacing(self) -> tuple[float, ...]:
        """Distance between neighbouring cells, per axis; along stretched ones the least."""
        return tuple(
            self.even_spacing(axis) if each is None else self._least_spacing(axis)
            for axis, each in enumerate(self.maps)
        )

    def _least_spacing(self, axis: int) -> float:
        import numpy as np

        return float(np.diff(self.positions()[axis]).min(initial=self.extent[axis]))

    def even_spacing(self, axis: int | str) -> float:
        """Return the distance between neighbouring points along an axis before it is stretched."""
        return self._even_spacings[axis_number(axis, self.ndim)]

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def active_cells(self) -> int:
        """Number of cells of blocks that are active at first; see `Simulation.activate`."""
        return self.size if self.blocks is None else self.blocks.cells

    def h(self, axis: int | str) -> Expr:
        """Return the spacing along an axis as a scalar of the program.

        Parameters
        ----------
        axis : int or str
            0, 1, 2 or "x", "y", "z", as far as the grid has them.

        Raises
        ------
        InputError
            The grid has no such axis, or the axis is stretched.
        """
        axis = axis_number(axis, self.ndim)
        if self.maps[axis] is not None:
            name = AXES[axis]
            raise InputError(
                f"axis {name} is stretched: its spacing differs from point to point; take differences of "
                f"coordinates: hc.shift({name}, {axis}) - {name}, with {name} = grid.{name}"
            )
        return trace.scalar(f"h_{AXES[axis]}")

    def cells(self, axis: int | str) -> Expr:
        """Return the number of cells along an axis as a scalar of the program.

        Parameters
        ----------
        axis : int or str
            0, 1, 2 or "x", "y", "z", as far as the grid has them.

        Raises
        ------
        InputError
            The grid has no such axis.
        """
        return trace.scalar(CELLS + AXES[axis_number(axis, self.ndim)])

    def scalar_values(self) -> dict[str, float]:
        """The values of the scalars that every program on this grid has: h_x, o_x and so on."""
        values: dict[str, float] = {}
        for axis in range(self.ndim):
            values[f"h_{AXES[axis]}"] = self._even_spacings[axis]
            values[f"o_{AXES[axis]}"] = self.origin[axis]
            values[CELLS + AXES[axis]] = self.shape[axis]
        return values

    def coordinates(self, staggered: Sequence[bool] | None = None) -> tuple[Expr, ...]:
        """The coordinates of the points as expressions, one per axis.

        Parameters
        ----------
        staggered : bool, sequence or mapping of bool, or names of axes, optional
            Axes along which the points lie on lower faces. By default the points are those of the fields in
            the same expression, or of the field that is set. Without such a field they are cell centres.
        """
        faces = None if staggered is None else self._staggered(staggered)
        return tuple(self._coordinate_along(axis, faces) for axis in range(self.ndim))

    def _coordinate_along(self, axis: int, staggered: tuple[bool, ...] | None) -> Expr:
        def coordinate_on(face: bool) -> Expr:
            position = graph.index(self, axis) + self._first(axis, [face] * self.ndim)
            even = position * trace.scalar(f"h_{AXES[axis]}") + trace.scalar(f"o_{AXES[axis]}")
            return graph.bare(self._mapped(axis, even))

        def place(face: bool) -> Place:
            return tuple(face if a == axis else None for a in range(self.ndim))

        if staggered is not None:
            on_faces = bool(staggered[axis])
            return graph.located(coordinate_on(on_faces), {place(on_faces): 0})
        places = {place(False): 0, place(True): 0}
        return graph.located(coordinate_on(False), places, lambda at: coordinate_on(bool(at[axis])))

    def positions(self, staggered: Sequence[bool] | None = None) -> tuple[NDArray[np.float64], ...]:
        """The coordinates of the points along each axis, as arrays; see `coordinates`."""
        import numpy as np

        staggered, lines = self._staggered(staggered), []
        for axis, count in enumerate(self.points(staggered)):
            steps = np.arange(count, dtype=np.float64) + self._first(axis, staggered)
            even, function = self.origin[axis] + steps * self._even_spacings[axis], self.maps[axis]
            lines.append(
                even if function is None else mapped(function, even, f"the map of axis {AXES[axis]}")
            )
        return tuple(lines)

    def _mapped(self, axis: int, even: Expr) -> Expr:
        """Where a point is, from its coordinate on an even grid."""
        function = self.maps[axis]
        return even if function is None else traced(function, even, f"the map of axis {AXES[axis]}")

    def points(self, staggered: Sequence[bool] | None = None) -> tuple[int, ...]:
        """Return the number of points along each axis; see `coordinates`."""
        on_faces = self._staggered(staggered)
        return tuple(n + (on_faces[axis] and not self.periodic[axis]) for axis, n in enumerate(self.shape))

    def _staggered(self, staggered: Any) -> tuple[bool, ...]:
        """Return the axes along which points lie on faces, one flag per axis."""
        if isinstance(staggered, tuple) and [*map(type, staggered)] == [bool] * self.ndim:
            return staggered  # those of a field need no check
        return axis_flags(False if staggered is None else staggered, self.ndim, "staggered")

    def cell_number(
        self, staggered: Sequence[bool] | None = None, *, axes: Sequence[int | str] | None = None
    ) -> Expr:
        """Return the global number of each cell as an expression: 0, 1, ... in C order.

        In the halo of a periodic axis it is that of the cell around. Beyond a wall there are no cells:
        numbers there belong to others, or are negative.

        Parameters
        ----------
        staggered : tuple of bool, optional
            Number the points on these lower faces, of which there is one more at an upper wall. By default
            the points are those of the fields in the same expression, or of the field that is set. Without
            such a field they are cells.
        axes : sequence of int or str, optional
            Axes to count along. Cells that differ along other axes only have the same number.
        """
        expected = f"expected some of {tuple(range(self.ndim))}, in this order"
        names = range(self.ndim) if axes is None else axes
        if not (isinstance(names, str) or is_sequence(names)):
            raise InputError(f"axes {shown(axes)}: {expected}")
        try:
            numbered_axes = [axis_number(axis, self.ndim) for axis in names]
        except InputError as error:
            raise InputError(f"axes {shown(axes)}: {expected}; {error}") from None
        if not numbered_axes or numbered_axes != sorted(set(numbered_axes)):
            raise InputError(f"axes {shown(axes)}: {expected}")

        def at(place: Sequence[bool | None]) -> Expr:
            number = graph.index(self, numbered_axes[0])
            for axis in numbered_axes[1:]:
                points = self.cells(axis)
                if self.points([bool(face) for face in place])[axis] > self.shape[axis]:
                    points = points + 1.0
                number = number * points + graph.index(self, axis)
            return number

        # a number depends on the numbers of points along the later axes
        depends_on_place = [not self.periodic[a] and a in numbered_axes[1:] for a in range(self.ndim)]
        faces = None if staggered is None else self._staggered(staggered)
        choices = [
            ((False, True) if faces is None else (faces[a],)) if depends_on_place[a] else (None,)
            for a in range(self.ndim)
        ]
        places = sorted_places(dict.fromkeys(product(*choices), 0))
        return graph.located(at(next(iter(places))), places, at)

    def _first(self, axis: int, staggered: Sequence[bool]) -> float:
        """How many spacings the first point along an axis lies above the origin."""
        first = 0.5 if self.walls[axis] == "face" or self.periodic[axis] else 1.0
        return first - 0.5 if staggered[axis] else first

    @property
    def x(self) -> Expr:
        """Coordinate along the first axis."""
        return self.coordinates()[0]

    @property
    def y(self) -> Expr:
        """Coordinate along the second axis."""
        return self._coordinate(1)

    @property
    def z(self) -> Expr:
        """Coordinate along the third axis."""
        return self._coordinate(2)

    def _coordinate(self, axis: int) -> Expr:
        if axis >= self.ndim:
            raise InputError(f"{self!r} has no axis {AXES[axis]}")
        return self.coordinates()[axis]

    def rounding(self, bound: float) -> float:
        """Return a bound of rounding errors in the precision of the grid.

        Parameters
        ----------
        bound : float
            Bound in float64. In float32 it is larger by the ratio of the distances between numbers, 2^29.

        Examples
        --------
        >>> import halocline as hc
        >>> hc.Grid(64).rounding(1e-14), hc.Grid(64, dtype="float32").rounding(2.0**-52) == 2.0**-23
        (1e-14, True)
        """
        return rounding(bound, self.dtype)

    def field(
        self,
        name: str,
        *,
        location: str = "cell",
        dtype: str | None = None,
        boundary: BoundaryCondition | Mapping[str, BoundaryCondition] | None = None,
    ) -> Field:
        """A new scalar field on this grid.

        Parameters
        ----------
        name : str
            An identifier, unique on the grid; functions that are traced name it as an argument. It is
            normalized (NFKC) as Python does with identifiers: "µ" becomes the Greek letter.
        location : str
            "cell", "node", "face-x", "face-y", "face-z", "edge-x", "edge-y" or "edge-z". Index i of a point
            on a face is that of the cell above it; on an axis that is not periodic there is one more, on the
            upper wall.
        dtype : {"float64", "float32"}, optional
            Precision; that of the grid by default.
        boundary : BoundaryCondition or mapping, optional
            For every side that is a wall: one condition, or a mapping from "x-", "x+", ... and "other" to
            conditions.

        Raises
        ------
        InputError
            For a name that is taken or no identifier, an unknown location, dtype or side.
        """
        return Field(self, name, location, dtype, boundary)

    def vector(
        self,
        name: str,
        *,
        components: int | None = None,
        location: str | Sequence[str] = "cell",
        dtype: str | None = None,
        boundary: BoundaryCondition | Mapping[str, BoundaryCondition] | Sequence[Any] | None = None,
    ) -> Vector:
        """A vector of fields, named name_x, name_y, name_z.

        Parameters
        ----------
        components : int, optional
            As many as the grid has axes by default.
        location : str or sequence of str
            "face" and "edge" put each component on the faces (edges) of its own axis.
        boundary : as for `field`, or a sequence with one entry per component
        """
        count = whole(self.ndim if components is None else components)
        if count is None or not 1 <= count <= 3:
            raise InputError(f"vector {name!r}: {shown(components)} components; expected 1 to 3")
        name = as_name(name, "vector name")
        places = locations(location, count)
        conditions: list[Any] = list(boundary) if isinstance(boundary, (list, tuple)) else [boundary] * count
        if len(places) != count or len(conditions) != count:
            raise InputError(f"vector {name!r}: location and boundary need one entry per component ({count})")
        made = Vector(
            self.field(each, location=place, dtype=dtype, boundary=condition)
            for each, place, condition in zip(component_names(name, count), places, conditions, strict=True)
        )
        made.name = name
        self.vectors[name] = made
        return made

    def free_name(self, name: str) -> str:
        """The name, with the first number behind it that makes it one which nothing has yet."""
        free, count = name, 1
        while self.named(free) is not None:
            count += 1
            free = f"{name}{count}"
        return free

    def internal_field(
        self, name: str, *, location: str = "cell", dtype: str | None = None, boundary: Any = None
    ) -> Field:
        """Return a new field with a name that no user field can have.

        Parameters
        ----------
        name : str
            Identifier in the name of the field, with a number where another field has the name.
        location, dtype, boundary
            See `field`.
        """
        return Field(self, self.free_name(trace.OWN + name), location, dtype, boundary, internal=True)

    def own_field(self, name: str, key: Any, make: Callable[[str], Field]) -> Field:
        """The field made for `key`: now, by ``make(free name)``, or before."""
        if key not in self._own:
            self._own[key] = make(self.free_name(name))
        return self._own[key]

    def is_own(self, field: Any) -> bool:
        """Whether `field` was made by `own_field`, not by the user."""
        return any(made is field for made in self._own.values())

    def named(self, name: str) -> Field | Vector | None:
        """The field or vector of that name, if there is one."""
        name = as_name(name, "name")
        found = self.fields.get(name)
        return self.vectors.get(name) if found is None else found


class Field(Sealed, Assignable):
    """One value per point of a grid. Made by `Grid.field`.

    In an equation a field stands for its value at the cell; ``u[1, 0]`` is the value at the next cell along
    x.
    """

    def __init__(
        self,
        grid: Grid,
        name: str,
        location: str,
        dtype: str | None,
        boundary: Any,
        *,
        internal: bool = False,
    ) -> None:
        name = as_name(name, "field name") if internal else identifier(name, "field name", "'T' or 'rho_1'")
        if not internal and name.startswith(STATISTIC):
            raise InputError(
                f"field name {name!r}: names that begin with {STATISTIC!r} are reserved for statistics over "
                "time; expected another one"
            )
        taken = grid.named(name)
        if taken is not None:
            why = "names are unique on a grid"
            if grid.is_own(taken):
                why += "; it is one that a solver or stage made for itself: make your fields before those"
            raise InputError(f"the grid already has a field named {name!r}; {why}")
        self.has_default_dtype = dtype is None and grid.has_default_dtype
        dtype = grid.dtype if dtype is None else _dtype(dtype, f"field {name!r}")
        self.grid, self.name, self.location, self.dtype = grid, name, location, dtype
        self.staggered = staggering(location, grid.ndim, f"field {name!r}")
        self.boundary: dict[str, BoundaryCondition] = resolve_sides(boundary, grid, name)
        grid.fields[name] = self

    def __repr__(self) -> str:
        return f"Field({self.name!r} on {self.grid!r})"

    @property
    def expr(self) -> Expr:
        return graph.located(
            graph.read(self, trace.version(self), (0,) * self.grid.ndim), {self.staggered: 0}
        )

    def __getitem__(self, offset: int | Offset) -> Expr:
        return graph.read(self, trace.version(self), graph.as_offset(offset, self.grid))

    def set(self, value: Any) -> None:
        """Assign an expression to the whole field, as a statement of the program that is being traced."""
        trace.current("field.set(...)").assign({self: value})

    def like(self, names: str, *, homogeneous: bool = False) -> Any:
        """New fields on the same grid, of the same location, dtype and boundary conditions.

        Within a program they are the program's own: the next trace of the same program gets the same
        ones.

        Parameters
        ----------
        names : str
            Separated by blanks; one name gives one field, several a tuple.
        homogeneous : bool
            With the values and derivatives at the walls set to zero, as for corrections and residuals.
        """
        boundary = {side: (c.homogeneous() if homogeneous else c) for side, c in self.boundary.items()}

        def make(free: str) -> Field:
            return Field(self.grid, free, self.location, self.dtype, boundary or None)

        program, made = trace.active(), []
        for name in names.split():
            if program is None:
                made.append(make(self.grid.free_name(name)))
            else:
                made.append(program.own_field(self.grid, name, (self.name, homogeneous), make))
        return made[0] if len(made) == 1 else tuple(made)

    @property
    def coordinates(self) -> tuple[Expr, ...]:
        """The coordinates of this field's points, as expressions."""
        return self.grid.coordinates(self.staggered)

    @property
    def positions(self) -> tuple[NDArray[np.float64], ...]:
        """The coordinates of this field's points along each axis, as arrays."""
        return self.grid.positions(self.staggered)

    @property
    def points(self) -> tuple[int, ...]:
        """How many points there are along each axis of the whole grid."""
        return self.grid.points(self.staggered)


def _combining(operation: Callable[[Any, Any], Any]) -> Callable[[Vector, Any], Vector]:
    """Return an operator of vectors that applies an operation to each component."""
    return lambda vector, other: vector._combine(other, operation)


def _applying(operation: Callable[[Any], Any]) -> Callable[[Vector], Vector]:
    """Return a unary operator of vectors that applies an operation to each component."""
    return lambda vector: Vector(map(operation, vector))


class Vector(KnownAttributes, tuple):  # type: ignore[type-arg]
    """A few fields or expressions that belong together, with arithmetic by component.

    A shorter vector is continued with zeros, so that one text serves grids of one to three axes.
    """

    name: str = ""
    settable: ClassVar[Mapping[str, str]] = {"name": "name of the vector on its grid"}

    def __repr__(self) -> str:
        grid = getattr(self[0], "grid", None) if self else None
        return f"Vector({self.name!r} on {grid!r})" if self.name else tuple.__repr__(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'Vector' object has no attribute {name!r}")
        raise missing_attribute("Vector", name, dir(self))

    def _combine(self, other: Any, operation: Any) -> Vector:
        if is_sequence(other):
            count = max(len(self), len(other))
            return Vector(operation(a, b) for a, b in zip(pad(self, count), pad(other, count), strict=True))
        return Vector(operation(a, other) for a in self)

    __add__ = __radd__ = _combining(operator.add)
    __sub__ = _combining(operator.sub)
    __rsub__ = _combining(lambda a, b: b - a)
    __truediv__ = _combining(operator.truediv)
    __rtruediv__ = _combining(lambda a, b: b / a)
    __pow__ = _combining(operator.pow)
    __rpow__ = _combining(lambda a, b: b**a)

    def __mul__(self, other: Any) -> Vector:
        if is_sequence(other):
            raise InputError(AMBIGUOUS_PRODUCT)
        return self._combine(other, operator.mul)

    __rmul__ = __mul__

    __neg__ = _applying(operator.neg)
    __pos__ = _applying(operator.pos)
    __abs__ = _applying(operator.abs)
    __invert__ = _applying(operator.invert)

    # comparisons of tuples would stop at the first components that differ

    __lt__ = _combining(operator.lt)  # type: ignore[assignment]
    __le__ = _combining(operator.le)  # type: ignore[assignment]
    __gt__ = _combining(operator.gt)  # type: ignore[assignment]
    __ge__ = _combining(operator.ge)  # type: ignore[assignment]

    def __eq__(self, other: Any) -> Any:
        """Compare each component with a number or field; two vectors compare as tuples, as keys need it."""
        if isinstance(other, Operators) or as_real(other) is not None:
            return self._combine(other, operator.eq)
        return tuple.__eq__(self, other)

    def __ne__(self, other: Any) -> Any:
        if isinstance(other, Operators) or as_real(other) is not None:
            return self._combine(other, operator.ne)
        return tuple.__ne__(self, other)

    __hash__ = tuple.__hash__

    __and__ = __rand__ = _combining(operator.and_)
    __or__ = __ror__ = _combining(operator.or_)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply a function of NumPy to each component; arrays have one number for each."""
        if ufunc.__name__ == "multiply" and all(map(is_sequence, inputs)):
            raise InputError(AMBIGUOUS_PRODUCT)

        def apply(*operands: Any) -> Any:
            return graph.as_expr(0.0).__array_ufunc__(ufunc, method, *operands, **options)

        return by_component(apply)(*(Vector(x) if is_sequence(x) else x for x in inputs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return graph.as_expr(0.0).__array_function__(function, types, args, kwargs)

    def __setitem__(self, component: Any, value: Any) -> None:
        name = self.name or "v"
        raise InputError(
            f"{name}[{component!r}] = ... assigns nothing: write {name}[{component!r}].set(...) in a program"
        )

    def shifted(self, *offset: int) -> Vector:
        """Every component read at a neighbour."""
        return Vector(a[offset] for a in self)

    def set(self, value: Any) -> None:
        """Assign all components at once: one value for each, or a number for all; see Field.set."""
        trace.current("vector.set(...)").assign({self: value})

    def like(self, names: str, *, homogeneous: bool = False) -> Any:
        """New vectors of the same kind; see Field.like."""
        made = []
        for name in names.split():
            fresh = Vector(c.like(f"{name}_{AXES[i]}", homogeneous=homogeneous) for i, c in enumerate(self))
            fresh.name = name
            made.append(fresh)
        return made[0] if len(made) == 1 else tuple(made)


def _assigned_name(vector: Vector) -> str | None:
    """Return the name of a vector of fields, or None for a vector of other expressions."""
    if vector and all(isinstance(component, Field) for component in vector):
        return vector.name or f"hc.Vector(({', '.join(component.name for component in vector)},))"
    return None


graph.reject_in_place(Vector, _assigned_name)


def by_component(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function of operands that also takes vectors, and then returns the Vector of its results.

    Operands that are no vector count for each component. Keyword arguments are passed on as they are.
    """

    @wraps(function)
    def _apply(*operands: P.args, **options: P.kwargs) -> Any:
        lengths = {len(x) for x in operands if isinstance(x, (tuple, list))}
        if not lengths:
            return function(*operands, **options)
        if len(lengths) > 1:
            counts = " and ".join(map(str, sorted(lengths)))
            raise InputError(f"{function.__name__} of vectors of {counts} components; expected equal counts")
        (count,) = lengths
        rows = (x if isinstance(x, (tuple, list)) else (x,) * count for x in operands)
        return Vector(function(*row, **options) for row in zip(*rows, strict=True))

    return _apply  # the name of an operator is that of a function without an underscore


def component_values(value: Any, count: int, what: str) -> list[Any]:
    """Return one value for each component of a vector.

    Parameters
    ----------
    value
        A number, which counts for each component; or a sequence or array of one value for each.
    count : int
        Number of components.
    what : str
        Name of the vector, for messages.

    Raises
    ------
    InputError
        Another number of values, or a single value that is no number.
    """
    if as_real(value) is not None:
        return [value] * count
    shape = getattr(value, "shape", None)
    if isinstance(value, (tuple, list)) or shape:
        if len(value) == count:
            return list(value)
        size = f"an array of shape {shape}" if shape else f"{len(value)} values"
        raise InputError(f"{what} has {count} components; got {size}, but expected one value for each")
    raise InputError(
        f"{what} has {count} components; got {value!r}, but expected one value for each, or a number for all"
    )


def component_names(name: str, count: int) -> list[str]:
    """Return the names of the components of a vector: name_x, name_y, name_z."""
    return [f"{name}_{axis}" for axis in AXES[:count]]


def pad(vector: Sequence[Any], count: int) -> Iterator[Any]:
    """The entries of a vector, continued with zeros."""
    yield from vector
    for _ in range(count - len(vector)):
        yield 0.0


def chosen(kind: str, value: Any, known: Sequence[str]) -> str:
    """Return a value that is one of a few words, and raise InputError for any other value."""
    if not isinstance(value, str) or value not in known:
        raise unknown(kind, value, known)
    return value


def unknown(kind: str, name: Any, known: Sequence[str], listed: Sequence[str] | None = None) -> InputError:
    """The error for a name that is not known, with the nearest one that is; `listed` is how they are
    printed."""
    names = ", ".join(known if listed is None else listed) or "none"
    return InputError(f"{kind} {shown(name)} is unknown{near(name, known)}; known: {names}")


def check_options(given: Iterable[str], *functions: Callable[..., Any]) -> None:
    """Raise InputError for the first option that none of these functions has."""
    known = [name for function in functions for name in function.__kwdefaults__ or ()]
    for name in given:
        if name not in known:
            raise unknown("option", name, known)


__all__ = ["AXES", "Value", "near"]  # names of other modules that are imported from here
