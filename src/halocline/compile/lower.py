"""Formation of sweeps: fusion of neighbouring assignments and reductions if their reads permit it.

A sweep assigns several fields simultaneously: all its expressions use the values before the sweep. A
statement joins the preceding sweep, except in two cases. In the first case, the statement reads a field at a
neighbouring cell. The sweep assigns this field, or a field on which its ghosts depend. In the second case,
the statement reads a scalar that depends on the reductions of the sweep.

`with_waits` inserts the wait for reduction results before the first statement that needs them.

The results of a reduction over all ranks arrive late, since messages pass through a tree of ranks. Operations
that do not depend on these results run until then. A scalar statement that depends on these results moves
behind the wait, unless an earlier operation needs the scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from halocline.compile.dependence import LostError, Progress, Uses, Verdict, Walls, stages_below
from halocline.errors import InputError
from halocline.lang import program as lang
from halocline.lang.expression import Expr, cast, reduction, replace_leaves, walk
from halocline.lang.expression import read as read_node
from halocline.lang.expression import stage_read as stage_node
from halocline.lang.grid import Field
from halocline.lang.origin import Line
from halocline.lang.program import Key
from halocline.lang.trace import INTERNAL
from halocline.lang.trace import scalar as scalar_node


@dataclass(eq=False)
class SweepGraph:
    """Assignments and reductions of one sweep, as expressions of the values before the sweep.

    A sweep without assignments and reductions is only a halo exchange.
    """

    sets: dict[Field, Expr] = field(default_factory=dict)
    reductions: dict[Expr, str] = field(default_factory=dict)  # scalar of the result of each reduce node
    lines: list[Line] = field(default_factory=list)
    origins: dict[Field | Expr, Line] = field(default_factory=dict)  # source line of each result

    def roots(self) -> list[Expr]:
        """Return all expressions that the sweep evaluates per cell."""
        return [*self.sets.values(), *(r.args[0] for r in self.reductions)]


@dataclass(eq=False)
class ScalarGraph:
    """Scalar statements in order."""

    statements: list[tuple[str, Expr]]


@dataclass
class StopGraph:
    """Stop of a run; see compile.schedule.Stop."""

    condition: Expr
    reason: str
    error: bool = False


@dataclass(eq=False)
class LoopGraph:
    """Repeated operations; see compile.schedule.Loop."""

    until: Expr | None
    limit: str | None
    count: str
    record: tuple[str, ...]
    body: list[OperationGraph]
    often: float | None = None  # see lang.program.Repeat


@dataclass
class AwaitGraph:
    """Wait for reduction results; see compile.schedule.Await."""


OperationGraph = SweepGraph | ScalarGraph | AwaitGraph | StopGraph | LoopGraph


class _Lowering:
    """Formation of sweeps.

    A sweep also ends before each statement whose number in `Program.all_statements` is in `cuts`.
    """

    def __init__(self, walls: Walls, uses: Uses, cuts: frozenset[int]) -> None:
        self.progress, self.uses, self.cuts = Progress(walls), uses, cuts
        # for each field or scalar, the statement before which a cut preserves its value
        self.setters: dict[Key, int] = {}
        self.first_assignment: int | None = None  # number of the first assignment in the latest series
        self.number = 0  # number of the next statement
        self.operations: list[OperationGraph] = []
        self.sweep = SweepGraph()
        self.after: list[tuple[str, Expr]] = []  # scalar statements that follow the sweep
        self.names: dict[str, int] = {}
        # one object for all stages with the same meaning, so that their reads are shared
        self._resolved: dict[tuple[Any, ...], lang.Stage] = {}
        self._stages: dict[lang.Stage, lang.Stage] = {}  # stages in terms of the current sweep
        self._formed: dict[Expr, Expr] = {}  # expressions in terms of the current sweep

    def fresh(self, kind: str) -> str:
        number = self.names.get(kind, 0)
        self.names[kind] = number + 1
        return f"{INTERNAL}{kind}{number}"

    def end_sweep(self) -> None:
        if self.sweep.sets or self.sweep.reductions:
            self.operations.append(self.sweep)
        if self.after:
            self.operations.append(ScalarGraph(self.after))
        self.sweep, self.after, self.first_assignment = SweepGraph(), [], None
        self.progress.end_sweep()
        self._forget()

    # --- expressions in terms of the values before the sweep ---

    def of_cells(self, root: Expr) -> Expr:
        """Return an expression that is evaluated per cell, in terms of the values before the sweep."""
        return replace_leaves(root, self.leaf, self._formed)

    def of_scalars(self, root: Expr, line: Line) -> Expr:
        """Return an expression of scalars with each reduction replaced by the scalar of its result."""
        memo: dict[Expr, Expr] = {}
        for current in walk((root,)):
            if current.op == "reduce":
                memo[current] = self.reduce(current, self.of_cells(current.args[0]), line)
        return replace_leaves(root, self.leaf, memo)

    def leaf(self, leaf: Expr) -> Expr:
        if leaf.op == "scalar":
            return scalar_node(leaf.attribute[0])
        if leaf.op == "read":
            target, version, offset = leaf.attribute
            if target in self.sweep.sets and self.progress.is_current(target, version):
                value = self.sweep.sets[target]
                # the same value as after a store and a load: rounded to the precision of the field
                return value if value.precision == target.dtype else cast(value, target.dtype)
            return read_node(target, 0, offset)
        if leaf.op == "stage":
            stage, offset = leaf.attribute
            if stage not in self._stages:
                # inner stages first, so that a long chain of stages needs no deep recursion
                for inner in (*stages_below([stage.definition]), stage):
                    if inner not in self._stages:
                        self._stages[inner] = self.resolved(inner, self.of_cells(inner.definition))
            return stage_node(self._stages[stage], offset)
        return leaf

    def resolved(self, stage: lang.Stage, definition: Expr) -> lang.Stage:
        key = (stage.name, definition.digest, stage.storage, stage.staggered)
        result = lang.Stage(stage.name, definition, stage.storage, stage.staggered, stage.line)
        return self._resolved.setdefault(key, result)

    def reduce(self, like: Expr, operand: Expr, line: Line) -> Expr:
        kind, cell, place = like.attribute
        node = reduction(kind, operand, cell, place)
        name = self.sweep.reductions.get(node)
        if name is None:
            name = self.sweep.reductions[node] = self.fresh(like.attribute[0])
            self.sweep.origins[node] = line
        return scalar_node(name)

    # --- statements ---

    def statements(self, body: Sequence[lang.Statement]) -> None:
        """Add statements to the operations.

        Raises
        ------
        LostError
            A statement uses a value that was overwritten before it.
        """
        for statement in body:
            number, self.number = self.number, self.number + 1
            # a sweep can read scalars that are set before its first assignment
            begins = isinstance(statement, lang.Assign) and not self.sweep.roots()
            if begins or number in self.cuts or isinstance(statement, (lang.StopWhen, lang.Repeat)):
                self.end_sweep()
            if not isinstance(statement, lang.StopWhen):
                self.wait(statement)
            self.statement(number, statement)

    def wait(self, statement: lang.Statement) -> None:
        """End the sweep if a statement uses a value that exists only after the sweep."""
        for use in list(self.uses.of(statement)):
            verdict = self.progress.verdict(use)
            if verdict is Verdict.WAITS:
                self.end_sweep()  # at the beginning of a sweep, no verdict is WAITS
                return self.wait(statement)
            if verdict is Verdict.GONE:
                raise LostError(use, statement.line)
        return None

    def statement(self, number: int, statement: lang.Statement) -> None:
        if isinstance(statement, lang.Assign):
            self.first_assignment = number if self.first_assignment is None else self.first_assignment
            values = {f: self.of_cells(e) for f, e in statement.values.items()}
            self.sweep.sets |= values
            self.sweep.lines += statement.lines.values()
            for f in values:
                self.sweep.origins[f] = statement.lines[f]
                self.set(f, self.first_assignment)
        elif isinstance(statement, lang.AssignScalar):
            value = self.of_scalars(statement.expression, statement.line)
            if any(current.op == "reduce" for current in walk((statement.expression,))):
                self.sweep.lines.append(statement.line)
            self.after.append((statement.scalar.name, value))
            self.first_assignment = None
            self.set(statement.scalar.name, number)
        elif isinstance(statement, lang.StopWhen):
            self.operations.append(StopGraph(_current(statement.condition), statement.reason))
        else:
            self.repeat(statement)

    def set(self, key: Key, setter: int) -> None:
        self.setters[key] = setter
        self.progress.set(key)
        self._forget()

    def _forget(self) -> None:
        """Discard cached expressions, since an assignment changes their meaning."""
        self._stages.clear()
        self._formed.clear()

    def repeat(self, statement: lang.Repeat) -> None:
        limit = None
        if statement.limit is not None:
            limit = self.fresh("limit")
            self.after.append((limit, self.of_scalars(statement.limit, statement.line)))
            self.end_sweep()
        self.progress.enter_loop(lang.assigned(statement.body))
        outer, self.operations = self.operations, []
        self.statements(statement.body)
        self.end_sweep()
        body, self.operations = self.operations, outer
        if not body:
            raise InputError(f"{statement.line}: the loop has no statements")
        until = None if statement.until is None else _current(statement.until)
        if until is not None and limit is None:
            body += _undecided(until, statement.line)
        record = tuple(s.name for s in statement.record)
        passes = self.fresh("passes")
        self.operations.append(LoopGraph(until, limit, passes, record, body, statement.often))


def _current(condition: Expr) -> Expr:
    """Return a condition in terms of the values of scalars at the time of the test."""

    def leaf(current: Expr) -> Expr:
        return scalar_node(current.attribute[0]) if current.op == "scalar" else current

    for current in walk((condition,)):
        if current.op == "reduce":
            raise InputError(
                f"the condition {condition!r} contains a reduction. Assign the reduction to a scalar first."
            )
    return replace_leaves(condition, leaf)


def _undecided(until: Expr, line: Line) -> list[OperationGraph]:
    """Return the operation that ends the run with an error if a scalar in the loop condition is NaN.

    Without this operation, the loop would not end, since no comparison with NaN is true. The list is empty if
    the condition contains no scalars.
    """
    numbers = [scalar_node(name) for name in scalars_in([until])]
    if not numbers:
        return []
    any_nan = reduce(or_, (number != number for number in dict.fromkeys(numbers)))
    return [
        StopGraph(
            ~until & any_nan, f"{line}: the loop never ends, because a number in {until!r} is NaN", True
        )
    ]


def lower(program: lang.Program) -> list[OperationGraph]:
    """Return the operations of a program, with fused sweeps.

    Raises
    ------
    InputError
        The program has no statements, or a statement uses a value that was overwritten before.
    """
    walls, uses, cuts = Walls(program), Uses(), frozenset(program.cuts)
    while True:
        lowering = _Lowering(walls, uses, cuts)
        try:
            lowering.statements(program.statements)
            break
        except LostError as lost:
            # The statement may have waited for the end of a sweep that also overwrites the value. In this
            # case, a cut before the overwriting statement helps.
            setter = lowering.setters.get(lost.use.key)
            if setter is None or setter in cuts:
                raise InputError(str(lost)) from None
            cuts |= {setter}
    lowering.end_sweep()
    if not lowering.operations:
        raise InputError(f"program {program.name!r} has no statements and sets nothing")
    return lowering.operations


def sweeps(operations: list[OperationGraph]) -> list[SweepGraph]:
    """Return all sweeps, in the order of the program text."""
    result: list[SweepGraph] = []
    for operation in operations:
        if isinstance(operation, SweepGraph):
            result.append(operation)
        elif isinstance(operation, LoopGraph):
            result.extend(sweeps(operation.body))
    return result


def changing_scalars(operations: list[OperationGraph]) -> set[str]:
    """Return the scalars that operations set: by statements, by reductions, and as counters of loops."""
    result: set[str] = set()
    for operation in operations:
        if isinstance(operation, ScalarGraph):
            result.update(name for name, _ in operation.statements)
        elif isinstance(operation, SweepGraph):
            result.update(operation.reductions.values())
        elif isinstance(operation, LoopGraph):
            result |= {operation.count} | changing_scalars(operation.body)
    return result


def scalars_in(expressions: Iterable[Expr]) -> list[str]:
    """Return the scalars that expressions read, in order."""
    return [leaf.attribute[0] for leaf in walk(expressions) if leaf.op == "scalar"]


def with_waits(
    operations: list[OperationGraph], reads: Callable[[SweepGraph], set[str]]
) -> list[OperationGraph]:
    """Return the operations with a wait after each sweep with reductions, as late as possible.

    The wait precedes the first use of the results, another reduction, a loop, a stop statement, or the end of
    a loop body.

    Parameters
    ----------
    operations : list of OperationGraph
    reads : callable
        Returns the scalars that a sweep reads, in its kernels and at walls.
    """
    body = _Body()
    for operation in operations:
        if isinstance(operation, SweepGraph):
            if operation.reductions or body.pending & reads(operation):
                body.wait()
            body.operations.append(operation)
            body.pending |= set(operation.reductions.values())
        elif isinstance(operation, ScalarGraph):
            body.scalars(operation)
        else:
            body.wait()
            if isinstance(operation, LoopGraph):
                operation.body = with_waits(operation.body, reads)
            body.operations.append(operation)
    body.wait()
    return body.operations


@dataclass
class _Body:
    """Operations of a program or loop under construction, with waits."""

    operations: list[OperationGraph] = field(default_factory=list)
    pending: set[str] = field(default_factory=set)  # scalars whose value is available only after a wait
    deferred: list[tuple[str, Expr]] = field(default_factory=list)  # statements that must follow the wait
    deferred_reads: set[str] = field(default_factory=set)  # scalars that the deferred statements read

    def scalars(self, graph: ScalarGraph) -> None:
        """Append scalar statements, except for those that must follow the wait."""
        immediate = []
        for name, value in graph.statements:
            read = set(scalars_in([value]))
            if self.pending & read or name in self.pending or name in self.deferred_reads:
                self.deferred.append((name, value))
                self.pending.add(name)
                self.deferred_reads |= read
            else:
                immediate.append((name, value))
        if immediate:
            self.operations.append(ScalarGraph(immediate))

    def wait(self) -> None:
        """Append a wait if results are pending, and the statements that must follow it."""
        if self.pending:
            self.operations.append(AwaitGraph())
        if self.deferred:
            self.operations.append(ScalarGraph(self.deferred))
        self.pending, self.deferred, self.deferred_reads = set(), [], set()
