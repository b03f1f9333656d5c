"""Loop nests of a sweep: which stages are computed inline and which into patch scratch, and how far they
reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from halocline.compile.contract import contract
from halocline.compile.footprint import Offset
from halocline.compile.lower import SweepGraph
from halocline.lang.expression import Expr, replace_leaves, shift, stage_read, walk
from halocline.lang.grid import Field, Grid
from halocline.lang.program import Stage

# Where values are needed: offsets, each from the points of a target, which has one more of them at the upper
# walls of the axes that it is staggered along.
Points = frozenset[tuple[Offset, tuple[bool, ...]]]

# operations that a multiply-add pipeline does in one go; the others cost more
_EXPENSIVE = {
    "cast": 0, "div": 4, "sqrt": 4, "exp": 20, "log": 20, "sin": 20, "cos": 20, "pow": 40, "lookup": 4,
    "random": 80,
}  # fmt: skip
# Targets that one loop may compute where they share no array. A sum takes four vector registers, of which
# there are 16 or 32: a loop over many sums spills them, and the time to compile it grows as their square.
# Measured: docs/performance.md.
MOST = 8
# Reductions that share arrays are computed in one loop up to this many: every other loop reads them again.
MOST_SHARING = 32
# recomputing a stage at every read is free up to this many operations a cell: a load costs as much
_INLINE_COST = 8


@dataclass(frozen=True)
class Target:
    """Where a nest puts a value: a field, the scratch array of a stage, or a reduction."""

    kind: str  # "field", "stage", "reduction"
    thing: Field | Stage | Expr
    expression: Expr


@dataclass(frozen=True)
class Nest:
    """One loop nest over a patch, extended by `extent` (lower, upper) per axis, and by `top` more points
    where the patch ends at an upper wall."""

    targets: tuple[Target, ...]
    top: tuple[int, ...]
    extent: tuple[tuple[int, int], ...]
    cell: Offset | None = None  # only this global cell, for the reduction "value"


@dataclass(frozen=True)
class SweepNests:
    """A sweep as loop nests, in order, with everything it reads.

    `reads` are, per field, the points read for one point of the sweep, through all stages; `per_target` the
    offsets of each target alone.
    """

    nests: tuple[Nest, ...]
    reads: dict[Field, Points]
    per_target: tuple[tuple[Target, dict[Field, frozenset[Offset]]], ...]

    def offsets(self, field: Field) -> frozenset[Offset]:
        """Where a field is read around a point of the sweep."""
        return frozenset(offset for offset, _ in self.reads.get(field, ()))


def cost(root: Expr) -> int:
    """Arithmetic of an expression in units of one simple operation."""
    total = 0
    for node in walk((root,)):
        if node.args and node.varies:
            total += _EXPENSIVE.get(node.op, 1)
    return total


def _stage_reads(root: Expr) -> dict[Stage, set[Offset]]:
    found: dict[Stage, set[Offset]] = {}
    for node in walk((root,)):
        if node.op == "stage":
            found.setdefault(node.attribute[0], set()).add(node.attribute[1])
    return found


def _field_reads(root: Expr) -> dict[Field, set[Offset]]:
    found: dict[Field, set[Offset]] = {}
    for node in walk((root,)):
        if node.op == "read":
            found.setdefault(node.attribute[0], set()).add(node.attribute[2])
    return found


def _order(roots: list[Expr]) -> list[Stage]:
    """Stages below the roots, definitions before uses."""
    ordered: list[Stage] = []
    seen: set[int] = set()

    def visit(root: Expr) -> None:
        for stage in _stage_reads(root):
            if id(stage) not in seen:
                seen.add(id(stage))
                visit(stage.definition)
                ordered.append(stage)

    for root in roots:
        visit(root)
    return ordered


def _substitute(root: Expr, replaced: dict[Stage, Expr | Stage]) -> Expr:
    def leaf(node: Expr) -> Expr:
        if node.op == "stage":
            stage, offset = node.attribute
            by = replaced.get(stage)
            if isinstance(by, Expr):
                return shift(by, offset)
            if isinstance(by, Stage):
                return stage_read(by, offset)
        return node

    return replace_leaves(root, leaf)


def inline(root: Expr, memo: dict[Stage, Expr] | None = None) -> Expr:
    """The expression with the definition of every stage in its place: for computing it in the halo."""
    known: dict[Stage, Expr] = {} if memo is None else memo

    def leaf(node: Expr) -> Expr:
        if node.op != "stage":
            return node
        stage, offset = node.attribute
        if stage not in known:
            known[stage] = inline(stage.definition, known)
        return shift(known[stage], offset)

    return replace_leaves(root, leaf)


def _demand(
    root: Expr, at: set[Offset], fields: dict[Field, set[Offset]], stages: dict[Stage, set[Offset]]
) -> None:
    """Add what an expression reads when it is evaluated at some offsets."""
    for field, found in _field_reads(root).items():
        fields.setdefault(field, set()).update(_add(at, found))
    for stage, found in _stage_reads(root).items():
        stages.setdefault(stage, set()).update(_add(at, found))


def _add(a: set[Offset], b: set[Offset]) -> set[Offset]:
    return {tuple(p + q for p, q in zip(x, y, strict=True)) for x in a for y in b}


def _extent(points: Points, ndim: int) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """The layers (lower, upper) of each axis that hold all points, and how many more at an upper wall.

    No layer more: a stage reads fields that have halo for just these.
    """
    lower = [max(-o[a] for o, _ in points) for a in range(ndim)]
    upper = [max(o[a] for o, _ in points) for a in range(ndim)]
    top = [max(o[a] + s[a] for o, s in points) - upper[a] for a in range(ndim)]
    return tuple(zip(lower, upper, strict=True)), tuple(top)


def build(sweep: SweepGraph, grid: Grid) -> SweepNests:
    """Choose the storage of each stage and lay out the nests of a sweep.

    Multiply-adds are chosen here, before stages are put inline, so that a value has the same bits wherever it
    is computed: in scratch, inline, or in the halo.
    """
    roots = sweep.roots()
    ordered = _order(roots)
    contracted = contract([*roots, *(s.definition for s in ordered)])
    roots, definitions = contracted[: len(roots)], contracted[len(roots) :]
    inlined = _inlined(roots, dict(zip(ordered, definitions, strict=True)), grid)
    replaced: dict[Stage, Expr | Stage] = {}
    kept: list[Stage] = []
    for stage, definition in zip(ordered, definitions, strict=True):
        definition = _substitute(definition, replaced)
        if stage in inlined:
            replaced[stage] = definition
        else:
            made = replaced[stage] = Stage(stage.name, definition, stage.storage)
            kept.append(made)

    things = [("field", f) for f in sweep.sets] + [("reduction", r) for r in sweep.reductions]
    targets = [
        Target(kind, thing, _substitute(root, replaced))
        for (kind, thing), root in zip(things, roots, strict=True)
    ]
    needs: dict[Stage, Points] = {}
    reads: dict[Field, Points] = {}
    per_target, places = [], []
    for target in targets:
        fields: dict[Field, set[Offset]] = {}
        stages: dict[Stage, set[Offset]] = {}
        _demand(target.expression, {(0,) * grid.ndim}, fields, stages)
        for stage in reversed(kept):
            if stage in stages:
                _demand(stage.definition, stages[stage], fields, stages)
        place = _place(target)
        for f, offsets in fields.items():
            reads[f] = reads.get(f, frozenset()) | {(o, place) for o in offsets}
        for stage, offsets in stages.items():
            needs[stage] = needs.get(stage, frozenset()) | {(o, place) for o in offsets}
        per_target.append((target, {f: frozenset(offsets) for f, offsets in fields.items()}))
        places.append(place)

    nests = [*_stage_nests(kept, needs, grid), *_target_nests(targets, places, grid)]
    return SweepNests(tuple(nests), reads, tuple(per_target))


def _inlined(roots: list[Expr], definitions: dict[Stage, Expr], grid: Grid) -> set[Stage]:
    """The stages that are computed anew at each read: those the user wants so, and cheap ones.

    Uses come before definitions: a stage that an inline stage reads is evaluated wherever that one is.
    """
    inlined: set[Stage] = set()
    wanted: dict[Stage, set[Offset]] = {}
    here = {(0,) * grid.ndim}
    for root in roots:
        _demand(root, here, {}, wanted)
    for stage, definition in reversed(definitions.items()):
        cheap = cost(definition) * (len(wanted[stage]) - 1) <= _INLINE_COST
        if stage.storage == "inline" or (stage.storage == "auto" and cheap):
            inlined.add(stage)
        _demand(definition, wanted[stage] if stage in inlined else here, {}, wanted)
    return inlined


def _stage_nests(kept: list[Stage], needs: dict[Stage, Points], grid: Grid) -> list[Nest]:
    """Stages of one depth and extent share a nest."""
    levels: dict[Stage, int] = {}
    rooms: dict[tuple[int, Any], list[Target]] = {}
    for stage in kept:
        levels[stage] = 1 + max((levels[s] for s in _stage_reads(stage.definition)), default=0)
        key = (levels[stage], _extent(needs[stage], grid.ndim))
        rooms.setdefault(key, []).append(Target("stage", stage, stage.definition))
    return [Nest(tuple(rooms[level, (extent, top)]), top, extent) for level, (extent, top) in sorted(rooms)]


def _place(target: Target) -> tuple[bool, ...]:
    """The axes that the points of a target are staggered along."""
    if isinstance(target.thing, Field):
        return target.thing.staggered
    assert isinstance(target.thing, Expr)
    place: tuple[bool, ...] = target.thing.attribute[2]
    return place


def _target_nests(targets: list[Target], places: list[tuple[bool, ...]], grid: Grid) -> list[Nest]:
    rooms: dict[tuple[tuple[bool, ...], Offset | None], list[Target]] = {}
    for target, place in zip(targets, places, strict=True):
        cell = target.thing.attribute[1] if isinstance(target.thing, Expr) else None
        rooms.setdefault((place, cell), []).append(target)
    none = ((0, 0),) * grid.ndim
    # single cells first: they must see the values from before the sweep writes its fields
    return [
        Nest(tuple(loop), tuple(map(int, place)), none, cell)
        for (place, cell), room in sorted(rooms.items(), key=lambda item: item[0][1] is None)
        for loop in _loops(room)
    ]


def _loops(targets: list[Target]) -> list[list[Target]]:
    """Targets of the same points, loop by loop: those that share arrays stay together, others are up to MOST.

    More than MOST_SHARING reductions that share arrays have loops of their own, which come first: they must
    see the values from before the sweep writes its fields.
    """
    loops: list[list[Target]] = []
    alone: list[list[Target]] = []
    for group in _sharing(targets):
        reductions = [target for target in group if target.kind == "reduction"]
        if len(reductions) > MOST_SHARING:
            alone += [reductions[n : n + MOST] for n in range(0, len(reductions), MOST)]
            group = [target for target in group if target.kind != "reduction"]
        if loops and len(loops[-1]) + len(group) <= MOST:
            loops[-1] += group
        elif group:
            loops.append(group)
    return alone + loops


def _sharing(targets: list[Target]) -> list[list[Target]]:
    """Targets in groups, of which none reads or sets an array of another."""
    above = list(range(len(targets)))  # of each target another of its group, or itself
    first: dict[Any, int] = {}  # the first target of each array

    def top(number: int) -> int:
        while above[number] != number:
            above[number] = above[above[number]]
            number = above[number]
        return number

    for number, target in enumerate(targets):
        arrays = [leaf.attribute[0] for leaf in walk((target.expression,)) if leaf.op in ("read", "stage")]
        if isinstance(target.thing, Field):
            arrays.append(target.thing)
        for array in arrays:
            above[top(number)] = top(first.setdefault(array, number))
    groups: dict[int, list[Target]] = {}
    for number, target in enumerate(targets):
        groups.setdefault(top(number), []).append(target)
    return list(groups.values())


def functions(nests: Sequence[Nest]) -> list[Sequence[Nest]]:
    """The nests, in order, function by function: a compiler takes longer for a large one than for its parts.
    What makes or reads scratch memory stays together.
    """

    def staged(nest: Nest) -> bool:
        return any(t.kind == "stage" or _stage_reads(t.expression) for t in nest.targets)

    together = max((number for number, nest in enumerate(nests, 1) if staged(nest)), default=1)
    return [nests[:together], *((nest,) for nest in nests[together:])]
