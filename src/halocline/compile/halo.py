"""What travels when: which part of each field's halo is valid, and what must be exchanged or filled before a
sweep.

The rule that makes p of the conjugate gradients stay at home: a field that is assigned may be computed in
the halo too, where all that its expression reads there is needed by the sweep anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, product

from halocline.compile.footprint import Footprint, Offset
from halocline.compile.lower import LoopGraph, OperationGraph, ScalarGraph, SweepGraph
from halocline.compile.nests import Points, SweepNests, coordinates_in
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

    reads: dict[Field, Footprint] = field(default_factory=dict)  # beyond walls too
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
                nests = self.nests[id(operation)]
                for f in nests.reads:
                    before[f] = before.get(f, NONE) | nests.offsets(f)
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
        reads = {f: Footprint.from_offsets(nests.offsets(f)) for f in nests.reads}
        beyond = {f: _beyond(f, points) for f, points in nests.reads.items()}
        halo.extended = self._extended(sweep, nests, reads)
        self._along_walls(reads, beyond)
        halo.reads = {f: p | beyond[f] for f, p in reads.items() if p | beyond[f]}
        valid, filled = dict(state.valid), dict(state.filled)
        for f, footprint in reads.items():
            missing = footprint - valid.get(f, Footprint())  # the plan drops what lies beyond walls
            if missing:
                halo.exchange[f] = missing
                valid[f] = valid.get(f, Footprint()) | missing
            ghosts = self._walls(footprint | beyond[f])
            if ghosts - filled.get(f, Footprint()):
                halo.fills += self._fills(f, beyond[f], ghosts)
                filled[f] = filled.get(f, Footprint()) | ghosts
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
        """The assigned fields that are computed in the halo too, all over the same segments."""
        needed = self.needs[id(sweep)]
        able: dict[Field, Offsets] = {}
        sources: dict[Field, dict[Field, Offsets]] = {}
        for target, mine in nests.per_target:
            f = target.thing
            # beyond a periodic side coordinates go on, but the cells of the neighbour start again
            wraps = any(self.grid.periodic[axis] for axis in coordinates_in(target.expression))
            if isinstance(f, Field) and not wraps:
                able[f] = frozenset(o for o in needed.get(f, NONE) if any(o))
                sources[f] = mine
        able = {f: reach for f, reach in able.items() if reach}
        while able:
            reach = frozenset(chain.from_iterable(able.values()))
            free = {
                f: own
                for f, own in able.items()
                if all(Footprint.from_offsets(shifted(o, reach)) <= reads[g] for g, o in sources[f].items())
            }
            if free == able:
                return dict.fromkeys(able, Footprint.from_offsets(reach))
            able = free
        return {}

    def _along_walls(self, reads: dict[Field, Footprint], beyond: dict[Field, Footprint]) -> None:
        """Add what boundary conditions read of other fields where they reach into the halo along the wall."""
        for f in list(reads):
            others = wall_fields(f) if f.boundary else set()
            for fill in self._fills(f, beyond[f], self._walls(reads[f] | beyond[f])) if others else ():
                along = Footprint.from_offsets(
                    product(*(range(-lower, upper + 1) for lower, upper in fill.corners))
                )
                for other in others:
                    reads[other] = reads.get(other, Footprint()) | along
                    beyond[other] = beyond.get(other, Footprint()) | along

    def _walls(self, footprint: Footprint) -> Footprint:
        """The segments of a footprint that may lie beyond a wall."""
        return Footprint(
            tuple(
                (d, w)
                for d, w in footprint
                if any(d[a] and not self.grid.periodic[a] for a in range(self.grid.ndim))
            )
        )

    def _fills(self, f: Field, beyond: Footprint, ghosts: Footprint) -> list[WallFill]:
        """The fills of a field: as deep as it is read beyond walls, as wide along them as `ghosts` asks."""
        fills = []
        for axis in range(self.grid.ndim):
            if self.grid.periodic[axis]:
                continue
            for side in (-1, 1):
                depth = max((w[axis] for d, w in beyond if d[axis] == side), default=0)
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
                    widths = [(d[other], w[other]) for d, w in ghosts if d[axis] == side and other != axis]
                    corners.append(
                        (
                            max((w for s, w in widths if s < 0), default=0),
                            max((w for s, w in widths if s > 0), default=0),
                        )
                    )
                fills.append(WallFill(f, axis, side, depth, tuple(corners)))
        return fills


def _beyond(f: Field, points: Points) -> Footprint:
    """The ghost layers of a field that are read beyond walls.

    Points staggered along an axis are one more there: the last one reads a layer further into a field that
    has none more, and a field that has one more itself is left a layer later.
    """
    widths = []
    for offset, staggered in points:
        sides = [
            ((0, 0), (-1, -o)) if o < 0 else ((0, 0), (1, o + s - own)) if o + s > own else ((0, 0),)
            for o, s, own in zip(offset, staggered, f.staggered, strict=True)
        ]
        for choice in product(*sides):
            direction, width = zip(*choice, strict=True)
            if any(direction):
                widths.append((direction, width))
    return Footprint.of(widths)


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
