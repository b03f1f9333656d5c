"""Grids, and the fields and vectors on a grid."""

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
from halocline.lang.axes import AXES, axis_flags, axis_number, is_sequence, per_axis, whole_number
from halocline.lang.blocks import Blocks
from halocline.lang.boundary import BoundaryCondition, Value, resolve_sides
from halocline.lang.dtype import DTYPES, default_dtype, dtype_name, rounding
from halocline.lang.expression import Assignable, Expr, Offset, Operators
from halocline.lang.location import Place, locations, sorted_places, staggering
from halocline.lang.stretch import Map, map_coordinates, maps_of, trace_map
from halocline.lang.values import as_name, as_quantity, as_real, identifier
from halocline.ranges import POINTS
from halocline.words import short_repr, suggestion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")

CELLS = trace.INTERNAL + "cells_"  # prefix of the scalars for the numbers of cells along the axes
STATISTIC = "_statistic_"  # prefix of the fields with statistics over time, also in checkpoints
AMBIGUOUS_PRODUCT = "the product of two vectors is ambiguous: use hc.dot or hc.cross"
# Names of the scalars for the spacing and the origin along each axis, in every program.
GRID_SCALARS = tuple(f"{kind}_{axis}" for kind in "ho" for axis in AXES)


def _dtype(value: Any, label: str) -> str:
    """Return the name of a precision, or raise InputError for any other value."""
    dtype = dtype_name(value)
    if dtype not in DTYPES:
        raise InputError(f"{label}: dtype {dtype!r} is unknown; expected one of {', '.join(DTYPES)}")
    return dtype


def _wall(value: Any) -> str | None:
    """Return a kind of walls, "face" or "node", or None for any other value."""
    return str(value) if isinstance(value, str) and value in ("face", "node") else None


class Grid(Sealed):
    """Structured grid of one to three axes, x, y and z. The last axis is contiguous in memory.

    Parameters
    ----------
    shape : int or tuple of int
        Number of cells (computed points) per axis.
    extent : float, or sequence or mapping of float
        Length of the domain per axis; 1 for axes that are missing in a mapping such as ``{"x": 2.0}``.
    origin : float, or sequence or mapping of float
        Coordinate of the lower end of the domain per axis; 0 for axes that are missing in a mapping.
    periodic : bool, sequence or mapping of bool, or names of axes
        Axes that are periodic: ``True`` for all axes, ``(True, False)``, ``{"x": True}``, ``"xz"`` or
        ``("x", "z")``. The other axes have walls.
    walls : {"face", "node"}, or sequence or mapping of them
        Positions of the walls, for all axes or per axis. "face": walls lie half a cell outside the first and
        last point, so x_i = origin + (i + 1/2) h with h = extent / n. "node": walls lie one spacing outside
        the first and last point, so x_i = origin + (i + 1) h with h = extent / (n + 1). Periodic axes have a
        spacing of h = extent / n. A mapping must not contain "node" for a periodic axis.
    stretch : mapping of axis to callable, optional
        Maps of stretched axes, by "x", "y" and "z". A map gives the position of a point from its coordinate
        on an even grid, in the same interval. An example for the interval from 0 to 1 is
        ``{"x": lambda x: x - 0.1 * np.sin(2 * np.pi * x)}``. Each map must be smooth, must increase, and must
        keep both ends. Differences along stretched axes have order 2. Periodic axes cannot be stretched.
    active : array of bool, optional
        Active blocks of the grid, one entry per block. The sizes of the blocks along an axis differ by at
        most one cell. In a block with the entry False, nothing is computed, no memory is allocated, and every
        field is zero. Cells next to such a block read these zeros. Reductions omit the cells of the block. A
        point on a face or edge belongs to the cell above it, toward larger coordinates.
    dtype : {"float64", "float32"}, optional
        Precision of the fields that specify none. The default is the option ``--dtype`` of a command, or
        float64.

    Raises
    ------
    InputError
        The shape, the extent or another argument does not define a grid.

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
            raise InputError(f"shape {short_repr(shape)} has {len(counts)} axes; a grid has 1, 2 or 3")
        for axis, n in enumerate(counts):
            subject = f"shape {short_repr(shape)}: axis {AXES[axis]} has {short_repr(n)} cells"
            if whole_number(n) is None:
                raise InputError(f"{subject}; expected a whole number")
            if int(n) < 1:
                raise InputError(f"{subject}; at least 1 is needed")
            if int(n) > POINTS.most:
                raise InputError(f"{subject}; at most {POINTS.most} can be numbered")
        self.shape: tuple[int, ...] = tuple(int(n) for n in counts)
        self.ndim = len(self.shape)
        self.extent = per_axis(extent, self.ndim, "extent", as_quantity, "a number", default=1.0)
        self.origin = per_axis(origin, self.ndim, "origin", as_quantity, "a number", default=0.0)
        self.periodic = axis_flags(periodic, self.ndim, "periodic")
        if not all(map(math.isfinite, self.origin)):
            raise InputError(f"origin {short_repr(origin)}: expected finite numbers")
        for axis, length in enumerate(self.extent):
            if not (math.isfinite(length) and length > 0):
                raise InputError(
                    f"extent {short_repr(extent)}: axis {AXES[axis]} has length {length}; "
                    "expected a positive number"
                )
        self.walls = per_axis(walls, self.ndim, "walls", _wall, "'face' or 'node'", default="face")
        if isinstance(walls, Mapping):  # a value or sequence also covers periodic axes
            for axis, (wall, wraps) in enumerate(zip(self.walls, self.periodic, strict=True)):
                if wraps and wall == "node":
                    raise InputError(
                        f"walls {walls!r}: axis {AXES[axis]} is periodic, so it has no walls; leave it out"
                    )
        has_outer_nodes = [w == "node" and not p for w, p in zip(self.walls, self.periodic, strict=True)]
        self._even_spacings: tuple[float, ...] = tuple(
            map(operator.truediv, self.extent, map(operator.add, self.shape, has_outer_nodes))
        )
        self.has_default_dtype = dtype is None
        self.dtype = default_dtype() if dtype is None else _dtype(dtype, "grid")
        self.maps: tuple[Map | None, ...] = (None,) * self.ndim if stretch is None else maps_of(stretch, self)
        self.blocks = None if active is None else Blocks.of(active, self.shape)
        self.fields: dict[str, Field] = {}
        self.vectors: dict[str, Vector] = {}
        self._work_fields: dict[Any, Field] = {}  # see Program.work_field
        # The digest omits spacing, origin and numbers of cells: these are run-time scalars, so that one
        # kernel serves every resolution. Digests determine the order of operations, and therefore the bits of
        # results. If all walls are of one kind, the digest has the form of earlier versions, so that results
        # keep their bits.
        kinds: str | tuple[str, ...] = self.walls[0] if len({*self.walls}) == 1 else self.walls
        self.digest = blake2b(repr((self.ndim, self.periodic, kinds)).encode(), digest_size=8).digest()
        if any(self.maps):
            self.coordinates()  # raises InputError if a map cannot be traced

    def __repr__(self) -> str:
        def axes(flags: Iterable[object]) -> str:
            return "".join(a for a, flag in zip(AXES, flags, strict=False) if flag)

        open_axes = [not p for p in self.periodic]
        points = [wall == "node" and is_open for wall, is_open in zip(self.walls, open_axes, strict=True)]
        properties = (
            f"extent={self.extent}",
            f"periodic in {axes(self.periodic)}" if any(self.periodic) else "",
            f"walls on nodes in {axes(points)}" if any(points) else "",
            f"stretched in {axes(self.maps)}" if any(self.maps) else "",
            f"dtype={self.dtype!r}" if self.dtype != "float64" else "",
        )
        return f"Grid({', '.join(filter(None, (str(self.shape), *properties)))})"

    def _repr_html_(self) -> str:
        from halocline.lang.display import grid_table

        return grid_table(self)

    @property
    def spacing(self) -> tuple[float, ...]:
        """Distance between neighbouring points per axis; along stretched axes, the minimum distance."""
        return tuple(
            self.even_spacing(axis) if function is None else self._minimum_spacing(axis)
            for axis, function in enumerate(self.maps)
        )

    def _minimum_spacing(self, axis: int) -> float:
        import numpy as np

        return float(np.diff(self.positions()[axis]).min(initial=self.extent[axis]))

    def even_spacing(self, axis: int | str) -> float:
        """Return the spacing along an axis before the map of a stretched axis is applied."""
        return self._even_spacings[axis_number(axis, self.ndim)]

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def active_cells(self) -> int:
        """Number of cells in blocks that are active at the start; see `Simulation.activate`."""
        return self.size if self.blocks is None else self.blocks.cells

    def h(self, axis: int | str) -> Expr:
        """Return the spacing along an axis as a scalar of the program.

        Parameters
        ----------
        axis : int or str
            Axis of the grid: 0, 1, 2 or "x", "y", "z".

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
            Axis of the grid: 0, 1, 2 or "x", "y", "z".

        Raises
        ------
        InputError
            The grid has no such axis.
        """
        return trace.scalar(CELLS + AXES[axis_number(axis, self.ndim)])

    def scalar_values(self) -> dict[str, float]:
        """Return the values of the scalars of every program on this grid, such as h_x and o_x, by name."""
        values: dict[str, float] = {}
        for axis in range(self.ndim):
            values[f"h_{AXES[axis]}"] = self._even_spacings[axis]
            values[f"o_{AXES[axis]}"] = self.origin[axis]
            values[CELLS + AXES[axis]] = self.shape[axis]
        return values

    def coordinates(self, staggered: Sequence[bool] | None = None) -> tuple[Expr, ...]:
        """Return the coordinates of the points as expressions, one per axis.

        Parameters
        ----------
        staggered : bool, sequence or mapping of bool, or names of axes, optional
            Axes along which the points lie on lower faces. By default, the location of the points follows
            from the other fields in the expression, or from the field that is set. Without such a field, the
            points are cell centres.
        """
        faces = None if staggered is None else self._staggered(staggered)
        return tuple(self._coordinate_along(axis, faces) for axis in range(self.ndim))

    def _coordinate_along(self, axis: int, staggered: tuple[bool, ...] | None) -> Expr:
        def coordinate_on(face: bool) -> Expr:
            position = graph.index(self, axis) + self._first(axis, [face] * self.ndim)
            even = position * trace.scalar(f"h_{AXES[axis]}") + trace.scalar(f"o_{AXES[axis]}")
            mapped = graph.without_location(self._mapped(axis, even))
            return graph.with_notation(mapped, "coordinate", (), axis)

        def place(face: bool) -> Place:
            return tuple(face if a == axis else None for a in range(self.ndim))

        if staggered is not None:
            on_faces = bool(staggered[axis])
            return graph.with_places(coordinate_on(on_faces), {place(on_faces): 0})
        places = {place(False): 0, place(True): 0}
        return graph.with_places(coordinate_on(False), places, lambda at: coordinate_on(bool(at[axis])))

    def positions(self, staggered: Sequence[bool] | None = None) -> tuple[NDArray[np.float64], ...]:
        """Return the coordinates of the points along each axis as arrays; see `coordinates`."""
        import numpy as np

        staggered, lines = self._staggered(staggered), []
        for axis, count in enumerate(self.points(staggered)):
            steps = np.arange(count, dtype=np.float64) + self._first(axis, staggered)
            even, function = self.origin[axis] + steps * self._even_spacings[axis], self.maps[axis]
            lines.append(
                even if function is None else map_coordinates(function, even, f"the map of axis {AXES[axis]}")
            )
        return tuple(lines)

    def _mapped(self, axis: int, even: Expr) -> Expr:
        """Return the position of a point from its coordinate on an even grid."""
        function = self.maps[axis]
        return even if function is None else trace_map(function, even, f"the map of axis {AXES[axis]}")

    def points(self, staggered: Sequence[bool] | None = None) -> tuple[int, ...]:
        """Return the number of points along each axis; see `coordinates`."""
        on_faces = self._staggered(staggered)
        return tuple(n + (on_faces[axis] and not self.periodic[axis]) for axis, n in enumerate(self.shape))

    def _staggered(self, staggered: Any) -> tuple[bool, ...]:
        """Return the axes along which points lie on faces, one flag per axis."""
        if isinstance(staggered, tuple) and [*map(type, staggered)] == [bool] * self.ndim:
            return staggered  # the flags of a field need no check
        return axis_flags(False if staggered is None else staggered, self.ndim, "staggered")

    def cell_number(
        self, staggered: Sequence[bool] | None = None, *, axes: Sequence[int | str] | None = None
    ) -> Expr:
        """Return the global number of each cell as an expression: 0, 1, ... in C order.

        In the halo of a periodic axis, the number equals the number of the cell at the opposite end. There
        are no cells beyond a wall. The numbers there have no meaning: they are negative or belong to other
        cells.

        Parameters
        ----------
        staggered : tuple of bool, optional
            Axes along which the numbered points lie on lower faces. At an upper wall there is one more such
            point. By default, the location of the points follows from the other fields in the expression, or
            from the field that is set. Without such a field, cells are numbered.
        axes : sequence of int or str, optional
            Axes along which cells are counted. Cells that differ only along other axes have the same number.
        """
        expected = f"expected some of {tuple(range(self.ndim))}, in this order"
        names = range(self.ndim) if axes is None else axes
        if not (isinstance(names, str) or is_sequence(names)):
            raise InputError(f"axes {short_repr(axes)}: {expected}")
        try:
            numbered_axes = [axis_number(axis, self.ndim) for axis in names]
        except InputError as error:
            raise InputError(f"axes {short_repr(axes)}: {expected}; {error}") from None
        if not numbered_axes or numbered_axes != sorted(set(numbered_axes)):
            raise InputError(f"axes {short_repr(axes)}: {expected}")

        def at(place: Sequence[bool | None]) -> Expr:
            number = graph.index(self, numbered_axes[0])
            for axis in numbered_axes[1:]:
                points = self.cells(axis)
                if self.points([bool(face) for face in place])[axis] > self.shape[axis]:
                    points = points + 1.0
                number = number * points + graph.index(self, axis)
            return number

        # the number of a cell depends on the number of points along each later axis
        depends_on_place = [not self.periodic[a] and a in numbered_axes[1:] for a in range(self.ndim)]
        faces = None if staggered is None else self._staggered(staggered)
        choices = [
            ((False, True) if faces is None else (faces[a],)) if depends_on_place[a] else (None,)
            for a in range(self.ndim)
        ]
        places = sorted_places(dict.fromkeys(product(*choices), 0))
        return graph.with_places(at(next(iter(places))), places, at)

    def _first(self, axis: int, staggered: Sequence[bool]) -> float:
        """Return the distance from the origin to the first point along an axis, in spacings."""
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
        """Return a bound on rounding errors, converted from float64 to the precision of the grid.

        Parameters
        ----------
        bound : float
            Bound in float64. In float32, the result is 2^29 times larger, because the distances between
            adjacent numbers are larger by this factor.

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
        """Return a new scalar field on this grid.

        Parameters
        ----------
        name : str
            Identifier, unique on the grid. A traced function receives the field as the argument with this
            name. As in Python, the identifier is normalized (NFKC): "µ" becomes the Greek letter.
        location : str
            "cell", "node", "face-x", "face-y", "face-z", "edge-x", "edge-y" or "edge-z". A point on a face
            has the index of the cell above it. On an axis that is not periodic there is one more point, on
            the upper wall.
        dtype : {"float64", "float32"}, optional
            Precision; by default the precision of the grid.
        boundary : BoundaryCondition or mapping, optional
            Conditions of all sides that are walls: one condition, or a mapping from "x-", "x+", ... and
            "other" to conditions.

        Raises
        ------
        InputError
            The name is in use or is not an identifier, or the location, the dtype or a side is unknown.
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
        """Return a new vector of fields, named name_x, name_y and name_z.

        Parameters
        ----------
        name : str
            Identifier, unique on the grid.
        components : int, optional
            Number of components; by default the number of axes of the grid.
        location : str or sequence of str
            See `field`. "face" and "edge" put each component on the faces or edges of its own axis.
        dtype : {"float64", "float32"}, optional
            See `field`.
        boundary : BoundaryCondition, mapping or sequence, optional
            See `field`, or a sequence with one entry per component.
        """
        count = whole_number(self.ndim if components is None else components)
        if count is None or not 1 <= count <= 3:
            raise InputError(f"vector {name!r}: {short_repr(components)} components; expected 1 to 3")
        name = as_name(name, "vector name")
        places = locations(location, count)
        conditions: list[Any] = list(boundary) if isinstance(boundary, (list, tuple)) else [boundary] * count
        if len(places) != count or len(conditions) != count:
            raise InputError(f"vector {name!r}: location and boundary need one entry per component ({count})")
        vector = Vector(
            self.field(component_name, location=place, dtype=dtype, boundary=condition)
            for component_name, place, condition in zip(
                component_names(name, count), places, conditions, strict=True
            )
        )
        vector.name = name
        self.vectors[name] = vector
        return vector

    def free_name(self, name: str) -> str:
        """Return a name that is not in use: the given name, followed by a number if needed."""
        free, count = name, 1
        while self.find(free) is not None:
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
            Identifier in the name of the field. A number follows if the name is in use.
        location, dtype, boundary
            See `field`.
        """
        return Field(self, self.free_name(trace.INTERNAL + name), location, dtype, boundary, internal=True)

    def work_field(self, name: str, key: Any, make: Callable[[str], Field]) -> Field:
        """Return the field for `key`.

        The first call creates the field with `make`, which receives a name that is not in use.
        """
        if key not in self._work_fields:
            self._work_fields[key] = make(self.free_name(name))
        return self._work_fields[key]

    def is_work_field(self, field: Any) -> bool:
        """Return True if `work_field` created a field, and False for a field of the user."""
        return any(candidate is field for candidate in self._work_fields.values())

    def find(self, name: str) -> Field | Vector | None:
        """Return the field or vector with a name, or None if there is none."""
        name = as_name(name, "name")
        field = self.fields.get(name)
        return self.vectors.get(name) if field is None else field


class Field(Sealed, Assignable):
    """Values on a grid, one per point; created by `Grid.field`.

    In an equation, a field represents its value in the cell, and ``u[1, 0]`` is the value in the next cell
    along x.
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
        existing = grid.find(name)
        if existing is not None:
            cause = "names are unique on a grid"
            if grid.is_work_field(existing):
                cause += (
                    ", and a solver or stage has already used this one. Create your fields before solvers "
                    "and stages."
                )
            raise InputError(f"the grid already has a field named {name!r}; {cause}")
        self.has_default_dtype = dtype is None and grid.has_default_dtype
        dtype = grid.dtype if dtype is None else _dtype(dtype, f"field {name!r}")
        self.grid, self.name, self.location, self.dtype = grid, name, location, dtype
        self.staggered = staggering(location, grid.ndim, f"field {name!r}")
        self.boundary: dict[str, BoundaryCondition] = resolve_sides(boundary, grid, name)
        grid.fields[name] = self

    def __repr__(self) -> str:
        return f"Field({self.name!r} on {self.grid!r})"

    def _repr_html_(self) -> str:
        from halocline.lang.display import field_table

        return field_table(self)

    @property
    def expr(self) -> Expr:
        return graph.with_places(
            graph.read(self, trace.version(self), (0,) * self.grid.ndim), {self.staggered: 0}
        )

    def __getitem__(self, offset: int | Offset) -> Expr:
        return graph.read(self, trace.version(self), graph.as_offset(offset, self.grid))

    def set(self, value: Any) -> None:
        """Assign an expression to the whole field, as a statement of the program that is being traced."""
        trace.current("field.set(...)").assign({self: value})

    def like(self, names: str, *, homogeneous: bool = False) -> Any:
        """Return new fields on the same grid, with the same location, dtype and boundary conditions.

        Within a program, the new fields belong to the program: the next trace of the same program returns the
        same fields.

        Parameters
        ----------
        names : str
            Names, separated by blanks. One name gives a field, and several names give a tuple of fields.
        homogeneous : bool
            True to set the values and derivatives at the walls to zero, as for corrections and residuals.
        """
        boundary = {side: (c.homogeneous() if homogeneous else c) for side, c in self.boundary.items()}

        def make(free: str) -> Field:
            return Field(self.grid, free, self.location, self.dtype, boundary or None)

        program, results = trace.active(), []
        for name in names.split():
            if program is None:
                results.append(make(self.grid.free_name(name)))
            else:
                results.append(program.work_field(self.grid, name, (self.name, homogeneous), make))
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def coordinates(self) -> tuple[Expr, ...]:
        """Coordinates of the points of this field, as expressions."""
        return self.grid.coordinates(self.staggered)

    @property
    def positions(self) -> tuple[NDArray[np.float64], ...]:
        """Coordinates of the points of this field along each axis, as arrays."""
        return self.grid.positions(self.staggered)

    @property
    def points(self) -> tuple[int, ...]:
        """Number of points along each axis of the whole grid."""
        return self.grid.points(self.staggered)


def _combining(operation: Callable[[Any, Any], Any]) -> Callable[[Vector, Any], Vector]:
    """Return an operator of vectors that applies an operation to each component."""
    return lambda vector, other: vector._combine(other, operation)


def _applying(operation: Callable[[Any], Any]) -> Callable[[Vector], Vector]:
    """Return a unary operator of vectors that applies an operation to each component."""
    return lambda vector: Vector(map(operation, vector))


class Vector(KnownAttributes, tuple):  # type: ignore[type-arg]
    """Tuple of fields or expressions, with arithmetic by component.

    If two vectors have different lengths, the shorter one is continued with zeros. The same code then serves
    grids of one to three axes.
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

    # Comparisons of tuples would end at the first pair of different components.

    __lt__ = _combining(operator.lt)  # type: ignore[assignment]
    __le__ = _combining(operator.le)  # type: ignore[assignment]
    __gt__ = _combining(operator.gt)  # type: ignore[assignment]
    __ge__ = _combining(operator.ge)  # type: ignore[assignment]

    def __eq__(self, other: Any) -> Any:
        """Compare each component with a number or field, or compare two vectors as tuples.

        Dictionary keys require the comparison as tuples.
        """
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
        """Apply a function of NumPy to each component; an array must have one number per component."""
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
        """Return the vector with every component read at the given offset."""
        return Vector(a[offset] for a in self)

    def set(self, value: Any) -> None:
        """Assign all components at once: one value per component, or one number for all; see Field.set."""
        trace.current("vector.set(...)").assign({self: value})

    def like(self, names: str, *, homogeneous: bool = False) -> Any:
        """Return new vectors of the same kind; see `Field.like`."""
        results = []
        for name in names.split():
            vector = Vector(c.like(f"{name}_{AXES[i]}", homogeneous=homogeneous) for i, c in enumerate(self))
            vector.name = name
            results.append(vector)
        return results[0] if len(results) == 1 else tuple(results)


def _assigned_name(vector: Vector) -> str | None:
    """Return the name of a vector of fields, or None for a vector of other expressions."""
    if vector and all(isinstance(component, Field) for component in vector):
        return vector.name or f"hc.Vector(({', '.join(component.name for component in vector)},))"
    return None


graph.reject_in_place(Vector, _assigned_name)


def by_component(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that also accepts vectors as operands, and then returns a Vector of results.

    An operand that is not a vector is used for every component. Keyword arguments are passed on unchanged.
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

    return _apply  # `operand_of_call` ignores functions with an underscore


def component_values(value: Any, count: int, label: str) -> list[Any]:
    """Return one value for each component of a vector.

    Parameters
    ----------
    value
        A number for all components, or a sequence or array with one value per component.
    count : int
        Number of components.
    label : str
        Name of the vector, for messages.

    Raises
    ------
    InputError
        The number of values is wrong, or a single value is not a number.
    """
    if as_real(value) is not None:
        return [value] * count
    shape = getattr(value, "shape", None)
    if isinstance(value, (tuple, list)) or shape:
        if len(value) == count:
            return list(value)
        size = f"an array of shape {shape}" if shape else f"{len(value)} values"
        raise InputError(f"{label} has {count} components; got {size}, but expected one value for each")
    raise InputError(
        f"{label} has {count} components; got {value!r}, but expected one value for each, or a number for all"
    )


def component_names(name: str, count: int) -> list[str]:
    """Return the names of the components of a vector: name_x, name_y, name_z."""
    return [f"{name}_{axis}" for axis in AXES[:count]]


def pad(vector: Sequence[Any], count: int) -> Iterator[Any]:
    """Yield `count` values: the entries of a vector, followed by zeros."""
    yield from vector
    for _ in range(count - len(vector)):
        yield 0.0


def checked_choice(kind: str, value: Any, known: Sequence[str]) -> str:
    """Return a value if it is one of the known words, and raise InputError otherwise."""
    if not isinstance(value, str) or value not in known:
        raise unknown_name_error(kind, value, known)
    return value


def unknown_name_error(
    kind: str, name: Any, known: Sequence[str], listed: Sequence[str] | None = None
) -> InputError:
    """Return the error for an unknown name, with the nearest known name.

    Parameters
    ----------
    kind : str
        Kind of the name.
    name : object
        Unknown name.
    known : sequence of str
        Known names.
    listed : sequence of str, optional
        Known names in the form for the message; by default `known`.
    """
    names = ", ".join(known if listed is None else listed) or "none"
    return InputError(f"{kind} {short_repr(name)} is unknown{suggestion(name, known)}; known: {names}")


def check_options(names: Iterable[str], *functions: Callable[..., Any]) -> None:
    """Raise InputError for the first option that is not a parameter of any of the functions."""
    known = [name for function in functions for name in function.__kwdefaults__ or ()]
    for name in names:
        if name not in known:
            raise unknown_name_error("option", name, known)


__all__ = ["AXES", "Value", "suggestion"]  # names that users of this module import from it
