"""What travels when: which part of each field's halo is valid, and what must be exchanged or filled before a
sweep.

The rule that makes p of the conjugate gradients stay at home: a field that is assigned may be computed in
the halo too, where all that its expression reads there is needed by the sweep anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from halocline.compile.footprint import Footprint, Offset
from halocline.compile.lower import LoopGraph, OperationGraph, ScalarGraph, SweepGraph
from halocline.compile.nests import SweepNests
from halocline.errors import InputError
from halocline.lang.boundary import SIDES, Ghost
from halocline.lang.expression import Expr, walk
from halocline.lang.grid import Field, Grid

Offsets = frozenset[Offset]
NONE: Offsets = frozenset()


@dataclass(frozen=True)
class WallFill:
    """Ghost layers of one field at one wall that a sweep needs."""

    field: Field
    axis: int
    side: int
    depth: int
    corners: tuple[tuple[int, int], ...]


@dataclass
class SweepHalo:
    """What a sweep needs of halos, and what it leaves in them."""

    reads: dict[Field, Footprint] = field(default_factory=dict)
    exchange: dict[Field, Footprint] = field(default_factory=dict)
    fills: list[WallFill] = field(default_factory=list)
    extended: dict[Field, Footprint] = field(default_factory=dict)  # assigned fields computed in the halo too


@dataclass(frozen=True)
class _State:
    valid: dict[Field, Footprint]  # beyond sides with a neighbour
    filled: dict[Field, Footprint]  # beyond walls

    def meet(self, other: _State) -> _State:
        def common(a: dict[Field, Footprint], b: dict[Field, Footprint]) -> dict[Field, Footprint]:
            return {
                f: Footprint.of(
                    (d, tuple(map(min, w, dict(b[f].segments)[d])))
                    for d, w in a[f]
                    if d in dict(b[f].segments)
                )
                for f in a
                if f in b
            }

        return _State(common(self.valid, other.valid), common(self.filled, other.filled))


def shifted(offsets: Offsets, by: Offsets) -> Offsets:
    """All sums of two offsets."""
    return frozenset(tuple(a + b for a, b in zip(x, y, strict=True)) for x in offsets for y in by)


class HaloAnalysis:
    """Halo needs of every sweep of a program.

    Parameters
    ----------
    operations : list of OperationGraph
    nests : dict
        The nests of each sweep, by identity.
    """

    def __init__(self, operations: list[OperationGraph], nests: dict[int, SweepNests], grid: Grid) -> None:
        self.nests, self.grid = nests, grid
        self.needs: dict[
            int, dict[Field, Offsets]
        ] = {}  # after a sweep: how its fields are read before set again
        self._backward(operations, {})
        self.result: dict[int, SweepHalo] = {}
        self._forward(operations, _State({}, {}))

    # --- backward: what will be read of each field before it is assigned again ---

    def _backward(
        self, operations: list[OperationGraph], after: dict[Field, Offsets]
    ) -> dict[Field, Offsets]:
        for operation in reversed(operations):
            if isinstance(operation, SweepGraph):
                self.needs[id(operation)] = after
                before = {f: o for f, o in after.items() if f not in operation.sets}
                for f, offsets in self.nests[id(operation)].offsets.items():
                    before[f] = before.get(f, NONE) | offsets
                after = before
            elif isinstance(operation, LoopGraph):
                entry = after
                while True:
                    body = self._backward(operation.body, _union(after, entry))
                    if _union(entry, body) == entry:
                        break
                    entry = _union(entry, body)
                after = _union(after, entry)
        return after

    # --- forward: what is valid ---

    def _forward(self, operations: list[OperationGraph], state: _State) -> _State:
        for operation in operations:
            if isinstance(operation, SweepGraph):
                state = self._sweep(operation, state)
            elif isinstance(operation, ScalarGraph):
                changed = {name for name, _ in operation.statements}
                stale = {f for f in state.filled if changed & wall_scalars(f)}
                state = _State(state.valid, {f: v for f, v in state.filled.items() if f not in stale})
            elif isinstance(operation, LoopGraph):
                entry = state
                while True:
                    end = self._forward(operation.body, entry)
                    meet = entry.meet(end)
                    if meet == entry:
                        break
                    entry = meet
                state = entry
        return state

    def _sweep(self, sweep: SweepGraph, state: _State) -> _State:
        nests = self.nests[id(sweep)]
        halo = SweepHalo()
        reads = {f: Footprint.from_offsets(o) for f, o in nests.offsets.items()}
        halo.extended = self._extended(sweep, nests, reads)
        halo.reads = {f: p for f, p in reads.items() if p}
        valid, filled = dict(state.valid), dict(state.filled)
        for f, footprint in halo.reads.items():
            missing = footprint - valid.get(f, Footprint())  # the plan drops what lies beyond walls
            if missing:
                halo.exchange[f] = missing
                valid[f] = valid.get(f, Footprint()) | missing
            if self._walls(footprint) - filled.get(f, Footprint()):
                halo.fills += self._fills(f, footprint)
                filled[f] = filled.get(f, Footprint()) | footprint
        halo.fills.sort(key=lambda fill: fill.axis)
        for f in sweep.sets:
            valid[f] = halo.extended.get(f, Footprint())
            filled[f] = Footprint()
            # ghosts that a user's kernel computes from this field are stale too
            for other in list(filled):
                if f in wall_fields(other):
                    filled[other] = Footprint()
        self.result[id(sweep)] = halo
        return _State(valid, filled)

    def _extended(
        self, sweep: SweepGraph, nests: SweepNests, reads: dict[Field, Footprint]
    ) -> dict[Field, Footprint]:
        needed = self.needs[id(sweep)]
        extended = {}
        for f, expression in nests.inlined.items():
            reach = frozenset(o for o in needed.get(f, NONE) if any(o))
            if not reach:
                continue
            free = all(
                Footprint.from_offsets(shifted(frozenset({leaf.attribute[2]}), reach))
                <= reads.get(leaf.attribute[0], Footprint())
                for leaf in walk((expression,))
                if leaf.op == "read"
            )
            if free:
                extended[f] = Footprint.from_offsets(reach)
        return extended

    def _walls(self, footprint: Footprint) -> Footprint:
        """The segments of a footprint that may lie beyond a wall."""
        return Footprint(
            tuple(
                (d, w)
                for d, w in footprint
                if any(d[a] and not self.grid.periodic[a] for a in range(self.grid.ndim))
            )
        )

    def _fills(self, f: Field, footprint: Footprint) -> list[WallFill]:
        fills = []
        for axis in range(self.grid.ndim):
            if self.grid.periodic[axis]:
                continue
            for side in (-1, 1):
                depth = max((w[axis] for d, w in footprint if d[axis] == side), default=0)
                if not depth:
                    continue
                name = SIDES[2 * axis + (side > 0)]
                if name not in f.boundary:
                    raise InputError(
                        f"field {f.name!r} is read {depth} cell{'s' * (depth > 1)} beyond side {name!r}, "
                        "which has no boundary "
                        f"condition: give one (boundary={{'{name}': hc.Value(0)}} or so), or make axis "
                        f"{name[0]} periodic"
                    )
                corners = []
                for other in range(self.grid.ndim):
                    widths = [(d[other], w[other]) for d, w in footprint if d[axis] == side and other != axis]
                    corners.append(
                        (
                            max((w for s, w in widths if s < 0), default=0),
                            max((w for s, w in widths if s > 0), default=0),
                        )
                    )
                fills.append(WallFill(f, axis, side, depth, tuple(corners)))
        return fills


def _union(a: dict[Field, Offsets], b: dict[Field, Offsets]) -> dict[Field, Offsets]:
    return {f: a.get(f, NONE) | b.get(f, NONE) for f in (*a, *b)}


def ghosts(f: Field, axis: int, side: int, depth: int) -> list[Expr]:
    """The ghost values of a field at a wall, layer by layer outward."""
    condition = f.boundary[SIDES[2 * axis + (side > 0)]]
    return [condition.ghost(Ghost(f, axis, side, layer)) for layer in range(depth)]


def _leaves(f: Field) -> Iterable[Expr]:
    for side in f.boundary:
        axis = SIDES.index(side) // 2
        yield from walk(ghosts(f, axis, -1 if side.endswith("-") else 1, 1))


def wall_scalars(f: Field) -> set[str]:
    """The scalars that the boundary values of a field depend on."""
    return {leaf.attribute[0] for leaf in _leaves(f) if leaf.op == "scalar"}


def wall_fields(f: Field) -> set[Field]:
    """The other fields that the boundary values of a field depend on."""
    return {leaf.attribute[0] for leaf in _leaves(f) if leaf.op == "read"} - {f}
