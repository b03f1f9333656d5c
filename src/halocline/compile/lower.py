"""From statements to sweeps: neighbouring assignments and reductions are fused where reads allow it.

A sweep assigns several fields at once: every expression in it is written in terms of the values from before
the sweep. A statement joins the sweep before it unless it reads, at a neighbouring cell, a field which that
sweep assigns or whose ghosts follow one that it assigns, or a scalar that depends on its reductions.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import or_
from typing import Any

from halocline.compile.footprint import Offset
from halocline.errors import InputError
from halocline.lang.boundary import SIDES, Ghost, Periodic
from halocline.lang.dtype import dtype_of
from halocline.lang.expression import Expr, cast, reduction, replace_leaves, walk
from halocline.lang.expression import read as read_node
from halocline.lang.expression import stage_read as stage_node
from halocline.lang.grid import Field
from halocline.lang.program import Assign, AssignScalar, Line, Program, Repeat, Stage, Statement, StopWhen
from halocline.lang.trace import OWN
from halocline.lang.trace import scalar as scalar_node


@dataclass(eq=False)
class SweepGraph:
    """Fields assigned and numbers reduced in one pass, in terms of the values before it."""

    sets: dict[Field, Expr] = field(default_factory=dict)
    reductions: dict[Expr, str] = field(default_factory=dict)  # reduce node -> scalar that takes the result
    lines: list[Line] = field(default_factory=list)
    origins: dict[Field | Expr, Line] = field(default_factory=dict)  # of what is set, and of reductions

    def roots(self) -> list[Expr]:
        """Every expression that is evaluated per cell."""
        return [*self.sets.values(), *(r.args[0] for r in self.reductions)]


@dataclass
class ScalarGraph:
    """Scalar statements in order."""

    statements: list[tuple[str, Expr]]


@dataclass
class StopGraph:
    """As compile.schedule.Stop."""

    condition: Expr
    reason: str
    error: bool = False


@dataclass
class LoopGraph:
    until: Expr | None
    limit: str | None
    count: str
    record: tuple[str, ...]
    body: list[OperationGraph]
    often: float | None = None  # as of lang.program.Repeat


@dataclass
class AwaitGraph:
    """As compile.schedule.Await."""


OperationGraph = SweepGraph | ScalarGraph | AwaitGraph | StopGraph | LoopGraph


Place = tuple[bool, ...]  # the axes that points are staggered along


class _Flush(Exception):
    """The statement cannot join the sweep under construction."""


class _Gone(Exception):
    """A statement uses a value of `key`, a field's id or a scalar's name, that was overwritten before it."""

    def __init__(self, key: int | str, message: str) -> None:
        super().__init__(message)
        self.key = key


class _Cut(Exception):
    """A sweep must end before `statement`, since a later one uses a value that it overwrites."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement


@dataclass
class _Lowering:
    program: Program
    layers: int  # of ghosts that may be read
    cuts: frozenset[int] = frozenset()  # statements, by id, that may not join the sweep before them
    run: Statement | None = None  # the first of the assignments to fields that the sweep ends with so far
    # where a sweep may be cut so that a field or scalar keeps the value it had
    setters: dict[int | str, Statement] = field(default_factory=dict)
    operations: list[OperationGraph] = field(default_factory=list)
    sweep: SweepGraph = field(default_factory=SweepGraph)
    after: list[tuple[str, Expr]] = field(default_factory=list)  # scalar statements that follow the sweep
    # versions (see Program.version) of fields, by id, and of scalars, by name
    since: dict[int | str, int] = field(default_factory=dict)  # the first that stands for the present value
    before: dict[int | str, range] = field(default_factory=dict)  # those of the value before the sweep
    sets: dict[int | str, int] = field(default_factory=dict)  # how often each was set
    loops: int = 0  # entered so far
    _wall_keys: dict[Field, set[int | str]] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)

    def fresh(self, kind: str) -> str:
        number = self.names.get(kind, 0)
        self.names[kind] = number + 1
        return f"{OWN}{kind}{number}"

    def flush(self) -> None:
        if self.sweep.sets or self.sweep.reductions:
            self.operations.append(self.sweep)
        if self.after:
            self.operations.append(ScalarGraph(self.after))
        self.sweep, self.after, self.before, self.run = SweepGraph(), [], {}, None
        self._stages.clear()

    # --- expressions in terms of the values before the sweep ---

    def resolve(self, root: Expr, line: Line, place: Place | None) -> Expr:
        """The expression of a statement: at the points of `place`, or of scalars alone."""
        memo: dict[int, Expr] = {}
        # the cells of a reduction see the sweep, whatever statement it stands in
        for current in walk((root,)):
            if current.op == "reduce":
                points = current.attribute[2]
                inner = replace_leaves(current.args[0], partial(self.leaf, line=line, place=points))
                memo[id(current)] = self.reduce(current, inner, line)
        if place is None:
            return replace_leaves(root, partial(self.scalar, line=line, kernel=False), memo)
        return replace_leaves(root, partial(self.leaf, line=line, place=place), memo)

    def leaf(self, leaf: Expr, line: Line, place: Place) -> Expr:
        """A leaf of an expression that is evaluated at the points of `place`."""
        if leaf.op == "read":
            target, version, offset = leaf.attribute
            if target in self.sweep.sets and self.present(id(target), version):
                if self.beyond(target, offset, place):
                    raise _Flush
                value = self.sweep.sets[target]
                # as if it were read back: rounded, and of the field's precision
                return value if dtype_of(value, {}) == target.dtype else cast(value, target.dtype)
            if not self.present(id(target), version) and version not in self.before.get(id(target), ()):
                raise _Gone(
                    id(target),
                    f"{line}: an expression uses the value that field {target.name!r} had before it was set "
                    "again; keep that value in another field, or form the expression after the set",
                )
            if self.beyond(target, offset, place) and self.walls_follow(target):
                raise _Flush
            return read_node(target, 0, offset)
        if leaf.op == "stage":
            stage, offset = leaf.attribute
            if stage not in self._stages:
                definition = replace_leaves(stage.definition, partial(self.leaf, line=line, place=()))
                self._stages[stage] = self.resolved(stage, definition), self.forwards(stage.definition)
            made, forwards = self._stages[stage]
            if any(self.beyond(f, offset, place) for f in forwards):
                raise _Flush
            return stage_node(made, offset)
        return self.scalar(leaf, line, kernel=True)

    def scalar(self, leaf: Expr, line: Line, kernel: bool) -> Expr:
        """A leaf of a scalar expression, or another that does not differ from cell to cell."""
        if leaf.op != "scalar":
            return leaf
        name, version = leaf.attribute
        present = self.present(name, version)
        if kernel and name in self.before:  # set after the sweep
            if present:
                raise _Flush
            if version in self.before[name]:
                return scalar_node(name)
        if not present:
            raise _Gone(
                name,
                f"{line}: an expression uses the value that scalar {name!r} had before it was set again; "
                "keep that value in another scalar, or form the expression after the set",
            )
        return scalar_node(name)

    def beyond(self, field: Field, offset: Offset, place: Place) -> bool:
        """Whether a read at the points of `place` may meet a neighbour's value or a ghost: at another cell,
        or at points at upper walls that the field lacks."""
        return any(offset) or any(p and not own for p, own in zip(place, field.staggered, strict=False))

    def walls_follow(self, field: Field) -> bool:
        """Whether ghosts of a field depend on what the sweep sets, or on a scalar set after it."""
        return bool(self.before) and not self.before.keys().isdisjoint(self.wall_keys(field))

    def wall_keys(self, field: Field) -> set[int | str]:
        """The fields, by id, and scalars, by name, that the ghosts of a field depend on, also through ghosts
        of others."""
        if field not in self._wall_keys:
            found: set[int | str] = set()
            waiting = [field]
            while waiting:
                for leaf in walk(ghosts(waiting.pop(), self.layers)):
                    if leaf.op == "scalar":
                        found.add(leaf.attribute[0])
                    elif leaf.op == "read" and id(leaf.attribute[0]) not in found | {id(field)}:
                        found.add(id(leaf.attribute[0]))
                        waiting.append(leaf.attribute[0])
            self._wall_keys[field] = found
        return self._wall_keys[field]

    _resolved: dict[tuple[Any, ...], Stage] = field(default_factory=dict)
    # of this sweep: each with the fields that it reads as the sweep sets them
    _stages: dict[Stage, tuple[Stage, frozenset[Field]]] = field(default_factory=dict)

    def resolved(self, stage: Stage, definition: Expr) -> Stage:
        """One stage object per meaning, so that its reads are shared."""
        key = (stage.name, definition.digest, stage.storage, stage.staggered)
        made = Stage(stage.name, definition, stage.storage, stage.staggered, stage.line)
        return self._resolved.setdefault(key, made)

    def forwards(self, definition: Expr) -> frozenset[Field]:
        """The fields that a stage reads as the sweep leaves them, or whose ghosts follow what it sets."""
        found: frozenset[Field] = frozenset()
        for current in walk((definition,)):
            if current.op == "read":
                target, version, _ = current.attribute
                set_here = target in self.sweep.sets and self.present(id(target), version)
                if set_here or self.walls_follow(target):
                    found |= {target}
            elif current.op == "stage":
                found |= self._stages[current.attribute[0]][1]
        return found

    def reduce(self, like: Expr, operand: Expr, line: Line) -> Expr:
        kind, cell, place = like.attribute
        made = reduction(kind, operand, cell, place)
        name = self.sweep.reductions.get(made)
        if name is None:
            name = self.sweep.reductions[made] = self.fresh(like.attribute[0])
            self.sweep.origins[made] = line
        return scalar_node(name)

    # --- statements ---

    def statement(self, statement: Statement) -> None:
        if id(statement) in self.cuts:
            self.flush()
        try:
            before = len(self.sweep.reductions)
            try:
                self.try_statement(statement)
            except _Flush:
                for made in list(self.sweep.reductions)[before:]:
                    del self.sweep.reductions[made]
                self.flush()
                self.try_statement(statement)
        except _Gone as gone:
            # what overwrote the value may have joined a sweep that this statement had to wait for
            setter = self.setters.get(gone.key)
            if setter is None or id(setter) in self.cuts:
                raise InputError(str(gone)) from None
            raise _Cut(setter) from None

    def try_statement(self, statement: Statement) -> None:
        if isinstance(statement, Assign):
            values = {f: self.resolve(e, statement.line, f.staggered) for f, e in statement.values.items()}
            self.sweep.sets |= values
            self.sweep.lines.append(statement.line)
            self.sweep.origins |= dict.fromkeys(values, statement.line)
            self.run = self.run or statement
            for f in values:
                self.advance(id(f), self.run)
        elif isinstance(statement, AssignScalar):
            value = self.resolve(statement.expression, statement.line, None)
            self.after.append((statement.scalar.name, value))
            self.run = None
            self.advance(statement.scalar.name, statement)
        elif isinstance(statement, StopWhen):
            self.flush()
            self.operations.append(StopGraph(_current(statement.condition), statement.reason))
        else:
            self.repeat(statement)

    def advance(self, key: int | str, statement: Statement) -> None:
        """Note that a field or scalar has another value now, and the statement to cut before to keep it."""
        self.setters[key] = statement
        now = self.sets.get(key, 0) + self.loops
        self.before.setdefault(key, range(self.since.get(key, 0), now + 1))
        self.sets[key] = self.sets.get(key, 0) + 1
        self.since[key] = now + 1
        self._stages.clear()

    def present(self, key: int | str, version: int) -> bool:
        """Whether a version of a field or scalar stands for the value that it has now."""
        return version >= self.since.get(key, 0)

    def repeat(self, statement: Repeat) -> None:
        self.flush()
        limit = None
        if statement.limit is not None:
            limit = self.fresh("limit")
            value = self.resolve(statement.limit, statement.line, None)
            self.after.append((limit, value))
            self.flush()
        self.loops += 1
        for key in _assigned(statement.body):
            # at the start of a pass it has what the pass before left, not what it had before the loop
            self.since[key] = self.sets.get(key, 0) + self.loops
        outer, self.operations = self.operations, []
        for inner in statement.body:
            self.statement(inner)
        self.flush()
        body, self.operations = self.operations, outer
        if not body:
            raise InputError(f"{statement.line}: the loop has no statements")
        until = None if statement.until is None else _current(statement.until)
        if until is not None and limit is None:
            body += _undecided(until, statement.line)
        record = tuple(s.name for s in statement.record)
        self.operations.append(LoopGraph(until, limit, self.fresh("passes"), record, body, statement.often))


def layers(program: Program) -> int:
    """As many layers of ghosts as any statement may read, through stages of stages too, or more."""
    longest: dict[Stage | None, int] = {None: 0}  # offset of a read, of any field (None) or of a stage
    waiting: list[Expr] = []
    for statement in program.flat():
        if isinstance(statement, Assign):
            waiting += statement.values.values()
        elif isinstance(statement, AssignScalar):
            waiting.append(statement.expression)
    while waiting:
        for leaf in walk((waiting.pop(),)):
            if leaf.op == "read":
                longest[None] = max(longest[None], *map(abs, leaf.attribute[-1]))
            elif leaf.op == "stage":
                stage, offset = leaf.attribute
                if stage not in longest:
                    waiting.append(stage.definition)
                longest[stage] = max(longest.get(stage, 0), *map(abs, offset))
    return 1 + sum(longest.values())  # points on faces read a layer further than cells


def ghosts(field: Field, layers: int) -> list[Expr]:
    """The ghost values of a field at every wall, that many layers of them."""
    found = []
    for n, side in enumerate(SIDES):
        condition = field.boundary.get(side)
        if condition is not None and not isinstance(condition, Periodic):
            for layer in range(layers):
                with suppress(InputError):  # of a user's kernel that knows fewer layers
                    found.append(condition.ghost(Ghost(field, n // 2, 2 * (n % 2) - 1, layer)))
    return found


def _assigned(statements: list[Statement]) -> set[int | str]:
    """The fields, by id, and scalars, by name, that statements set."""
    found: set[int | str] = set()
    for statement in statements:
        if isinstance(statement, Assign):
            found |= {id(f) for f in statement.values}
        elif isinstance(statement, AssignScalar):
            found.add(statement.scalar.name)
        elif isinstance(statement, Repeat):
            found |= _assigned(statement.body)
    return found


def _current(condition: Expr) -> Expr:
    """A condition on the values that scalars have when it is tested."""

    def leaf(current: Expr) -> Expr:
        return scalar_node(current.attribute[0]) if current.op == "scalar" else current

    for current in walk((condition,)):
        if current.op == "reduce":
            raise InputError(f"the condition {condition!r} holds a reduction; set a scalar to it first")
    return replace_leaves(condition, leaf)


def _undecided(until: Expr, line: Line) -> list[OperationGraph]:
    """What ends a run at the end of a pass where nothing else would: no comparison with NaN ever holds."""
    numbers = [scalar_node(leaf.attribute[0]) for leaf in walk((until,)) if leaf.op == "scalar"]
    if not numbers:
        return []
    broken = reduce(or_, (number != number for number in dict.fromkeys(numbers)))
    return [StopGraph(~until & broken, f"{line}: the loop would not end: a number in {until!r} is NaN", True)]


def lower(program: Program) -> list[OperationGraph]:
    """The operations of a program, with fused sweeps."""
    cuts: frozenset[int] = frozenset()
    depth = layers(program)
    while True:
        lowering = _Lowering(program, depth, cuts)
        try:
            for statement in program.statements:
                lowering.statement(statement)
        except _Cut as cut:
            cuts |= {id(cut.statement)}
        else:
            break
    lowering.flush()
    if not lowering.operations:
        raise InputError(f"program {program.name!r} has no statements: nothing is set")
    return lowering.operations


def sweeps(operations: list[OperationGraph]) -> list[SweepGraph]:
    """Every sweep, in the order of the program text."""
    found: list[SweepGraph] = []
    for operation in operations:
        if isinstance(operation, SweepGraph):
            found.append(operation)
        elif isinstance(operation, LoopGraph):
            found.extend(sweeps(operation.body))
    return found
