"""Loop nests of a sweep: which stages are computed inline and which into patch scratch, and how far they
reach."""

from __future__ import annotations

from dataclasses import dataclass

from halocline.compile.footprint import Offset
from halocline.compile.lower import SweepGraph
from halocline.lang.expression import Expr, rebuild, shift, walk
from halocline.lang.grid import Field, Grid
from halocline.lang.program import Stage

# operations that a multiply-add pipeline does in one go; the others cost more
_EXPENSIVE = {"div": 4, "sqrt": 4, "exp": 20, "log": 20, "sin": 20, "cos": 20, "pow": 40}
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
    """One loop nest over a patch, extended by `extent` (lower, upper) per axis."""

    targets: tuple[Target, ...]
    staggered: tuple[bool, ...]
    extent: tuple[tuple[int, int], ...]
    cell: Offset | None = None  # only this global cell, for the reduction "value"


@dataclass(frozen=True)
class SweepNests:
    """A sweep as loop nests, in order, with everything it reads.

    `offsets` are, per field, the cells read for one cell of the sweep, through all stages; `direct` the same
    for each assigned field's own expression, `others` for everything but it.
    """

    nests: tuple[Nest, ...]
    offsets: dict[Field, frozenset[Offset]]
    per_target: tuple[tuple[Target, dict[Field, frozenset[Offset]]], ...]
    inlined: dict[Field, Expr]  # assigned fields, with every stage inline: for computing them in the halo


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
    from halocline.lang.expression import stage_read

    def leaf(node: Expr) -> Expr:
        if node.op == "stage":
            stage, offset = node.attribute
            by = replaced.get(stage)
            if isinstance(by, Expr):
                return shift(by, offset)
            if isinstance(by, Stage):
                return stage_read(by, offset)
        return node

    return rebuild(root, leaf)


def _add(a: frozenset[Offset], b: set[Offset]) -> set[Offset]:
    return {tuple(p + q for p, q in zip(x, y, strict=True)) for x in a for y in b}


def _hull(offsets: frozenset[Offset], ndim: int) -> tuple[tuple[int, int], ...]:
    return tuple(
        (max(0, *(-o[a] for o in offsets)), max(0, *(o[a] for o in offsets))) if offsets else (0, 0)
        for a in range(ndim)
    )


def build(sweep: SweepGraph, grid: Grid) -> SweepNests:
    """Choose the storage of each stage and lay out the nests of a sweep."""
    roots = sweep.roots()
    stages = _order(roots)
    reads: dict[Stage, set[Offset]] = {}
    for root in [*roots, *(s.definition for s in stages)]:
        for stage, at in _stage_reads(root).items():
            reads.setdefault(stage, set()).update(at)
    replaced: dict[Stage, Expr | Stage] = {}
    everywhere: dict[Stage, Expr | Stage] = {}
    kept: list[Stage] = []
    for stage in stages:
        definition = _substitute(stage.definition, replaced)
        everywhere[stage] = _substitute(stage.definition, everywhere)
        cheap = cost(definition) * (len(reads[stage]) - 1) <= _INLINE_COST
        if stage.storage == "inline" or (stage.storage == "auto" and cheap):
            replaced[stage] = definition
        else:
            made = Stage(stage.name, definition, stage.storage)
            replaced[stage] = made
            kept.append(made)

    zero = (0,) * grid.ndim
    targets = [Target("field", f, _substitute(e, replaced)) for f, e in sweep.sets.items()]
    targets += [Target("reduction", r, _substitute(r.args[0], replaced)) for r in sweep.reductions]
    needs: dict[Stage, frozenset[Offset]] = {}
    offsets: dict[Field, frozenset[Offset]] = {}

    def demand(root: Expr, at: frozenset[Offset], into: dict[Field, frozenset[Offset]]) -> None:
        for field, found in _field_reads(root).items():
            into[field] = into.get(field, frozenset()) | _add(at, found)

    for target in targets:
        demand(target.expression, frozenset({zero}), offsets)
        for stage, found in _stage_reads(target.expression).items():
            needs[stage] = needs.get(stage, frozenset()) | found
    for stage in reversed(kept):
        cells = needs.get(stage, frozenset())
        demand(stage.definition, cells, offsets)
        for inner, found in _stage_reads(stage.definition).items():
            needs[inner] = needs.get(inner, frozenset()) | _add(cells, found)

    per_target = []
    for target in targets:
        mine: dict[Field, frozenset[Offset]] = {}
        local: dict[Stage, frozenset[Offset]] = {
            s: frozenset(o) for s, o in _stage_reads(target.expression).items()
        }
        demand(target.expression, frozenset({zero}), mine)
        for stage in reversed(kept):
            if stage in local:
                demand(stage.definition, local[stage], mine)
                for inner, found in _stage_reads(stage.definition).items():
                    local[inner] = local.get(inner, frozenset()) | _add(local[stage], found)
        per_target.append((target, mine))

    nests = _stage_nests(kept, needs, _any_staggered(targets, grid), grid)
    nests += _target_nests(targets, grid)
    inlined = {f: _substitute(e, everywhere) for f, e in sweep.sets.items()}
    return SweepNests(tuple(nests), offsets, tuple(per_target), inlined)


def _stage_nests(
    kept: list[Stage], needs: dict[Stage, frozenset[Offset]], staggered: tuple[bool, ...], grid: Grid
) -> list[Nest]:
    levels: dict[Stage, int] = {}
    rooms: dict[tuple[int, tuple[tuple[int, int], ...]], list[Target]] = {}
    for stage in kept:
        levels[stage] = 1 + max((levels[s] for s in _stage_reads(stage.definition)), default=0)
        key = (levels[stage], _hull(needs.get(stage, frozenset()), grid.ndim))
        rooms.setdefault(key, []).append(Target("stage", stage, stage.definition))
    return [Nest(tuple(rooms[key]), staggered, key[1]) for key in sorted(rooms)]


def _staggering(target: Target, grid: Grid) -> tuple[bool, ...]:
    if isinstance(target.thing, Field):
        return target.thing.staggered
    found = {f.staggered for f in _field_reads(target.expression)}
    return found.pop() if len(found) == 1 else (False,) * grid.ndim


def _any_staggered(targets: list[Target], grid: Grid) -> tuple[bool, ...]:
    each = [_staggering(t, grid) for t in targets]
    return tuple(any(s[a] for s in each) for a in range(grid.ndim))


def _target_nests(targets: list[Target], grid: Grid) -> list[Nest]:
    rooms: dict[tuple[tuple[bool, ...], Offset | None], list[Target]] = {}
    for target in targets:
        cell = target.thing.attribute[1] if isinstance(target.thing, Expr) else None
        rooms.setdefault((_staggering(target, grid), cell), []).append(target)
    none = ((0, 0),) * grid.ndim
    # single cells first: they must see the values from before the sweep writes its fields
    return [
        Nest(tuple(r), s, none, c) for (s, c), r in sorted(rooms.items(), key=lambda item: item[0][1] is None)
    ]
