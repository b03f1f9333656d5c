"""Access to the fields of a domain: assignment, reading, gathering, checksums and reductions."""

from __future__ import annotations

import logging
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import islice
from operator import add
from os import PathLike, fspath
from pathlib import Path
from typing import Any, ClassVar, overload
from weakref import WeakMethod

import numpy as np
from numpy.typing import NDArray

from halocline.archive.arrays import narrowed
from halocline.deprecation import accept_earlier_argument
from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.attributes import KnownAttributes, Sealed
from halocline.lang.boundary import has_wall_values
from halocline.lang.callables import name_of
from halocline.lang.expression import (
    Expr,
    Operators,
    as_expr,
    as_number,
    check_grid,
    place_of,
    reads_of,
    reduction,
    without_location,
)
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import where
from halocline.lang.grid import (
    GRID_SCALARS,
    Field,
    Vector,
    checked_choice,
    component_names,
    component_values,
    unknown_name_error,
)
from halocline.lang.location import form_at_target, location
from halocline.lang.program import Program, internal_name
from halocline.lang.values import as_name, as_real, by_name, plain, real_array
from halocline.run.devices.arrays import DeviceArray, import_array
from halocline.run.devices.devices import OnDevice
from halocline.run.engine.prepare import prepare
from halocline.run.engine.prepared import Prepared
from halocline.run.fields.exports import FieldViews
from halocline.run.fields.pointwise import Pointwise, pointwise
from halocline.run.fields.sources import (
    Reader,
    is_external_array,
    is_numpy_file,
    is_source,
    last_time,
    numpy_arrays,
    source_of,
)
from halocline.run.memory import contents
from halocline.run.memory.store import FieldStore, Place
from halocline.words import short_repr

RESERVED = ("t", "dt", "step", "until", "steps", *GRID_SCALARS)


class Parameters(KnownAttributes, MutableMapping[str, float]):
    """Parameters of a simulation or linear problem, by name. A new value applies from the next run on.

    Parameters
    ----------
    parameters : mapping of str to float
        Names and initial values. No names can be added or removed later.
    values : dict of str to float
        Dictionary in which the values are stored.
    before_change : method
        Method that is called before a value changes. Only a weak reference to the object of this method is
        stored. The object refers to these parameters, and a reference cycle would delay its release.
    """

    def __init__(
        self, parameters: Mapping[str, Any], values: dict[str, float], before_change: Callable[[], None]
    ) -> None:
        if not isinstance(parameters, Mapping):
            raise InputError(
                f'parameters is {short_repr(parameters)}; expected a mapping, such as {{"kappa": 0.1}}'
            )
        parameters = by_name(parameters, "parameter")
        self._names = tuple(parameters)
        self._values, self._before_change = values, WeakMethod(before_change)
        values.update((name, _finite(name, value)) for name, value in parameters.items())

    def __repr__(self) -> str:
        return f"Parameters({dict(self)})"

    def _error_for(self, name: str) -> InputError:
        """Return the error for an assignment to a parameter as an attribute."""
        return InputError(f'parameters.{name} cannot be set; expected an item: parameters["{name}"] = 0.2')

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> float:
        return self._values[self._known(name)]

    def __setitem__(self, name: str, value: float) -> None:
        name = self._known(name)
        number = _finite(name, value)
        before_change = self._before_change()
        if before_change is not None:
            before_change()
        self._values[name] = number

    def __delitem__(self, name: str) -> None:
        raise InputError(f"parameter {name!r} cannot be removed, because the equations were compiled with it")

    def _known(self, name: str) -> str:
        return checked_choice("parameter", as_name(name, "parameter name"), sorted(self._names))


def _finite(name: str, value: Any) -> float:
    """Return the value of a parameter as a float.

    Raises
    ------
    InputError
        The name or the value is invalid.
    """
    if not name.isidentifier() or name in RESERVED:
        raise InputError(
            f"parameter name {name!r} cannot be used; expected an identifier other than "
            + ", ".join(RESERVED)
        )
    number = as_real(value)
    if number is None:
        raise InputError(
            f"parameter {name!r} is {short_repr(value)}; expected a real number that is not masked"
        )
    if not math.isfinite(number):
        raise InputError(f"parameter {name!r} is {number}; expected a finite number")
    return number


log = logging.getLogger("halocline")

MOST_PROGRAMS = 32  # maximum number of cached programs per store

BEYOND_FLOAT32 = 2.0**128 - 2.0**103  # smallest number that float32 rounds to infinity


def location_and_dtype(expression: Expr) -> tuple[str, str]:
    """Return the location and the precision of a field that can hold the values of an expression.

    Parameters
    ----------
    expression : Expr
        Expression that varies from cell to cell.

    Returns
    -------
    location : str
        Location of the expression. See `place_of` for expressions with reads at explicit offsets.
    dtype : {"float64", "float32"}
        float32 if all fields in the expression are float32.
    """
    assert expression.grid is not None
    return location(place_of(expression)), expression.precision or "float64"


class Fields(Sealed):
    """Fields of a store, accessed by name or Field object.

    Parameters
    ----------
    store : FieldStore
    parameters : mapping of str to float
        Initial values of the parameters, which expressions use by name.

    Attributes
    ----------
    parameters : Parameters
        Current parameters. ``parameters["kappa"] = 0.2`` sets a parameter for the next run, without
        recompilation.
    values : dict of str to float
        Values of all scalars: the parameters, and the results of programs.
    domain : Domain
        Part of the grid on this rank.
    """

    advice: ClassVar[Mapping[str, str]] = {"parameters": 'set a parameter, as in parameters["kappa"] = 0.2'}

    def __init__(self, store: FieldStore, parameters: Mapping[str, float]) -> None:
        self.store, self.domain = store, store.domain
        self.grid = store.domain.grid
        self.values: dict[str, float] = {}
        self.parameters = Parameters(parameters, self.values, self._before_change)
        self._pending: dict[Field, Expr] = {}
        self._checked: set[Field] = set()
        self._changes: Counter[Field] = Counter()
        self._fields_with_walls: set[Field] = (
            set()
        )  # fields whose wall points satisfy the boundary conditions
        # Programs by their fields and expressions. The most recently used program is the last.
        self._programs: OrderedDict[tuple[Any, ...], Prepared | Pointwise] = OrderedDict()
        self._generation = store.generation  # generation of the storages that these programs use
        self._internal_fields: dict[
            tuple[str, str], Field
        ] = {}  # fields of `values_as_field`, by location and dtype

    def grid_field(self, field: Any) -> Field:
        """Return the field of the grid for a Field object or a name."""
        if isinstance(field, str):
            named_field = self.grid.find(field)
            if named_field is None:
                user_fields = [
                    name for name, other in self.grid.fields.items() if not self.grid.is_work_field(other)
                ]
                raise unknown_name_error("field", field, sorted({*user_fields, *self.grid.vectors}))
            field = named_field
        if not isinstance(field, Field):
            raise InputError(f"{field!r} is not a field; expected a field of {self.grid!r} or its name")
        if field.grid is not self.grid:
            raise InputError(
                f"field {field.name!r} belongs to another grid, {field.grid!r}, not to {self.grid!r}"
            )
        return field

    def components(self, field: Any) -> tuple[Any, ...] | None:
        """Return the components of a vector, which may be given by name; None if `field` is not a vector."""
        if isinstance(field, str):
            field = self.grid.find(field)
        return tuple(field) if isinstance(field, (tuple, list)) else None

    def field_with_values(self, field: Any) -> Field:
        """Return the field for a Field object or a name, and check that the field has values."""
        target = self.grid_field(field)
        self.settle()
        if target.name not in self.store.storages:
            stored_names = ", ".join(sorted(self.store.storages))
            raise InputError(
                f"field {target.name!r} has no values, because it was not set and these equations do not "
                f"use it. Fields with values: {stored_names}"
            )
        return target

    def note_write_access(self, field: Field) -> None:
        """Record that the user or another library receives a writable view of a field."""
        self._changes[field] += 1
        self._checked.discard(field)
        self._fields_with_walls.discard(field)

    def _before_change(self) -> None:
        """Evaluate pending assignments with the current parameters, before a parameter changes.

        Wall points are set again before the next run, because boundary conditions may use the parameter.
        """
        self.settle()
        self.forget_walls()

    def __getitem__(self, field: Field | Vector | str) -> Any:
        """Return the points of a field on this rank as a NumPy view, valid until the next run.

        For a vector, the result is a tuple of views, one for each component. Local indices begin with 0 at
        the first point of this rank. ``sim.evaluate(hc.value(u, at=(i, j)))`` returns a point by global
        index, and ``sim.gather(u)`` returns the whole field.

        The array is a read-only copy if the rank has several subdomains, the field is stored on a device, or
        the grid has inactive blocks.

        Raises
        ------
        InputError
            The field has no values, or the subdomains of this rank do not form a box (see `views`).
        """
        components = self.components(field)
        if components is not None:
            return tuple(self[component] for component in components)
        target = self.field_with_values(field)
        local_values = contents.view(self.store, target)
        if not self.domain.devices:  # otherwise the array is a copy
            self.note_write_access(target)
        return self.local_view(target, tuple(map(min, zip(*self.domain.offsets, strict=True))), local_values)

    @property
    def views(self) -> FieldViews:
        """Views of fields on this rank.

        ``views[T]`` is a view without a copy, which other array libraries import by DLPack. ``views(T)`` is a
        list with the first global index and the NumPy array of each subdomain. See `FieldViews`.
        """
        return FieldViews(self)

    def local_view(self, field: Field, offset: Place, values: NDArray[Any]) -> NDArray[Any]:
        """Return points of this rank as an array whose errors explain wrong indices and forbidden writes."""
        is_whole = values.shape == field.points
        if is_whole and values.flags.writeable:
            return values
        from halocline.run.fields.views import LocalView, index_advice, write_advice

        rank, name = self.domain.comm.rank, field.name
        if self.domain.devices:
            reason = "lies on a device"
        elif self.store.blocks is not None:
            reason = "has inactive blocks"
        else:
            reason = (
                f"lies in several subdomains of rank {rank} (sim.views({name}) returns one array per "
                "subdomain)"
            )
        return LocalView.of(
            values, index_advice(field, rank, offset, values.shape), write_advice(name, reason)
        )

    def __setitem__(self, field: Field | Vector | str, value: Any) -> None:
        """Set all points of a field or vector.

        Parameters
        ----------
        field : Field, Vector or str
            Any field of the grid, including fields outside the equations, such as a reference solution.
        value : number, array, expression, callable, DataArray, str or path
            For a field, the value is one of these:

            - a number;
            - an array with the shape of the whole grid;
            - such an array of another library with DLPack or the CUDA array interface, for example of
              PyTorch, CuPy or JAX; an array in CUDA memory requires a field on the same device, with the same
              dtype;
            - an expression;
            - a function of the coordinates; its calls of NumPy functions are traced, and Halocline computes
              their values, so that the bits of the field do not depend on NumPy;
            - an xarray DataArray;
            - the path of a NumPy file, such as "T.npy", or "all.npz" with an array of the field's name;
            - the path of an array in a store, such as "heat.zarr/T"; the last stored time is read.

            For a vector, the value is one number for all components, or one of these:

            - a tuple with one value for each component;
            - an array of shape (components, *points);
            - a function of the coordinates that returns one value for each component;
            - the path of a stored vector, such as "flow.zarr/w" for the arrays w_x, w_y and so on;
            - a NumPy file with an array of shape (components, *points), or with arrays w_x, w_y and so on.

        Notes
        -----
        Each rank reads only its own part of a store or DataArray. If the points of the data differ from the
        points of the field, the data are interpolated: cell averages conservatively, values on faces and
        nodes linearly.
        """
        components = self.components(field)
        if components is not None:
            self._set_components(field, components, value)
            return
        target = self.grid_field(field)
        self._changes[target] += 1
        self._checked.discard(target)
        if is_source(value):
            self._from_source(target, value)
            return
        if is_external_array(value):
            value = import_array(value, f"field {target.name!r} is given")
        if isinstance(value, DeviceArray):
            self._from_device(target, value)
            return
        if isinstance(value, (tuple, list)) and any(isinstance(entry, Operators) for entry in value):
            # This call raises InputError, because the value is a vector and the field is not.
            as_expr(value, f"the value of field {target.name!r}")
        if callable(value) and not isinstance(value, Operators):
            traced = self.traced(target, value)
            if isinstance(traced, Exception):
                self._by_rows(target, value, traced)
                return
            value = traced
        if not isinstance(value, Operators) and getattr(value, "shape", None) == ():
            value = plain(value)
        if isinstance(value, (Operators, int, float)):
            expression = form_at_target(as_expr(value), target.staggered, f"field {target.name!r}")
            if not isinstance(value, Operators):
                _to_dtype(target, float(value))
            if target in self._pending or any(f in self._pending for f, _ in reads_of(expression)):
                self.settle()  # the expression reads the current values of fields
            self._pending[target] = expression
        else:
            self._from_array(target, value)

    def _set_components(self, vector: Any, components: Sequence[Any], value: Any) -> None:
        """Set the components of a vector; see `__setitem__`."""
        fields, count = [self.grid_field(component) for component in components], len(components)
        name = vector if isinstance(vector, str) else getattr(vector, "name", "")
        label = f"vector {name or vector!r}"
        values: Sequence[Any]
        if is_external_array(value):
            value = import_array(value, f"{label} is given")
        if is_numpy_file(value):
            with self.domain.comm.agreement(f"read {value} for {label}"):
                arrays = numpy_arrays(Path(value), (name,), [f.name for f in fields])
            values = arrays if len(arrays) == count > 1 else component_values(arrays[0], count, label)
        elif isinstance(value, (str, PathLike)):
            values = component_names(fspath(value), count)
        elif callable(value) and not isinstance(value, Operators):
            values = [_component_of(value, n, count, label) for n in range(count)]
        else:
            values = component_values(value, count, label)
        for field, component_value in zip(fields, values, strict=True):
            self[field] = component_value

    def _allocate(self, target: Field) -> Field:
        """Allocate the memory of a field if necessary, evaluate pending assignments, and return the field."""
        if target.name not in self.store.storages:
            self._pending[target] = as_expr(0.0)
        self.settle()
        return target

    def traced(self, field: Field, function: Callable[..., Any]) -> Expr | Exception:
        """Return the traced expression of a function of the coordinates, or the error if tracing fails."""
        label = f"the function given for field {field.name!r}"
        expression = trace.try_function(function, field.coordinates, label)
        if isinstance(expression, Exception):
            return expression
        check_grid(expression, self.grid, label)
        return expression

    def _by_rows(self, field: Field, function: Callable[..., Any], reason: Exception) -> None:
        """Set a field to the values of a function that NumPy evaluates for one row of the grid at a time.

        The bits of the result do not depend on the decomposition.

        Parameters
        ----------
        field : Field
        function : callable
        reason : Exception
            Error that prevents tracing. A warning reports this error, unless the function returns a value
            that is not numeric.
        """
        from halocline.run.fields.views import row_function

        def warn() -> None:
            if self.domain.comm.rank == 0:
                log.warning(
                    "field %s: its function cannot be traced (%s), so it runs in NumPy, row by row",
                    field.name,
                    reason,
                )

        try:
            row_at = row_function(function, field)
        except InputError as error:
            if error.__cause__ is not None:  # the function itself raises an error for arrays
                warn()
            raise
        warn()

        def values(origin: Place, shape: Place) -> NDArray[np.float64]:
            part, columns = np.empty(shape), slice(origin[-1], origin[-1] + shape[-1])
            for local in np.ndindex(shape[:-1]):
                part[local] = row_at([start + i for start, i in zip(origin[:-1], local, strict=True)])[
                    columns
                ]
            return part

        self._fill(field, values)

    def load(self, fields: Sequence[Field], read: Callable[[Field], None]) -> None:
        """Replace all values of fields, including values on walls. `read` is called for each field to set it.

        All ranks call this method.
        """
        for field in fields:
            self._pending.pop(field, None)
        for field in fields:
            self._allocate(field)
        for field in fields:
            self._changes[field] += 1
            self._checked.discard(field)
            read(field)
            self._fields_with_walls.add(field)

    def changes(self, field: Field) -> int:
        """Return how often the user has assigned to a field or taken a view of it, on this rank."""
        return self._changes[field]

    def forget_walls(self) -> None:
        """Require that wall points are set again by the boundary conditions before the next run."""
        self._fields_with_walls.clear()

    def _from_source(self, field: Field, value: Any) -> None:
        """Set a field from a store, a NumPy file or a DataArray. Each rank reads its own points.

        The first rank selects the time for all ranks, because another program may extend the store meanwhile.
        """
        comm, action = self.domain.comm, f"set field {field.name!r}"
        with comm.agreement(action):
            time = last_time(value) if comm.rank == 0 else None
        time = comm.bcast(time)
        with comm.agreement(action):
            reader = Reader(field, source_of(value, field, time))
        if reader.description and self.domain.comm.rank == 0:
            log.info("field %s is interpolated: %s", field.name, reader.description)

        def values(origin: Place, shape: Place) -> NDArray[Any]:
            part = reader.read(origin, tuple(map(add, origin, shape)))
            return real_array(part, f"field {field.name!r} is given")

        self._fill(field, values)

    def _fill(self, field: Field, values: Callable[[Place, Place], NDArray[Any]]) -> None:
        """Write the points of a field. If the values on any rank are invalid, no rank writes.

        Parameters
        ----------
        field : Field
        values : callable
            Function ``values(origin, shape)`` that returns the values of a box of points.
        """
        self._allocate(field)
        with self.store.writable(field) as pieces:
            with self.domain.comm.agreement(f"set field {field.name!r}"):
                parts = [_to_dtype(field, values(origin, view.shape)) for origin, view in pieces]
            for (_, view), part in zip(pieces, parts, strict=True):
                view[...] = part
        self._set_walls(field)

    def _from_array(self, field: Field, value: Any) -> None:
        array, points = real_array(value, f"field {field.name!r} is given"), field.points
        if array.shape not in ((), points):
            advice = ""
            if self.domain.comm.size > 1 and array.ndim == len(points):
                advice = (
                    "; expected the whole field on each rank: write the points of this rank by "
                    f"sim[{field.name}][...] = array"
                )
            raise InputError(
                f"field {field.name!r} has shape {points}, but the array given for it has shape {array.shape}"
                + advice
            )

        def values(origin: Place, shape: Place) -> NDArray[Any]:
            box = tuple(slice(o, o + n) for o, n in zip(origin, shape, strict=True))
            return array if array.shape == () else array[box]

        self._fill(field, values)

    def _from_device(self, field: Field, array: DeviceArray) -> None:
        """Set a field from an array in device memory. If the array is invalid on any rank, no rank writes."""
        with self.domain.comm.agreement(f"set field {field.name!r}"):
            if array.shape != field.points:
                raise InputError(
                    f"field {field.name!r} has shape {field.points}, but the array given for it has shape "
                    f"{array.shape}; expected the whole field on each rank"
                )
            self.store.check_device_array(field, array)
        self._allocate(field)
        self.store.copy_device_array(field, array)
        self._set_walls(field)

    def _set_walls(self, field: Field) -> None:
        """Set wall points by the boundary conditions, unless an assignment to the field is pending."""
        self._fields_with_walls.add(field)
        if field not in self._pending and has_wall_values(field):
            self._pending[field] = field.expr

    def settle(self) -> None:
        """Evaluate all pending assignments of fields in one generated sweep.

        Assigned numbers are scalars of the program, so that other numbers do not require another program.
        """
        self._release_stale()
        if not self._pending:
            return
        pending, self._pending = self._pending, {}
        formulas = {f: None if e.op == "const" else e for f, e in pending.items()}
        numbers = {
            internal_name(f"number{n}"): e.attribute
            for n, e in enumerate(pending.values())
            if e.op == "const"
        }

        def assign(program: Program) -> None:
            for n, (field, formula) in enumerate(formulas.items()):
                field.set(program.internal_scalar(f"number{n}") if formula is None else formula)

        self._program("initial_values", tuple(formulas.items()), assign).run({**self.values, **numbers})
        self._check_range(pending)

    def _release_stale(self) -> None:
        """Release engines that use old storages, after halos of fields have grown."""
        if self._generation != self.store.generation:
            for prepared in self._programs.values():
                if isinstance(prepared, Prepared):
                    prepared.release()
            self._generation = self.store.generation

    def _program(
        self,
        name: str,
        key_values: tuple[Any, ...],
        statements: Callable[[Program], None],
        *,
        compiled: bool = False,
    ) -> Prepared | Pointwise:
        """Return the program that evaluates expressions, from the cache if possible; collective.

        The program is evaluated in NumPy, point by point, if this takes less time than its compilation.

        Parameters
        ----------
        name : str
            Name of the program.
        key_values : tuple
            Fields, expressions, and tuples of fields and expressions, which determine the statements.
            Expressions contain the names of parameters. The values of parameters are not part of the key,
            because they are arguments of a run.
        statements : callable
            Function that records the statements in the traced program.
        compiled : bool
            True if the program must be compiled.
        """
        self.domain.comm.check_same(
            f"the expressions of program {name!r} are",
            _digests(key_values),
            "all ranks must evaluate the same",
        )
        key = name, *key_values
        program = self._programs.pop(key, None)
        if program is None and not compiled:
            program = pointwise(self.store, _trace_program(name, statements), self.values)
        if isinstance(program, Pointwise) and (compiled or not program.is_worthwhile):
            program = None
        self._programs[key] = program or prepare(self.store, _trace_program(name, statements), self.values)
        if len(self._programs) > MOST_PROGRAMS:
            self._programs.popitem(last=False)
        return self._programs[key]

    def _forget_programs(self) -> None:
        """Discard all cached programs, because their plans are no longer valid."""
        self._programs.clear()

    def _check_range(self, formulas: Mapping[Field, Expr]) -> None:
        """Raise InputError if a function of the coordinates exceeds the range of its float32 field."""
        formulas = {f: e for f, e in formulas.items() if f.dtype == "float32" and e.varies}
        formulas = {f: e for f, e in formulas.items() if not reads_of(e)}
        if not formulas or contents.first_nonfinite(self.store, [*formulas]) is None:
            return
        for field, formula in formulas.items():
            size = magnitude(formula)
            is_beyond = (size >= BEYOND_FLOAT32) & (size < math.inf)
            ones = where(is_beyond, 1.0, 0.0)
            count = int(self.evaluate(reduction("sum", ones, place=field.staggered)))
            if count:
                raise _beyond_range(field, count, math.prod(field.points))

    @overload
    def evaluate(self, expression: Any, /) -> float: ...

    @overload
    def evaluate(self, expression: Any, another: Any, /, *more: Any) -> tuple[float, ...]: ...

    def evaluate(self, *expressions: Any) -> Any:
        """Return the values of scalar expressions, such as ``hc.max(abs(T))``, on the current fields.

        All ranks receive the same values.

        Parameters
        ----------
        *expressions
            Scalar expressions. Several expressions are compiled once as one program, and evaluated in a
            single pass over the fields if possible.

        Returns
        -------
        float, or tuple of float
            One value per expression. A reduction of a vector, such as ``hc.max(w)``, gives a tuple with one
            value per component.
        """
        groups = [e if isinstance(e, (tuple, list)) else (e,) for e in expressions]
        scalars_to_evaluate = tuple(as_expr(e) for group in groups for e in group)
        for expression in scalars_to_evaluate:
            if expression.varies:
                raise InputError(
                    f"{expression!r} varies from cell to cell. Reduce it with hc.sum, hc.min, hc.max, "
                    "hc.norm or hc.value."
                )
        self.settle()

        def assign(program: Program) -> None:
            for number, expression in enumerate(scalars_to_evaluate):
                program.internal_scalar(f"result{number}").set(expression)

        scalars = self._program("evaluate", scalars_to_evaluate, assign).run(self.values).scalars
        numbers = iter(
            [scalars[internal_name(f"result{number}")] for number in range(len(scalars_to_evaluate))]
        )
        values = tuple(
            tuple(islice(numbers, len(e))) if isinstance(e, (tuple, list)) else next(numbers)
            for e in expressions
        )
        return values[0] if len(values) == 1 else values

    @contextmanager
    def values_as_field(self, value: Any) -> Iterator[Field]:
        """Yield a field that contains the values of a field or expression; collective.

        Parameters
        ----------
        value : Field, str or expression
            Field or expression. A condition becomes 1 if it is true and 0 otherwise.

        Yields
        ------
        Field
            For a field, the field itself. For an expression, a temporary field that exists only inside the
            with block and has the location and precision of the expression (see `location_and_dtype`).

        Raises
        ------
        InputError
            The field has no values; or the argument is neither a field nor an expression that varies from
            cell to cell; or the expression combines values at different locations.
        """
        if isinstance(value, (Field, str)):
            yield self.field_with_values(value)
            return
        expression = as_expr(value, "the argument")
        if not expression.varies or expression.grid is not self.grid:
            raise InputError(f"{value!r}: expected a field of {self.grid!r}, or an expression of such fields")
        number = as_number(expression)
        location, dtype = location_and_dtype(number)
        self.settle()
        with self._internal_field(location, dtype) as field:
            value = field, number
            prepared = self._program("values", value, lambda program: field.set(number), compiled=True)
            assert isinstance(prepared, Prepared)
            prepared.allocate()
            try:
                prepared.run(self.values)
            finally:
                prepared.release()  # otherwise the engine would keep the memory of the field
            yield field

    @contextmanager
    def _internal_field(self, location: str, dtype: str) -> Iterator[Field]:
        """Yield a field that belongs to the grid and has memory only inside the with block.

        All with blocks reuse the same field for a location and precision, so that programs that assign to
        this field are compiled only once. A nested with block uses another field.
        """
        field = self._internal_fields.get((location, dtype))
        if field is None or field.name in self.grid.fields:
            field = self.grid.internal_field("values", location=location, dtype=dtype)
            self._internal_fields.setdefault((location, dtype), field)
        self.grid.fields[field.name] = field
        try:
            yield field
        finally:
            self.grid.fields.pop(field.name, None)
            self.store.forget(field.name)

    @accept_earlier_argument("what", "expression")
    def gather(self, expression: Any) -> Any:
        """Return a whole field or the values of an expression on the first rank; collective.

        Parameters
        ----------
        expression : Field, Vector, str or expression
            Field, vector, or expression such as ``0.5 * rho * u**2``.

        Returns
        -------
        array or None
            On the first rank, an array with one element per point of the field; None on other ranks. The
            values of an expression have the location of its fields, and include points on an upper wall. The
            precision is float32 if all fields of the expression are float32. The array has dtype bool for a
            condition. For a vector, the array has the shape (components, *points). If the shapes of the
            components differ, a vector gives a tuple of arrays.

        Raises
        ------
        InputError
            The field has no values; or the argument is neither a field nor an expression with fields of this
            grid; or the expression combines values at different locations.
        """
        components = self.components(expression)
        if components is not None:
            arrays = [self.gather(component) for component in components]
            if self.domain.comm.rank != 0:
                return None
            return np.stack(arrays) if len({array.shape for array in arrays}) == 1 else tuple(arrays)
        with self.values_as_field(expression) as field:
            values = contents.gather(self.store, field)
        is_condition = isinstance(expression, Operators) and as_expr(expression).condition
        return values.astype(bool) if values is not None and is_condition else values

    def checksum(self, field: Field | Vector | str) -> Any:
        """Return a hash of the bits of a field, or a tuple of hashes of the components of a vector.

        The hash does not depend on the number of ranks or threads, the patches or the decomposition.
        """
        components = self.components(field)
        if components is not None:
            return tuple(self.checksum(component) for component in components)
        return contents.checksum(self.store, self.field_with_values(field))

    @property
    def devices(self) -> tuple[OnDevice, ...]:
        """Device of each subdomain of every rank, identical on all ranks; empty on the CPU."""
        return self.domain.places

    def check_inputs(self, when: str) -> None:
        """Raise InputError if a field that was set since the last check has non-finite values; collective."""
        self.settle()
        fields = [field for field in self.store.fields if field not in self._checked]
        for field in self.store.fields:
            if field not in self._fields_with_walls:
                self._set_walls(field)  # the field may have no values yet, or was set through a view
        self.settle()
        if fields:
            contents.check_finite(self.store, fields, when)
            self._checked.update(fields)

    def check_all(self, when: str) -> None:
        """Raise InputError if any field has non-finite values. All ranks call this method."""
        self._checked.clear()
        Fields.check_inputs(self, when)


def _trace_program(name: str, statements: Callable[[Program], None]) -> Program:
    """Return the program that `statements` records."""
    program = Program(name)
    with trace.tracing(program):
        statements(program)
    return program


def _component_of(function: Callable[..., Any], number: int, count: int, label: str) -> Callable[..., Any]:
    """Return a function for one component of a vector. `function` returns all components."""
    label = f"the function given for {label}"

    @wraps(function)
    def component(*coordinates: Any) -> Any:
        values = function(*coordinates)
        if values is None:
            raise InputError(f"{label} {trace.RETURNS_NONE}")
        return component_values(values, count, f"{label} returns a value that")[number]

    component.__name__ = name_of(function)
    return component


def _digests(value: Any) -> Any:
    """Replace fields by names and expressions by digests in nested tuples, for comparison between ranks."""
    if isinstance(value, tuple):
        return tuple(map(_digests, value))
    if isinstance(value, Field):
        return value.name
    return None if value is None else without_location(value).digest


def _to_dtype(field: Field, values: Any) -> NDArray[Any]:
    """Return values in the precision of a field.

    Raises
    ------
    InputError
        Some values are finite but exceed the range of this precision.
    """
    fitted, infinite = narrowed(values, field.dtype)
    if infinite:
        raise _beyond_range(field, infinite, fitted.size)
    return fitted


def _beyond_range(field: Field, count: int, size: int) -> InputError:
    """Return the error for values that are finite but exceed the range of the dtype of a field."""
    return InputError(
        f"field {field.name!r} is {field.dtype}, and {count:,} of {size:,} values given for it are finite "
        "but exceed the range of this type. Use a float64 field, or scale the values."
    )
