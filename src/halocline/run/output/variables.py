"""What an output consists of: fields, expressions and numbers, computed by generated code when written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halocline.archive.arrays import ArraySpec
from halocline.archive.integrity import POINT, STEP, TIME
from halocline.archive.series import ROWS, rows_of
from halocline.errors import InputError
from halocline.lang import equations, trace
from halocline.lang.boundary import Symmetric
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.expression import Expr, as_expr, as_number
from halocline.lang.grid import AXES, Field, Vector, component_names, unknown
from halocline.lang.program import Program, stage
from halocline.lang.values import as_name, by_name
from halocline.plan.chunks import chunk_shape
from halocline.run.engine.prepare import prepare
from halocline.run.engine.prepared import Prepared
from halocline.run.fields.dimensions import FACE, axis_attributes, dimensions
from halocline.run.fields.fields import Fields, location_and_dtype
from halocline.run.fields.regions import Chosen, Points, Region, Stencils
from halocline.run.memory.points import PointValues
from halocline.run.output.saved import Saved
from halocline.run.output.statistics import CELL_METHODS, PREFIX, Statistic, Statistics
from halocline.words import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESERVED = (TIME, STEP, *AXES, *(f"{axis}{FACE}" for axis in AXES), POINT)


@dataclass(frozen=True)
class Part:
    """An array that holds points of a field.

    Attributes
    ----------
    field : Field
        That holds what is written when it is.
    chosen : Chosen
    spec : ArraySpec
        Without any time.
    """

    field: Field
    chosen: Chosen
    spec: ArraySpec


class OutputContents:
    """The arrays of an output, by name. All ranks make it, and call its methods.

    Parameters
    ----------
    fields : Fields
    given : sequence, mapping or None
        As `Output.fields` has it.
    region : Region
    owner : str
        A name of this output that no other output of the run has; an identifier.
    number : int
        Of the output among those of the run.
    axis : {"time", "step"}
        What arrays grow with.
    dtype, compression, units
        As `Output` has them.

    Attributes
    ----------
    parts : dict of str to Part
        Arrays of points of fields.
    specs : dict of str to ArraySpec
        All arrays, those of numbers too, without any time.
    widths : dict of str to (int, str, int)
        Those of numbers: how many for each time, their dtype, and axes.
    statistics : Statistics or None
        What steps are to count in.
    narrows : bool
        True where the store holds some values in a lower precision than the run computes.
    number_bytes : int
        Bytes of the numbers of one time.
    """

    def __init__(
        self,
        fields: Fields,
        given: Any,
        region: Region,
        *,
        owner: str,
        number: int,
        axis: str,
        dtype: str | None,
        compression: str,
        units: Mapping[str, str],
    ) -> None:
        self.fields, self.grid, self.region, self._number = fields, fields.grid, region, number
        self.axis, self.dtype, self.compression = axis, dtype, compression
        self.units = by_name(units, "units of")
        self._steps = (STEP,) if axis == TIME else ()  # a coordinate beside that of the axis
        region.check(self.grid)
        self.parts: dict[str, Part] = {}
        self.specs: dict[str, ArraySpec] = {}
        self.widths: dict[str, tuple[int, str, int]] = {}
        self._scalars: dict[str, str] = {}  # scalars of the program, by array of numbers
        self._numbers: list[Expr] = []  # of these
        self._stencils: dict[str, tuple[Field, Stencils]] = {}
        self._values: PointValues | None = None
        self._lines: dict[str, tuple[int, NDArray[Any]]] = {}  # the axis of each dimension, and coordinates
        self._prepared: Prepared | None = None
        program, computed_fields, named = Program("output"), list[Field](), self._named(given)
        self._check_units(named)
        counted = {name: what for name, what in named.items() if isinstance(what, Statistic)}
        self._texts = {name: _text(what) for name, what in named.items()}
        self.statistics = Statistics(self.grid, owner, counted) if counted else None
        with trace.tracing(program):
            for name, what in named.items():
                kind = what.kind if isinstance(what, Statistic) else None
                if isinstance(what, Statistic):
                    assert self.statistics is not None
                    what = self.statistics.values[name]
                if not isinstance(what, Field) and not what.varies:
                    self._add_number(program, name, what)
                elif isinstance(region, Points):
                    self._add_points(region, name, self._held(program, name, what, computed_fields), kind)
                else:
                    self._add_part(name, self._held(program, name, what, computed_fields), kind)
        self.narrows = any(
            part.spec.dtype == "float32" != part.field.dtype for part in self.parts.values()
        ) or any(dtype != "float64" for _, dtype, _ in self.widths.values())
        self.number_bytes = 8 * sum(width for width, _, _ in self.widths.values())
        self._program, self._computed = program, computed_fields
        for f in computed_fields:  # no state: they are computed whenever they are written
            self.grid.fields.pop(f.name)

    # --- what is asked for ---

    def _named(self, given: Any) -> dict[str, Expr | Field | Statistic]:
        """What is written, by name."""
        if given is None:
            mine = [f for f in self.grid.fields.values() if not self.grid.is_own(f)]
            seen = [f for f in mine if not f.name.startswith(PREFIX)]
            return {f.name: f for f in seen if f.name in self.fields.store.storages}
        if isinstance(given, (Field, Vector, str)) or not isinstance(given, (Sequence, Mapping)):
            raise InputError(
                f"fields is {shown(given)}; expected a list of fields, or a mapping of names to expressions"
            )
        if not given:
            raise InputError("fields is empty; expected a field or an expression, or None for all fields")
        found: dict[str, Expr | Field | Statistic] = {}
        for name, what in self._pairs(given):
            if name in found:
                raise InputError(f"output {name!r} is given twice: name one of them otherwise")
            found[name] = self._one(name, what)
        for name in found:
            if not name.isidentifier() or name in RESERVED:
                raise InputError(
                    f"output name {name!r}: expected an identifier other than {', '.join(RESERVED)}"
                )
        return found

    def _pairs(self, given: Sequence[Any] | Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield names and the contents of their arrays; of vectors the components."""
        named = given.items() if isinstance(given, Mapping) else ((None, each) for each in given)
        for name, what in named:
            own = what if isinstance(what, str) else getattr(what, "name", None)
            base = name if name is not None else own
            if not isinstance(base, str) or not base:
                raise InputError(f"fields has {what!r}, which has no name; give a mapping, {{'name': ...}}")
            base = as_name(base, "output name")
            components = self.fields.components(what)
            if components is None:
                yield base, what
            else:
                yield from zip(component_names(base, len(components)), components, strict=True)

    def _one(self, name: str, what: Any) -> Expr | Field | Statistic:
        if isinstance(what, Statistic):
            return what
        if isinstance(what, (Field, str)):
            return self.fields.stored(what)
        expression = as_expr(what, f"output {name!r}")
        if expression.grid is not None and expression.grid is not self.grid:
            raise InputError(f"output {name!r} is of another grid, {expression.grid!r}")
        return expression

    # --- how it is computed ---

    def _held(self, program: Program, name: str, what: Expr | Field, computed_fields: list[Field]) -> Field:
        """A field that holds it, or its averages, when the program has run."""
        block = self.region.block
        if isinstance(what, Field) and block == 1:
            return what
        e = as_number(as_expr(what))
        location, dtype = location_and_dtype(e)

        def new(boundary: Any = None) -> Field:
            internal = program.fresh(f"output_{self._number}_{name}")
            computed_fields.append(
                self.grid.internal_field(internal, location=location, dtype=dtype, boundary=boundary)
            )
            return computed_fields[-1]

        if block == 1:
            held = new()
            held.set(e)
            return held
        # averages read cells above their first, but none beyond a wall: the grid is whole blocks
        values, held = new(None if all(self.grid.periodic) else Symmetric()), new()
        values.set(e)
        held.set(_average(values, block))
        return held

    def _add_part(self, name: str, held: Field, kind: str | None) -> None:
        """Add an array of a field, or of a statistic of a kind."""
        chosen = self.region.choose(self.grid, held.staggered)
        dtype, every = self.dtype or held.dtype, dimensions(held.staggered)
        kept = [every[axis] for axis in chosen.kept]
        self._lines.update(zip(kept, zip(chosen.kept, chosen.coordinates, strict=True), strict=True))
        blocks = [f"{AXES[axis]}: mean" for axis in chosen.kept] if self.region.block > 1 else []
        attributes = {**self._attributes(name, kind, blocks), **chosen.at}
        chunk = chunk_shape(chosen.shape, ITEMSIZE[dtype])
        self.specs[name] = ArraySpec(
            (0, *chosen.shape), (1, *chunk), dtype, (self.axis, *kept), attributes, self.compression
        )
        self.parts[name] = Part(held, chosen, self.specs[name])

    def _add_points(self, region: Points, name: str, held: Field, kind: str | None) -> None:
        """Add an array of a field, or of a statistic of a kind, at single points."""
        # values that are not interpolated have the coordinates, and axis names, of the field's points
        is_nearest = region.interpolate == "nearest"
        axes = dimensions(held.staggered if is_nearest else (False,) * self.grid.ndim)
        self._lines.update(zip(axes, enumerate(region.coordinates(self.grid, held.staggered)), strict=False))
        attributes = {
            **self._attributes(name, kind, (), *axes), "interpolation": region.interpolate,
        }  # fmt: skip
        self._stencils[name] = held, region.stencils(self.grid, held.staggered)
        count, dtype = len(region.places), self.dtype or held.dtype
        self.specs[name] = ArraySpec(
            (0, count),
            (rows_of(count, ITEMSIZE[dtype]), count),
            dtype,
            (self.axis, POINT),
            attributes,
            self.compression,
        )
        self.widths[name] = count, dtype, 2

    def _add_number(self, program: Program, name: str, number: Expr) -> None:
        """Add an array of one number for each time."""
        scalar = program.own(name)
        scalar.set(as_number(number))
        self._scalars[name] = scalar.name
        self._numbers.append(as_number(number))
        dtype = self.dtype or "float64"
        attributes = self._attributes(name)
        self.specs[name] = ArraySpec((0,), (ROWS,), dtype, (self.axis,), attributes, self.compression)
        self.widths[name] = 1, dtype, 1

    def _attributes(
        self, name: str, kind: str | None = None, means: Sequence[str] = (), *coordinates: str
    ) -> dict[str, Any]:
        """Return the attributes of an array.

        Parameters
        ----------
        name : str
        kind : str, optional
            Kind of a statistic over time.
        means : sequence of str
            CF cell methods of averages along axes.
        *coordinates : str
            Names of coordinates that no axis of the array is named after.
        """
        methods = [*([] if kind is None else [f"time: {CELL_METHODS[kind]}"]), *means]
        cell_methods = {"cell_methods": " ".join(methods)} if methods else {}
        return {**self._places(*coordinates), **self._units(name), **cell_methods}

    def _places(self, *coordinates: str) -> dict[str, str]:
        """Return the coordinates that no axis of an array is named after, as an attribute."""
        names = " ".join((*self._steps, *coordinates))
        return {"coordinates": names} if names else {}

    def _units(self, name: str) -> dict[str, str]:
        """Its own, or those of the vector that it is a component of."""
        vector = name.removesuffix(f"_{name[-1]}")
        found = self.units.get(name, self.units.get(vector) if vector in self.grid.vectors else None)
        return {} if found is None else {"units": found}

    def _check_units(self, named: Collection[str]) -> None:
        """Raise InputError for a unit of what is not written."""
        vectors = (name for name in self.grid.vectors if f"{name}_x" in named)
        known = [*named, *vectors, TIME, *AXES[: self.grid.ndim]]
        for name in self.units:
            if name not in known:
                raise unknown("name in units", name, known)

    # --- what is used of it ---

    @property
    def numbers(self) -> tuple[Expr, ...] | None:
        """Numbers of a row in the order of `widths`, where the output has nothing else; else None."""
        only_numbers = self.statistics is None and len(self._numbers) == len(self.specs)
        return tuple(self._numbers) if only_numbers else None

    def take_over(self, saved: Saved) -> None:
        """Go on with the statistics that a checkpoint holds."""
        assert self.statistics is not None
        weight = self.statistics.weight.name
        self.fields.load(self.statistics.fields, lambda field: saved.fetch(self.fields.store, field))
        self.fields.values[weight] = float.fromhex(saved.facts["values"][weight])

    def prepare(self) -> None:
        """Compile what is computed, and take memory for it until `release`; all ranks call this."""
        if self._program.statements:
            if self.statistics is not None:
                self.fields.values.setdefault(self.statistics.weight.name, 0.0)
            known = self.grid.fields
            known.update((f.name, f) for f in self._computed)
            try:
                self._prepared = prepare(self.fields.store, self._program, self.fields.values)
            finally:
                for f in self._computed:
                    known.pop(f.name)

    def release(self) -> None:
        """Free the memory of the computed fields."""
        self._prepared = self._values = None
        for f in self._computed:
            self.fields.store.forget(f.name)

    def compute(self) -> Sequence[float]:
        """Compute the fields of all parts, and return the numbers in the order of `widths`.

        All ranks call this. With values at points, ranks other than the first return no numbers.
        """
        import numpy as np

        self.fields.settle()
        scalars: Mapping[str, float] = {}
        if self._prepared is not None:
            scalars = self._prepared.run(self.fields.values).scalars
        if not self._stencils:
            return [scalars[scalar] for scalar in self._scalars.values()]
        if self._values is None:
            points = {name: (held, stencils.points) for name, (held, stencils) in self._stencils.items()}
            self._values = PointValues(self.fields.store, points)
        values = self._values.gather()
        if values is None:
            return []
        numbers: dict[str, Any] = {name: [scalars[scalar]] for name, scalar in self._scalars.items()}
        numbers |= {name: stencils.apply(values[name]) for name, (_, stencils) in self._stencils.items()}
        return np.concatenate([numbers[name] for name in self.widths])  # type: ignore[return-value]

    def coordinates(self) -> dict[str, tuple[ArraySpec, NDArray[Any]]]:
        """Return the coordinates of all points by dimension; those of single points by axis."""
        dimension = POINT if isinstance(self.region, Points) else None
        return {
            name: (
                ArraySpec(
                    line.shape, line.shape, "float64", (dimension or name,),
                    {**axis_attributes(self.grid, axis), **self._units(AXES[axis])},
                ),
                line,
            )
            for name, (axis, line) in self._lines.items()
        }  # fmt: skip

    def described(self, program: Program) -> dict[str, Any]:
        """What two stores have in common that hold the same of a run of this program; for JSON."""
        return {
            "region": repr(self.region),
            "expressions": self._texts,
            "fields": equations.fields(self.grid, program),
            "grid": equations.grid_text(self.grid),
        }


def _text(what: Expr | Field | Statistic) -> str:
    """What is written, as text."""
    if isinstance(what, Statistic):
        return f"{what.kind} over time of {equations.expression(as_expr(what.expression))}"
    return what.name if isinstance(what, Field) else equations.expression(what)


def _average(f: Field, block: int) -> Expr:
    """The average of a block of cells, the first of which is this one: along one axis after the other."""
    ndim, thing = f.grid.ndim, f
    for axis in range(ndim):
        offsets = [tuple(n if a == axis else 0 for a in range(ndim)) for n in range(block)]
        total: Any = thing[offsets[0]]
        for offset in offsets[1:]:
            total = total + thing[offset]
        thing = stage(total) if axis + 1 < ndim else total
    return as_expr(thing / float(block**ndim))
