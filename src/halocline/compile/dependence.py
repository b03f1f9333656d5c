"""Reads of statements, and the sweep boundaries that they require.

A statement joins the preceding sweep unless it reads a value that exists only after this sweep. Three kinds
of values exist only after a sweep. The first are values at other cells of a field that the sweep assigns. The
second are ghosts that depend on the sweep. The third are scalars that are set after the sweep. A sweep also
ends at a cut of the program (`Program.cuts`), and before a statement that overwrites a value that a later
sweep still reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import product

from halocline.compile.footprint import Offset
from halocline.lang import program as lang
from halocline.lang.boundary import known_ghosts
from halocline.lang.expression import Expr, constant, postorder, replace_leaves, walk
from halocline.lang.grid import Field
from halocline.lang.origin import Line
from halocline.lang.program import Key

Place = tuple[bool, ...]  # True for each axis along which the points are staggered


@dataclass(frozen=True)
class Use:
    """Value that a statement reads.

    Parameters
    ----------
    key : Field or str
    version : int
        See Program.version.
    beyond : bool
        True if the read may return the value of another cell or of a ghost. This is the case if the offset is
        not zero. It is also the case if the reading points are staggered along an axis and the field is not:
        the field then has no point at the upper wall.
    in_kernel : bool
        True if a kernel reads the value for each cell, False if a scalar statement reads it.
    """

    key: Key
    version: int
    beyond: bool = False
    in_kernel: bool = True


def beyond(field: Field, offset: Offset, place: Place) -> bool:
    """Return True if a read at the points of `place` may return a value of another point; see `Use`."""
    return any(offset) or any(p and not f for p, f in zip(place, field.staggered, strict=False))


class Verdict(Enum):
    """Effect of a use on the sweep under construction."""

    READS = "it reads the value that the field has before the sweep"
    FORWARDS = "it reads a result of the sweep at the same cell"
    WAITS = "the sweep must end first"
    GONE = "the value was overwritten before"


class Progress(lang.Versions):
    """Current versions of fields and scalars, and their versions before the sweep under construction.

    For each field and scalar that the sweep sets, `before` contains the versions whose value is the value
    before the sweep.
    """

    def __init__(self, walls: Walls) -> None:
        super().__init__()
        self.walls = walls
        self.before: dict[Key, range] = {}

    def end_sweep(self) -> None:
        """Begin another sweep."""
        self.before = {}

    def set(self, key: Key) -> None:
        """Record that a statement sets a field or scalar."""
        self.before.setdefault(key, range(self.since.get(key, 0), self.current(key) + 1))
        super().set(key)

    def verdict(self, use: Use) -> Verdict:
        """Return the effect of a use on the sweep under construction."""
        present = self.is_current(use.key, use.version)
        if isinstance(use.key, str):
            if use.in_kernel and use.key in self.before:  # scalars are set after the sweep
                if present:
                    return Verdict.WAITS
                if use.version in self.before[use.key]:
                    return Verdict.READS
            return Verdict.READS if present else Verdict.GONE
        if present and use.key in self.before:
            return Verdict.WAITS if use.beyond else Verdict.FORWARDS
        if not present and use.version not in self.before.get(use.key, ()):
            return Verdict.GONE
        return Verdict.WAITS if use.beyond and self.walls_follow(use.key) else Verdict.READS

    def walls_follow(self, field: Field) -> bool:
        """Return True if ghosts of a field depend on the sweep, or on a scalar that is set after it."""
        return bool(self.before) and not self.before.keys().isdisjoint(self.walls.depend_on(field))


class Walls:
    """Fields and scalars on which ghosts depend, for all ghost layers that a program may read."""

    def __init__(self, program: lang.Program) -> None:
        self.layers = layers(program)
        self._known: dict[Field, frozenset[Key]] = {}

    def depend_on(self, field: Field) -> frozenset[Key]:
        """Return the fields and scalars on which the ghosts of a field depend, also indirectly."""
        if field not in self._known:
            keys, farther = self._reachable(field, self.layers)
            if farther:
                keys, _ = self._reachable(field, self.layers + farther)
            self._known[field] = keys
        return self._known[field]

    def _reachable(self, field: Field, layers: int) -> tuple[frozenset[Key], int]:
        """Return the dependencies of `layers` ghost layers, and the number of deeper layers to include.

        A formula that reads along its wall may read deeper ghosts beyond the walls of other axes. Each
        formula contributes at most once.
        """
        keys: set[Key] = set()
        farther = 0
        waiting = [field]
        while waiting:
            current = waiting.pop()
            for axis, side in product(range(field.grid.ndim), (-1, 1)):
                along = 0
                for leaf in walk(known_ghosts(current, axis, side, layers)):
                    if leaf.op == "scalar":
                        keys.add(leaf.attribute[0])
                    elif leaf.op == "read":
                        other, _, offset = leaf.attribute
                        along = max(along, *(abs(o) * (n != axis) for n, o in enumerate(offset)))
                        if other not in keys | {field}:
                            keys.add(other)
                            waiting.append(other)
                farther += along
        return frozenset(keys), farther


def layers(program: lang.Program) -> int:
    """Return the maximum number of ghost layers that a statement may read, through all nested stages."""
    longest: dict[lang.Stage, int] = {}
    expressions = [e for statement in program.all_statements() for e in lang.expressions_of(statement)]

    def reach(root: Expr) -> int:
        distance = 0
        for leaf in walk((root,)):
            if leaf.op == "read":
                distance = max(distance, *map(abs, leaf.attribute[-1]))
            elif leaf.op == "stage":
                stage, offset = leaf.attribute
                distance = max(distance, longest[stage] + max(map(abs, offset)))
        return distance

    for stage in stages_below(expressions):
        longest[stage] = reach(stage.definition)
    return 1 + max(map(reach, expressions), default=0)  # a point on a face reads one layer more than a cell


def stages_below(roots: Iterable[Expr]) -> list[lang.Stage]:
    """Return all stages on which expressions depend, each after the stages that it reads."""
    reads = cache(lambda stage: _read(stage.definition))
    return list(postorder((stage for root in roots for stage in _read(root)), reads))


def _read(root: Expr) -> list[lang.Stage]:
    return list(dict.fromkeys(leaf.attribute[0] for leaf in walk((root,)) if leaf.op == "stage"))


# -- uses of statements ------------------------------------------------------------------------------


class Uses:
    """Uses of statements, in the order of evaluation."""

    def __init__(self) -> None:
        self._stages: dict[lang.Stage, list[Use]] = {}

    def of(self, statement: lang.Statement) -> Iterator[Use]:
        """Yield the uses of a statement."""
        if isinstance(statement, lang.Assign):
            for target, expression in statement.values.items():
                yield from self._in_kernel(expression, target.staggered)
            return
        for expression in lang.expressions_of(statement):
            if isinstance(statement, lang.Repeat) and expression.condition:
                continue  # a conditional statement uses the values at the time of its test.
            memo: dict[Expr, Expr] = {}  # a constant replaces each reduction.
            # A kernel evaluates the operand of a reduction, also in a scalar statement.
            for current in walk((expression,)):
                if current.op == "reduce":
                    yield from self._in_kernel(current.args[0], current.attribute[2])
                    memo[current] = constant(0.0)
            for leaf in walk((replace_leaves(expression, lambda leaf: leaf, memo),)):
                if leaf.op == "scalar":
                    name, version = leaf.attribute
                    yield Use(name, version, in_kernel=False)

    def _in_kernel(self, root: Expr, place: Place) -> Iterator[Use]:
        for leaf in walk((root,)):
            if leaf.op == "scalar":
                yield Use(*leaf.attribute)
            elif leaf.op == "read":
                target, version, offset = leaf.attribute
                yield Use(target, version, beyond(target, offset, place))
            elif leaf.op == "stage":
                stage, offset = leaf.attribute
                inside = self._of_stage(stage)
                yield from inside
                for use in inside:  # the offset of the stage shifts its reads
                    if isinstance(use.key, Field) and beyond(use.key, offset, place):
                        yield Use(use.key, use.version, beyond=True)

    def _of_stage(self, stage: lang.Stage) -> list[Use]:
        if stage not in self._stages:
            for inner in (*stages_below([stage.definition]), stage):
                if inner not in self._stages:
                    self._stages[inner] = list(dict.fromkeys(self._in_kernel(inner.definition, ())))
        return self._stages[stage]


class LostError(Exception):
    """Use of a value that no longer exists."""

    def __init__(self, use: Use, line: Line) -> None:
        kind, name = ("scalar", use.key) if isinstance(use.key, str) else ("field", use.key.name)
        super().__init__(
            f"{line}: an expression uses the value that {kind} {name!r} had before it was set again. Store "
            f"that value in another {kind}, or create the expression after {kind} {name!r} is set."
        )
        self.use = use
