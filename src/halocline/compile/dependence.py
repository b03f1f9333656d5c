"""Reads of statements, and the order of sweeps that they require.

A statement joins the sweep before it unless it reads what would not be there yet: at another cell what the
sweep assigns, ghosts that follow it, or a scalar that is set after it. And a sweep ends before a statement
that overwrites what a later one, of another sweep, still reads as it was, and where the program is cut.
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

Place = tuple[bool, ...]  # the axes that points are staggered along


@dataclass(frozen=True)
class Use:
    """A value that a statement reads.

    Parameters
    ----------
    key : Field or str
    version : int
        See Program.version.
    beyond : bool
        Whether a neighbour's value or a ghost may be met: at another cell, or at points at upper walls that
        the field lacks.
    in_kernel : bool
        Whether it is read where cells are computed, not in a scalar statement.
    """

    key: Key
    version: int
    beyond: bool = False
    in_kernel: bool = True


def beyond(field: Field, offset: Offset, place: Place) -> bool:
    """See `Use.beyond`: of a read at the points of `place`."""
    return any(offset) or any(p and not own for p, own in zip(place, field.staggered, strict=False))


class Verdict(Enum):
    """What becomes of a use in the sweep under construction."""

    READS = "it reads the value from before the sweep"
    FORWARDS = "it reads what the sweep sets, at the cell itself"
    WAITS = "the sweep must end first"
    GONE = "the value was overwritten before"


class Progress(lang.Versions):
    """Versions of fields and scalars, and of their values before the sweep under construction.

    `before` has the versions of the value that a field or scalar had before the sweep, where the sweep sets
    it.
    """

    def __init__(self, walls: Walls) -> None:
        super().__init__()
        self.walls = walls
        self.before: dict[Key, range] = {}

    def end_sweep(self) -> None:
        """Begin another sweep."""
        self.before = {}

    def set(self, key: Key) -> None:
        """Note that a statement sets a field or scalar."""
        self.before.setdefault(key, range(self.since.get(key, 0), self.now(key) + 1))
        super().set(key)

    def verdict(self, use: Use) -> Verdict:
        """What becomes of a use."""
        present = self.is_present(use.key, use.version)
        if isinstance(use.key, str):
            if use.in_kernel and use.key in self.before:  # set after the sweep
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
        """Whether ghosts of a field depend on what the sweep sets, or on a scalar set after it."""
        return bool(self.before) and not self.before.keys().isdisjoint(self.walls.depend_on(field))


class Walls:
    """What ghosts depend on, as far out as a program may read them."""

    def __init__(self, program: lang.Program) -> None:
        self.layers = layers(program)
        self._known: dict[Field, frozenset[Key]] = {}

    def depend_on(self, field: Field) -> frozenset[Key]:
        """The fields and scalars that the ghosts of a field depend on, also through ghosts of others."""
        if field not in self._known:
            found, farther = self._reachable(field, self.layers)
            if farther:
                found, _ = self._reachable(field, self.layers + farther)
            self._known[field] = found
        return self._known[field]

    def _reachable(self, field: Field, layers: int) -> tuple[frozenset[Key], int]:
        """What `layers` of ghosts depend on, and how many more may be read: formulas that read along
        walls read deeper into ghosts of other axes, each at most once on the way."""
        found: set[Key] = set()
        farther = 0
        waiting = [field]
        while waiting:
            current = waiting.pop()
            for axis, side in product(range(field.grid.ndim), (-1, 1)):
                along = 0
                for leaf in walk(known_ghosts(current, axis, side, layers)):
                    if leaf.op == "scalar":
                        found.add(leaf.attribute[0])
                    elif leaf.op == "read":
                        other, _, offset = leaf.attribute
                        along = max(along, *(abs(o) * (n != axis) for n, o in enumerate(offset)))
                        if other not in found | {field}:
                            found.add(other)
                            waiting.append(other)
                farther += along
        return frozenset(found), farther


def layers(program: lang.Program) -> int:
    """As many layers of ghosts as any statement may read: along the longest way through stages of stages."""
    longest: dict[lang.Stage, int] = {}
    expressions = [e for statement in program.flat() for e in lang.expressions_of(statement)]

    def reach(root: Expr) -> int:
        found = 0
        for leaf in walk((root,)):
            if leaf.op == "read":
                found = max(found, *map(abs, leaf.attribute[-1]))
            elif leaf.op == "stage":
                stage, offset = leaf.attribute
                found = max(found, longest[stage] + max(map(abs, offset)))
        return found

    for stage in stages_below(expressions):
        longest[stage] = reach(stage.definition)
    return 1 + max(map(reach, expressions), default=0)  # points on faces read a layer further than cells


def stages_below(roots: Iterable[Expr]) -> list[lang.Stage]:
    """All stages that expressions are made of, each after those that it reads."""
    reads = cache(lambda stage: _read(stage.definition))
    return list(postorder((stage for root in roots for stage in _read(root)), reads))


def _read(root: Expr) -> list[lang.Stage]:
    return list(dict.fromkeys(leaf.attribute[0] for leaf in walk((root,)) if leaf.op == "stage"))


# -- what statements use -----------------------------------------------------------------------------


class Uses:
    """What statements use, in the order in which they evaluate it."""

    def __init__(self) -> None:
        self._stages: dict[lang.Stage, list[Use]] = {}

    def of(self, statement: lang.Statement) -> Iterator[Use]:
        """The uses of a statement."""
        if isinstance(statement, lang.Assign):
            for target, expression in statement.values.items():
                yield from self._in_kernel(expression, target.staggered)
            return
        for expression in lang.expressions_of(statement):
            if isinstance(statement, lang.Repeat) and expression.condition:
                continue  # which takes the values at its test
            memo: dict[Expr, Expr] = {}  # a number in the place of each reduction
            # the cells of a reduction see the sweep, whatever statement it stands in
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
                for use in inside:  # what the stage reads is read where the stage is
                    if isinstance(use.key, Field) and beyond(use.key, offset, place):
                        yield Use(use.key, use.version, beyond=True)

    def _of_stage(self, stage: lang.Stage) -> list[Use]:
        if stage not in self._stages:
            for inner in (*stages_below([stage.definition]), stage):
                if inner not in self._stages:
                    self._stages[inner] = list(dict.fromkeys(self._in_kernel(inner.definition, ())))
        return self._stages[stage]


class LostError(Exception):
    """A value that no longer exists where a statement uses it."""

    def __init__(self, use: Use, line: Line) -> None:
        what, name = ("scalar", use.key) if isinstance(use.key, str) else ("field", use.key.name)
        super().__init__(
            f"{line}: an expression uses the value that {what} {name!r} had before it was set again; keep "
            f"that value in another {what}, or form the expression after the set"
        )
        self.use = use
