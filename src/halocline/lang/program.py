"""Programs: statements over fields and scalars, loops and stages, recorded by tracing a Python function.

The engine runs a program without Python. `field.set(...)` assigns a field. `scalar.set(...)` assigns a
number, which may contain reductions over the grid. `with loop(...)` repeats statements, and `stop(...)` ends
the run early.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeVar

from halocline.errors import InputError
from halocline.lang import expression as graph
from halocline.lang import trace
from halocline.lang.attributes import Sealed
from halocline.lang.boundary import BoundaryCondition, Ghost, with_wall_values
from halocline.lang.callables import fixed_by_partial, name_of, rebound_arguments, signature_of
from halocline.lang.expression import Assignable, Expr, Operand, Operators
from halocline.lang.grid import (
    GRID_SCALARS,
    Field,
    Grid,
    Vector,
    checked_choice,
    component_values,
    unknown_name_error,
)
from halocline.lang.location import form_at_target, locations, staggering
from halocline.lang.location import location as location_name
from halocline.lang.origin import Line, calling_line, framework_origin
from halocline.lang.trace import INTERNAL
from halocline.lang.values import as_name, as_number, identifier
from halocline.ranges import SOME_STEPS
from halocline.words import short_repr

K = TypeVar("K")

Key = Field | str  # field, or name of a scalar
TIME_SCALARS = ("dt", "t", "step")  # scalars that count time and steps
SHOWN_DEPTH, SHOWN_WIDTH = 3, 80  # maximum levels and characters of an expression in a label


def internal_name(name: str) -> str:
    """Return the name of the first scalar that `Program.internal_scalar` creates for `name`."""
    return name + INTERNAL


class Scalar(Sealed, Assignable):
    """Number of the program, the same in every cell.

    Parameters are scalars whose values are set from outside.

    Parameters
    ----------
    name : str
        An identifier.
    internal : bool
        True to mark the name, so that it differs from the name of every scalar and parameter of the user.
    """

    advice: ClassVar[Mapping[str, str]] = {"value": "s.set(value) records a statement of the program"}

    def __init__(self, name: str, *, internal: bool = False) -> None:
        name = identifier(name, "scalar name", "'rho'")
        self._name = internal_name(name) if internal else name

    def __repr__(self) -> str:
        return f"Scalar({self.name!r})"

    @property
    def name(self) -> str:
        """Name in the program."""
        return self._name

    @property
    def expr(self) -> Expr:
        return trace.scalar(self.name, trace.version(self))

    def set(self, value: Operand) -> None:
        """Assign a scalar expression, as a statement of the program that is being traced."""
        trace.current("scalar.set(...)").assign_scalar(
            self, graph.as_expr(value, f"value of scalar {self.name!r}")
        )


class Stage(Sealed, Operators):
    """Named intermediate result of a sweep; created by `stage`.

    A stage is computed wherever it is read, including the halo, and is never exchanged.

    Attributes
    ----------
    name : str
    definition : Expr
    storage : str
    staggered : tuple of bool, optional
        Axes along which the points are staggered. None if neither the call nor the definition gives a
        location.
    line : Line, optional
        Origin of the stage.
    """

    def __init__(
        self,
        name: str,
        definition: Expr,
        storage: str,
        staggered: tuple[bool, ...] | None = None,
        line: Line | None = None,
    ) -> None:
        self.name, self.definition, self.storage = name, definition, storage
        self.staggered, self.line = staggered, line

    def __repr__(self) -> str:
        return f"Stage({self.name!r})"

    @property
    def expr(self) -> Expr:
        grid = self.definition.grid
        assert grid is not None  # checked by stage()
        value = graph.stage_read(self, (0,) * grid.ndim)
        return value if self.staggered is None else graph.with_places(value, {self.staggered: 0})

    def __getitem__(self, offset: Any) -> Expr:
        return graph.stage_read(self, graph.as_offset(offset, self.definition.grid))


def _assigned_scalar(operand: Scalar) -> str | None:
    """Return the name of a scalar that a statement of the program being traced would assign.

    Return None in functions that return expressions, and for parameters. In both cases, user code may rebind
    the Python name of the operand.
    """
    program = trace.active()
    if program is None or not program.in_body:
        return None
    is_parameter = operand.name in program.parameters and operand.name not in TIME_SCALARS
    return None if is_parameter else operand.name


graph.reject_in_place(Scalar, _assigned_scalar)


STORAGES = ("auto", "inline", "patch", "array")


def stage(
    value: Any,
    name: str | None = None,
    *,
    storage: str = "auto",
    location: str | Sequence[str] | None = None,
) -> Any:
    """Return a named intermediate result, which expressions can read at any cell and its neighbours.

    Parameters
    ----------
    value : expression, or a vector or list of them
        Definition of the intermediate result.
    name : str, optional
        Name in the generated code and in the output of `explain`.
    storage : {"auto", "inline", "patch", "array"}
        "inline" computes the result at each read. "patch" computes it once per patch into scratch memory;
        cells that several patches need are computed in each of these patches. "array" computes it into a
        separate field. The halo of this field is exchanged, but the field has no values beyond walls. "auto"
        chooses between "inline" and "patch" by cost.
    location : str or sequence of str, optional
        Location of the points: "cell", "node", "face-x", "edge-z", ...; for a vector, one location per
        component. "face" and "edge" put each component on the faces or edges of its axis. Along an axis that
        ends at walls there is one more face than cells; reductions and arrays contain all faces. The default
        is the location of the expression. An expression that reads at explicit offsets is staggered along an
        axis under two conditions: along this axis, all its fields are staggered, and no read has an offset.

    Returns
    -------
    Stage, Field or Vector
        A field for the storage "array", otherwise a stage. A Vector if `value` is a vector or list.
    """
    program = trace.current("hc.stage(...)")
    if isinstance(value, (tuple, list)):
        base = name or program.unique_name("stage")
        places: Sequence[str | None] = [None] * len(value)
        if location is not None:
            places = locations(location, len(value))
        if len(places) != len(value):
            raise InputError(
                f"stage of {len(value)} components: location {location!r} has {len(places)} entries; "
                "expected one for all components, or one for each"
            )
        return Vector(
            stage(v, f"{base}_{i}", storage=storage, location=place)
            for i, (v, place) in enumerate(zip(value, places, strict=True))
        )
    expression = graph.as_expr(value, "stage")
    checked_choice("stage storage", storage, STORAGES)
    if not expression.varies or expression.grid is None:
        raise InputError(f"stage of {expression!r}: it does not vary from cell to cell; use a scalar")
    if expression.condition:
        raise InputError(f"stage of the condition {expression!r}: use hc.where(condition, 1.0, 0.0)")
    grid = expression.grid
    label = program.unique_name("stage") if name is None else identifier(name, "stage name", "'flux_x'")
    if location is not None and not isinstance(location, str):
        raise InputError(
            f"stage {label!r}: location is {short_repr(location)}; expected one location as text, such as "
            "'cell' or 'face-x', because the stage holds one expression"
        )
    staggered: tuple[bool, ...] | None
    if location is not None:
        staggered = staggering(location, grid.ndim, f"stage {label!r}")
        expression = form_at_target(expression, staggered, f"stage {label!r}")
    else:
        staggered = None if expression.placement is None else graph.place_of(expression)
        expression = graph.without_location(expression)
    if expression.precision is None:  # numbers, coordinates and conditions
        expression = graph.round_to(expression, grid.dtype)
    if storage == "array":
        location = location or location_name(staggered or graph.place_of(expression))
    (expression,) = program.extract_reductions(expression)
    if storage == "array":
        assert location is not None
        dtype = expression.precision or grid.dtype

        def create_array(free: str) -> Field:
            boundary = None if all(grid.periodic) else NoGhosts(free)
            return grid.field(free, location=location, dtype=dtype, boundary=boundary)

        array = program.work_field(grid, label, (location, dtype), create_array)
        array.set(expression)
        return array
    return Stage(label, expression, storage, staggered, program.origin(f"stage {label}"))


@dataclass(frozen=True)
class NoGhosts(BoundaryCondition):
    """Condition of a stage that is stored in an array: the stage has no ghosts beyond walls."""

    stage: str

    def ghost(self, at: Ghost) -> Expr:
        raise InputError(
            f"stage {self.stage!r} is stored in an array and read beyond a wall, where the array has no "
            "values. Use storage='patch', or set a field with boundary conditions."
        )


@dataclass(frozen=True)
class Assign:
    """Assignment of one or several fields at once: field.set(expression).

    In this assignment, no expression reads the new value of another assigned field, or a ghost that depends
    on such a new value.
    """

    values: Mapping[Field, Expr]
    lines: Mapping[Field, Line]

    @property
    def line(self) -> Line:
        """Origin of the first assignment."""
        return next(iter(self.lines.values()))


@dataclass(frozen=True)
class AssignScalar:
    """Assignment of a scalar: scalar.set(expression)."""

    scalar: Scalar
    expression: Expr
    line: Line


@dataclass(frozen=True)
class StopWhen:
    """Early end of the run: stop(when, reason)."""

    condition: Expr
    reason: str
    line: Line


@dataclass
class Repeat:
    """Loop: `with loop(until, limit)`, or `with when(condition)`, which is a loop of at most one pass.

    `often` is the expected share of passes of the surrounding loop in which the body of
    `with when(condition)` runs.
    """

    until: Expr | None
    limit: Expr | None
    record: tuple[Scalar, ...]
    line: Line
    body: list[Statement] = field(default_factory=list)
    often: float | None = None


Statement = Assign | AssignScalar | StopWhen | Repeat


def expressions_of(statement: Statement) -> list[Expr]:
    """Return the expressions that a statement evaluates, without the expressions in the body of a loop."""
    if isinstance(statement, Assign):
        return list(statement.values.values())
    if isinstance(statement, AssignScalar):
        return [statement.expression]
    if isinstance(statement, StopWhen):
        return [statement.condition]
    return [e for e in (statement.until, statement.limit) if e is not None]


def assigned(statements: Iterable[Statement]) -> set[Key]:
    """Return the fields and the names of the scalars that statements assign, also in loops."""
    targets: set[Key] = set()
    for statement in statements:
        if isinstance(statement, Assign):
            targets |= statement.values.keys()
        elif isinstance(statement, AssignScalar):
            targets.add(statement.scalar.name)
        elif isinstance(statement, Repeat):
            targets |= assigned(statement.body)
    return targets


class Versions:
    """Version numbers of the values of fields and scalars, counted while statements are visited in order.

    A version number increases with every assignment and at the start of every loop. `since` contains, for
    each field or scalar, the first version number that denotes the present value.
    """

    def __init__(self) -> None:
        self.since: dict[Key, int] = {}
        self._assignments: dict[Key, int] = {}
        self._loops = 0

    def current(self, key: Key) -> int:
        """Return the present version of a field or scalar."""
        return self._loops + self._assignments.get(key, 0)

    def set(self, key: Key) -> None:
        """Count an assignment of a field or scalar."""
        self._assignments[key] = self._assignments.get(key, 0) + 1
        self.since[key] = self.current(key)

    def enter_loop(self, assigned: Iterable[Key] = ()) -> None:
        """Count the start of a loop.

        The fields and scalars that the loop assigns get a new version, because an earlier pass may have set
        them.
        """
        self._loops += 1
        self.since |= {key: self.current(key) for key in assigned}

    def is_current(self, key: Key, version: int) -> bool:
        """Return True if a version number denotes the present value."""
        return version >= self.since.get(key, 0)


class Program:
    """Statements of a program, recorded by tracing: the input of the compiler.

    Attributes
    ----------
    name : str
    statements : list of Statement
    parameters : dict of str to Scalar
        Scalars whose values are set from outside when the program runs.
    meanings : dict of str to str
        Meanings of parameters, if they are known, such as "viscosity, in length²/time".
    cuts : set of int
        Indices of statements in the order of `all_statements`. A statement with such an index, and all later
        statements, share no sweep with the statements before it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.statements: list[Statement] = []
        self.parameters: dict[str, Scalar] = {}
        self.scheme: Any = None  # time integration scheme, if there is one
        self.notices: list[str] = []  # messages to the user before the run
        self.meanings: dict[str, str] = {}
        self.cuts: set[int] = set()
        self.in_body = (
            False  # True in the function of a program, False in a function that returns expressions
        )
        self._open: list[list[Statement]] = [self.statements]
        self._labels: Line | Mapping[Field, Line] = {}  # see `label_statements`
        self._versions = Versions()
        self._names: dict[str, int] = {}
        self._scalars: dict[str, Scalar] = {}
        self._requests: dict[tuple[Any, ...], int] = {}
        self._evaluated: tuple[dict[str, int], dict[tuple[Any, ...], int]] | None = None

    def version(self, thing: Field | Scalar) -> int:
        """Return a number that increases with every assignment to a field or scalar and with every loop.

        A read inside a loop and a read before the loop have different versions: in the second pass, the two
        values may differ.
        """
        return self._versions.current(thing.name if isinstance(thing, Scalar) else thing)

    def unique_name(self, base: str) -> str:
        """Return a name that no other stage or scalar of the program has."""
        self._names[base] = self._names.get(base, 0) + 1
        return f"{base}{self._names[base]}"

    @contextmanager
    def label_statements(self, labels: str | Line | Mapping[Field, Line]) -> Iterator[None]:
        """Label the statements that the framework records in a with block.

        Statements of the user, for example in a function that is called in the block, keep their own lines.

        Parameters
        ----------
        labels : str, Line or mapping of Field to Line
            Description or origin of all statements, or origins of the assignments of each field.
        """
        outer, self._labels = self._labels, framework_origin(labels) if isinstance(labels, str) else labels
        try:
            yield
        finally:
            self._labels = outer

    def origin(self, description: str, target: Field | None = None) -> Line:
        """Return the origin of the statement being recorded: a user line, a label, or `description`."""
        line = calling_line()
        if line is None:
            labels = self._labels
            line = labels if isinstance(labels, Line) else None if target is None else labels.get(target)
        return line or framework_origin(description)

    @contextmanager
    def body(self) -> Iterator[None]:
        """Mark a with block in which a function records the statements of a program or of a part of it."""
        outer, self.in_body = self.in_body, True
        try:
            yield
        finally:
            self.in_body = outer

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Reuse the stages, reductions and fields of the first evaluation in later evaluations.

        An evaluation is a with block. Each evaluation forms the same expressions, such as the time
        derivatives in each stage of a scheme.

        Statements between the evaluations may set fields and scalars. An expression must not be used after it
        is formed again. If the evaluations differ only in the values of fields and scalars, they share the
        same sweeps and the same kernel.
        """
        reached = self._names, self._requests
        self._evaluated = self._evaluated or (dict(self._names), dict(self._requests))
        self._names, self._requests = dict(self._evaluated[0]), dict(self._evaluated[1])
        try:
            yield
        finally:
            self._names = _merge_counts(reached[0], self._names)
            self._requests = _merge_counts(reached[1], self._requests)

    def scalar(self, name: str) -> Scalar:
        """Return a new scalar of the program."""
        name = as_name(name, "scalar name")
        if name in self._scalars or name in self.parameters or name in GRID_SCALARS:
            raise InputError(f"the program already has a scalar or parameter named {name!r}")
        return self._scalars.setdefault(name, Scalar(name))

    def internal_scalar(self, name: str) -> Scalar:
        """Return a new scalar whose name differs from every scalar and parameter of the user."""
        result = Scalar(name, internal=True)
        while result.name in self._scalars:
            result._name += INTERNAL
        return self._scalars.setdefault(result.name, result)

    def unnamed_scalar(self, kind: str) -> Scalar:
        """Return a new scalar for a value to which the user gives no name; see `internal_scalar`."""
        result = Scalar(kind, internal=True)
        result._name = self.unique_name(INTERNAL + kind)
        return self._scalars.setdefault(result.name, result)

    def work_field(self, grid: Grid, name: str, kind: tuple[Any, ...], make: Callable[[str], Field]) -> Field:
        """Return an internal field of the program; the first request creates it with ``make(name)``.

        The n-th request for a name and kind gives the same field in every program on a grid. Equal programs
        therefore have the same code, and a repeated trace creates no further fields. Each run has its own
        values of the field.
        """
        key = (name, *kind)
        number = self._requests[key] = self._requests.get(key, 0) + 1
        return grid.work_field(name, (*key, number), make)

    def all_statements(self) -> Iterator[Statement]:
        """Yield every statement in the order of the text, including statements in loops."""

        def walk(statements: Sequence[Statement]) -> Iterator[Statement]:
            for statement in statements:
                yield statement
                if isinstance(statement, Repeat):
                    yield from walk(statement.body)

        return walk(self.statements)

    def cut(self) -> None:
        """Compute the following statements in other sweeps than the statements recorded so far.

        The code of the earlier sweeps, and therefore their rounding, then does not depend on the following
        statements.
        """
        self.cuts.add(sum(1 for _ in self.all_statements()))

    @property
    def has_records(self) -> bool:
        """True if a loop of the program records values of scalars."""
        return any(isinstance(statement, Repeat) and statement.record for statement in self.all_statements())

    def continuation(self) -> Program:
        """Return a program that continues after a pass of the loop at the end of this program.

        In the new program, each statement before the loop assigns the present value of its field or scalar.
        The compiler therefore forms the same sweeps of the loop, and fills the halos that the first pass
        reads. The results have the same bits as the results of an uninterrupted loop.

        Raises
        ------
        InputError
            The program does not end with a loop, or has another loop before it.
        """
        *before, last = self.statements
        if not isinstance(last, Repeat) or any(isinstance(statement, Repeat) for statement in before):
            raise InputError(
                f"program {self.name!r} cannot be resumed, because it does not end with its only loop"
            )
        result, assignments = copy(self), dict[Key, int]()
        result.name = f"{self.name}_continued"

        def version(thing: Key) -> int:
            """Return the version before the assignment, so that reads in the loop keep their versions."""
            assignments[thing] = assignments.get(thing, 0) + 1
            return assignments[thing] - 1

        result.statements = []
        for statement in before:
            if isinstance(statement, Assign):
                unchanged = {f: graph.read(f, version(f), (0,) * f.grid.ndim) for f in statement.values}
                result.statements.append(Assign(unchanged, statement.lines))
            elif isinstance(statement, AssignScalar):
                name = statement.scalar.name
                unchanged_number = trace.scalar(name, version(name))
                result.statements.append(AssignScalar(statement.scalar, unchanged_number, statement.line))
        result.cuts = {number - len(before) + len(result.statements) for number in self.cuts}
        result.statements.append(last)
        return result

    def assigned_scalars(self) -> set[str]:
        """Return the names of all user scalars that the program sets."""
        return {t for t in assigned(self.statements) if isinstance(t, str) and INTERNAL not in t}

    def extract_reductions(self, *expressions: Expr) -> tuple[Expr, ...]:
        """Return the expressions with a scalar in place of each reduction.

        The method first records statements that set these scalars.
        """
        memo: dict[Expr, Expr] = {}
        for current in graph.walk(expressions):
            if current.op == "reduce":
                value = self.unnamed_scalar("reduced")
                self.assign_scalar(value, graph.replace_leaves(current, lambda leaf: leaf, memo))
                memo[current] = value.expr
        if not memo:
            return expressions
        return tuple(graph.replace_leaves(e, lambda leaf: leaf, memo) for e in expressions)

    def parameter(self, name: str, meaning: str | None = None) -> Scalar:
        """Return the parameter or scalar with a name; create a parameter if the program has neither."""
        name = as_name(name, "parameter name")
        if meaning is not None:
            self.meanings[name] = meaning
        known = self._scalars.get(name)
        return self.parameters.setdefault(name, Scalar(name)) if known is None else known

    def assign(self, changes: Mapping[Any, Any]) -> None:
        """Record field.set(value) for one field, or for several at once."""
        values = {target: self._value(target, value) for target, value in by_field(changes)}
        reduced = self.extract_reductions(*values.values())
        lines = {f: self.origin(_assignment(f, e), f) for f, e in zip(values, reduced, strict=True)}
        self.append(Assign(dict(zip(values, reduced, strict=True)), lines))
        for target in values:
            self._versions.set(target)

    def _value(self, target: Field, value: Any) -> Expr:
        """Return the expression that a field is set to, at the points of the field and with wall values."""
        expression = graph.as_expr(value, f"value of field {target.name!r}")
        if expression.grid is not None and expression.grid is not target.grid:
            raise InputError(
                f"field {target.name!r} on {target.grid!r} is set to an expression of another grid, "
                f"{expression.grid!r}"
            )
        if expression.condition:
            raise InputError(
                f"field {target.name!r} is set to the condition {expression!r}; use hc.where(condition, 1.0, "
                "0.0)"
            )
        expression = form_at_target(expression, target.staggered, f"field {target.name!r}")
        return with_wall_values(target, expression)

    def assign_scalar(self, target: Scalar, expression: Expr) -> None:
        """Record scalar.set(expression)."""
        if expression.varies:
            raise InputError(
                f"scalar {target.name!r} is set to {short_repr(expression)}, which varies from cell to cell; "
                "reduce it with hc.sum, hc.min, hc.max, hc.norm or hc.value"
            )
        # A reduction inside a reduction is computed first, by a separate statement.
        inner = [n.args[0] for n in graph.walk((expression,)) if n.op == "reduce"]
        memo = {e: self.extract_reductions(e)[0] for e in inner}
        expression = graph.replace_leaves(expression, lambda leaf: leaf, memo)
        self.append(AssignScalar(target, expression, self.origin(_assignment(target, expression))))
        self._versions.set(target.name)

    def append(self, statement: Statement) -> None:
        """Append a statement to the innermost open loop, or to the program."""
        self._open[-1].append(statement)

    @contextmanager
    def record_loop(self, loop_statement: Repeat) -> Iterator[None]:
        """Record a loop around the statements of a with block."""
        self.append(loop_statement)
        self._versions.enter_loop()
        self._open.append(loop_statement.body)
        try:
            yield
        finally:
            self._open.pop()


def _scalar_condition(value: Any, label: str, name: str, example: str) -> Expr:
    """Return a condition on scalars, or raise InputError for any other value."""
    condition = graph.as_expr(value, name)
    if not condition.condition or condition.varies:
        raise InputError(
            f"{label} is {short_repr(condition)}; expected a comparison of scalars, such as {example}"
        )
    return condition


def _assignment(target: Field | Scalar, value: Expr) -> str:
    """Return an assignment as text, without the marks of internal names."""
    words = f"{target.name} = {graph.text(value, SHOWN_DEPTH)}".replace(INTERNAL, "")
    return words if len(words) <= SHOWN_WIDTH else f"{words[: SHOWN_WIDTH - 3]}..."


def by_field(changes: Mapping[Any, Any]) -> Iterator[tuple[Field, Any]]:
    """Yield fields with their values; for a vector, each component with its value, see `component_values`.

    Raises
    ------
    InputError
        A key is neither a field nor a vector of fields, or a field occurs twice.
    """
    fields: set[Field] = set()
    for target, value in changes.items():
        is_vector = isinstance(target, tuple)
        parts = target if is_vector else (target,)
        vector_name = f"vector {getattr(target, 'name', '') or target!r}"
        values = component_values(value, len(parts), vector_name) if is_vector else [value]
        for part, part_value in zip(parts, values, strict=True):
            if not isinstance(part, Field):
                raise InputError(f"{target!r} cannot be set; expected a field or a vector of fields")
            if part in fields:
                raise InputError(f"field {part.name!r} is set twice in one statement. Leave one of them out.")
            fields.add(part)
            yield part, part_value


def _merge_counts(counts: dict[K, int], other_counts: dict[K, int]) -> dict[K, int]:
    """Return the larger of two counts for each key."""
    return counts | {key: max(count, counts.get(key, 0)) for key, count in other_counts.items()}


def loop(*, until: Any = None, limit: Any = None, record: Scalar | Sequence[Scalar] = ()) -> Any:
    """Repeat the statements of a with block.

    Parameters
    ----------
    until : condition on scalars, optional
        Condition that ends the loop, tested before each pass.
    limit : int or scalar, optional
        Maximum number of passes.
    record : scalar or sequence of scalars
        Scalars to record. Their values after each pass form the history of the run.

    Examples
    --------
    ``with hc.loop(until=rho <= stop, limit=1000, record=rho): ...``
    """
    scalars = (record,) if isinstance(record, Scalar) else record
    if not isinstance(scalars, (list, tuple)):
        raise InputError(f"hc.loop: record is {short_repr(record)}; expected a scalar, or a list of scalars")
    program = trace.current("hc.loop(...)")
    stop = None
    if until is not None:
        stop = _scalar_condition(until, "hc.loop: until", "until", "rho <= stop")
    max_passes = None if limit is None else graph.as_expr(limit, "limit")
    if max_passes is not None and (max_passes.varies or max_passes.condition):
        raise InputError(f"hc.loop: limit is {short_repr(max_passes)}; expected a whole number or a scalar")
    if (
        max_passes is not None
        and max_passes.op == "const"
        and not (max_passes.attribute >= 0 and max_passes.attribute % 1 == 0)
    ):
        raise InputError(
            f"hc.loop: limit is {short_repr(limit)}; expected a whole number from 0, or a scalar"
        )
    if stop is None and max_passes is None:
        raise InputError("hc.loop: neither until nor limit is set, so the loop never ends. Set one of them.")
    return program.record_loop(Repeat(stop, max_passes, tuple(scalars), program.origin("loop")))


def when(condition: Any, *, often: float = 1.0) -> Any:
    """Run the statements of a with block only if a condition on scalars holds.

    The condition is evaluated each time the program reaches the block. If the condition does not hold, fields
    and scalars keep their values. The meaning of all other statements is unchanged.

    Parameters
    ----------
    condition : condition on scalars
        Condition, which may contain reductions.
    often : float
        Expected share of the evaluations in which the condition holds, above 0 and at most 1. Estimates of
        the cost of a pass depend on the share. The results do not depend on it.

        A device queues passes before it knows the conditions, so it predicts them. If the share is at most
        2/3, it predicts that the condition does not hold. The next execution of the block is then expected
        ``1/often`` passes after the last one. Near this pass, the device queues only a few passes ahead. If
        the share is above 2/3, the device predicts the result of the last evaluation. For the first
        evaluation, it predicts that the condition holds. After a wrong prediction, the pass is completed.

    Raises
    ------
    InputError
        The condition depends on fields, or the share is out of range.

    Examples
    --------
    >>> import halocline as hc
    >>> grid = hc.Grid(8, periodic=True)
    >>> u = grid.field("u")
    >>> @hc.program
    ... def step(u):
    ...     with hc.when(hc.max(abs(u)) > 1.0):
    ...         u.set(0.5 * u)
    """
    share = as_number(often, "hc.when: often")
    if not 0 < share <= 1:
        raise InputError(f"hc.when: argument often={share:g}; expected a number above 0 and at most 1")
    return _conditional(trace.current("hc.when(...)"), condition, share, "when")


def _conditional(
    program: Program, condition: Any, often: float, description: str
) -> AbstractContextManager[None]:
    """Record the statements of a with block that run if a condition on scalars holds."""
    example = "error > limit; to choose cell by cell use hc.where or hc.branch"
    checked = _scalar_condition(condition, "hc.when: the condition", "when", example)
    line = program.origin(description)
    (reduced,) = program.extract_reductions(checked)
    one_pass = graph.as_expr(1.0)
    return program.record_loop(Repeat(graph.unary("not", reduced), one_pass, (), line, often=often))


def every(steps: int) -> Any:
    """Run the statements of a with block in step 0 and in every `steps`-th step after it.

    Parameters
    ----------
    steps : int
        Number of steps between two runs of the statements. The scalar `step` counts the steps.

    Examples
    --------
    ``with hc.every(10): total.set(hc.sum(u))``
    """
    count = SOME_STEPS.check("every", steps)
    program = trace.current("hc.every(...)")
    quotient = program.parameter("step").expr / count
    # Round to the nearest integer: from 2**52 on, all numbers of float64 are integers.
    nearest = (quotient + 2.0**52) - 2.0**52
    return _conditional(program, quotient == nearest, 1.0 / count, f"every {count} steps")


def with_current_values(expression: Expr) -> Expr:
    """Return an expression with the present values of its fields and scalars in the program being traced."""

    def current_leaf(leaf: Expr) -> Expr:
        if leaf.op == "read":
            target, _, offset = leaf.attribute
            return graph.read(target, trace.version(target), offset)
        program = trace.active()
        if leaf.op == "scalar" and program is not None and leaf.attribute[0] in program.assigned_scalars():
            return Scalar(leaf.attribute[0]).expr
        return leaf

    return graph.replace_leaves(expression, current_leaf, {})


def assign(changes: Mapping[Any, Any]) -> None:
    """Set several fields at once.

    If `x` and `y` are formed before the call, ``assign({a: x, b: y})`` has the same effect as ``a.set(x)``
    followed by ``b.set(y)``. The exception is a field in `y` whose boundary condition reads `a`. With
    `assign`, `y` then reads the ghosts of this field from before both assignments.

    Parameters
    ----------
    changes : mapping of Field to expression or number, and of Vector to one of them for each component
        New values of the fields.

    Examples
    --------
    >>> import halocline as hc
    >>> grid = hc.Grid(8, periodic=True)
    >>> a, b = grid.field("a"), grid.field("b")
    >>> swap = hc.program(lambda: hc.assign({a: b, b: a}))
    """
    program = trace.current("hc.assign(...)")
    if not isinstance(changes, Mapping) or not all(isinstance(key, (Field, Vector)) for key in changes):
        raise InputError(
            f"changes of hc.assign are {short_repr(changes)}; expected a mapping of fields to expressions, "
            "such as {u: a, v: b}"
        )
    program.assign(changes)


def stop(when: Operand, reason: str) -> None:
    """End the run with the given reason if a condition on scalars holds."""
    program = trace.current("hc.stop(...)")
    example = "rho > limit: reduce a field to a number first, with hc.max for example"
    (condition,) = program.extract_reductions(
        _scalar_condition(when, "hc.stop: the condition", "when", example)
    )
    program.append(StopWhen(condition, reason, program.origin(f"stop: {reason}")))


def scalar(name: str) -> Scalar:
    """Return a new scalar of the program that is being traced."""
    return trace.current("hc.scalar(...)").scalar(identifier(name, "scalar name", "'rho'"))


def scalars(names: str) -> tuple[Scalar, ...]:
    """Return several new scalars, whose names are given in one text and separated by blanks."""
    if not isinstance(names, str):
        raise InputError(f"names of scalars are {short_repr(names)}; expected one text, such as 'rho old'")
    return tuple(scalar(name) for name in names.split())


def label_statements(description: str) -> AbstractContextManager[None]:
    """Label the statements that the framework records in a with block; see `Program.label_statements`."""
    return trace.current("label_statements(...)").label_statements(description)


def internal_scalars(names: str) -> tuple[Scalar, ...]:
    """Return several new scalars that belong to the program itself; see `Program.internal_scalar`."""
    program = trace.current("internal_scalars(...)")
    return tuple(program.internal_scalar(name) for name in names.split())


def parameter(name: str, *, unit: str | None = None, about: str | None = None) -> Expr:
    """Return a parameter by name, for boundary conditions and other code without function arguments.

    Parameters
    ----------
    name : str
    unit, about : str, optional
        Unit ("1" for a pure number) and meaning of the parameter. The error message for a parameter without
        a value contains both.
    """
    program = trace.active()
    identifier(name, "parameter name", "'kappa'")
    for option, value in (("unit", unit), ("about", about)):
        if value is not None and not isinstance(value, str):
            raise InputError(f"{option} of parameter {name!r} is {short_repr(value)}; expected a text")
    meaning = ", in ".join(part for part in (about, None if unit == "1" else unit) if part) or None
    return (Scalar(name) if program is None else program.parameter(name, meaning)).expr


@dataclass(frozen=True)
class ProgramFunction:
    """Python function that records its statements when it is called during tracing; created by `program`."""

    function: Callable[..., Any]

    @property
    def name(self) -> str:
        """Name of the function."""
        return name_of(self.function)

    __name__ = name

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def trace(self, *arguments: Any, **keywords: Any) -> Program:
        """Return the program that the function records if it is called with the given arguments.

        Scalars among the arguments become parameters of the program.
        """
        result = Program(self.name)
        for argument in (*arguments, *keywords.values()):
            if isinstance(argument, Scalar):
                result.parameters[argument.name] = argument
        with trace.tracing(result), result.body():
            self.function(*arguments, **keywords)
        return result

    def record(self, arguments: Mapping[str, Any], *, stops: bool = False) -> None:
        """Record the statements in the program that is being traced.

        Parameters
        ----------
        arguments : mapping of str to Field, Vector or Scalar
        stops : bool
            True to accept a function that only calls `stop`.

        Raises
        ------
        InputError
            The function assigns no field or scalar, or returns a value.
        """
        traced = trace.current(f"a call of program {self.name!r}")
        before = list(traced.all_statements())
        with traced.body():
            result = trace.call(self.function, **arguments)
        statements = list(traced.all_statements())[len(before) :]
        targets = {t for t in assigned(statements) if not (isinstance(t, str) and INTERNAL in t)}
        rebound = {
            name: line
            for name, line in rebound_arguments(self.function).items()
            if isinstance(arguments.get(name), (Field, Vector))
            or (name in TIME_SCALARS and name in arguments)
        }
        if not targets and not (stops and statements):
            field_names = [name for name, thing in arguments.items() if isinstance(thing, (Field, Vector))]
            name = next(iter([*rebound, *field_names]), "u")
            cause = f": {_rebinds(name, rebound[name])}" if rebound else ""
            raise InputError(
                f"program {self.name!r} assigns no field or scalar{cause}; write {name}.set(...)"
            )
        # a lambda of several statements returns a tuple of None
        if any(value is not None for value in (result if isinstance(result, tuple) else (result,))):
            raise InputError(
                f"program {self.name!r} returns a value of type {type(result).__name__}, which has no "
                "effect. Write u.set(...) for each field, without a return statement."
            )
        for name, line in rebound.items():
            thing = arguments[name]
            parts = thing if isinstance(thing, Vector) else (thing,)
            if targets.isdisjoint(part.name if isinstance(part, Scalar) else part for part in parts):
                traced.notices.append(
                    f"program {self.name}: {_rebinds(name, line)}, and no statement sets {name}. Write "
                    f"{name}.set(...) to change it."
                )

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Record the statements of the function in the program that calls it."""
        trace.current(f"a call of program {self.name!r}")
        return self.function(*arguments, **keywords)

    def __get__(self, owner: Any, kind: type | None = None) -> ProgramFunction:
        """Return the program bound to an object, if the function is a method of the class of the object."""
        return self if owner is None else ProgramFunction(self.function.__get__(owner, kind))


def _rebinds(name: str, line: int) -> str:
    """Return the description of an assignment to a Python name."""
    return f"{name} = ... in line {line} only rebinds the Python name"


def program(function: Callable[..., Any]) -> ProgramFunction:
    """Mark a function as a program, which the engine runs without Python.

    The statements of a program set fields and scalars.
    """
    if not callable(function):
        raise InputError(f"hc.program of {function!r}; expected a function of fields and scalars")
    return program_in(function) or ProgramFunction(function)


def program_in(function: Any) -> ProgramFunction | None:
    """Return a program, including a program inside ``functools.partial``, or None for a plain function."""
    if isinstance(function, partial):
        inner = program_in(function.func)
        if inner is not None:
            return ProgramFunction(partial(inner.function, *function.args, **function.keywords))
    return function if isinstance(function, ProgramFunction) else None


def bind(function: Callable[..., Any], grid: Grid, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for a user function, selected by the names of its parameters.

    Parameters
    ----------
    function : callable
    grid : Grid
        Grid whose fields and vectors can be arguments.
    names : mapping
        Scalars and parameters that can be arguments, by name.

    Returns
    -------
    dict
        Field, Vector or Scalar for each name of an argument. Arguments that ``functools.partial`` binds are
        omitted. Arguments with a default and an unknown name are omitted too.

    Raises
    ------
    InputError
        An argument has an unknown name; the message lists the known names.
    """
    if not callable(function):
        raise InputError(f"{function!r} is not a function; expected a function of fields and parameters")
    title, bound_by_partial = name_of(function), fixed_by_partial(function)
    signature = signature_of(function, title)
    if signature is None:
        raise InputError(
            f"the arguments of {title} have no names. Call {title} in a function of fields and parameters."
        )
    bound: dict[str, Any] = {}
    for name, argument in signature.parameters.items():
        if name in bound_by_partial:
            continue
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            raise InputError(f"{title}: *{name} cannot be bound; list each field and parameter by name")
        if argument.kind is argument.POSITIONAL_ONLY:
            raise InputError(f"{title}: argument {name!r} is positional only and cannot be bound by its name")
        thing, field = names.get(name), grid.find(name)
        if thing is not None and field is not None:
            raise InputError(
                f"{title}: argument {name!r} names both a field and a scalar or parameter (t, dt and step "
                "are scalars of the program). Rename one of them."
            )
        if thing is None:
            thing = field
        if thing is None:
            if argument.default is not argument.empty:
                continue
            known = [*grid.vectors, *grid.fields, *names]
            raise unknown_name_error(f"{title}: argument", name, known)
        bound[name] = thing
    return bound
