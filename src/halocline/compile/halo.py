"""What travels when: which part of each field's halo is valid, and what must be exchanged or filled before a
sweep.

The rule that makes p of the conjugate gradients stay at home: a field that is assigned may be computed in
the halo too, where all that its expression reads there is needed by the sweep anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain, product

from halocline.compile.footprint import Footprint, Offset
from halocline.compile.lower import LoopGraph, OperationGraph, ScalarGraph, SweepGraph
from halocline.compile.passes.reach import Points
from halocline.compile.sweep import SweepNests
from halocline.errors import InputError
from halocline.lang.boundary import SIDES, Ghost
from halocline.lang.expression import Expr, walk
from halocline.lang.grid import AXES, Field, Grid

Offsets = frozenset[Offset]
NONE: Offsets = frozenset()
HALOS = ("read", "uniform")  # see `make_uniform`
WALL = 2  # see HaloAnalysis._around


@dataclass(frozen=True)
class WallFill:
    """Ghost layers of one field at one wall that a sweep needs."""

    field: Field
    axis: int
    side: int
    depth: int
    corners: tuple[tuple[int, int], ...]

    @property
    def name(self) -> str:
        """Of the side: "x-", "x+", ..."""
        return SIDES[2 * self.axis + (self.side > 0)]

    @property
    def ghosts(self) -> list[Expr]:
        """The ghost values, layer by layer outward."""
        condition = self.field.boundary[self.name]
        return [
            condition.ghost(Ghost(self.field, self.axis, self.side, layer)) for layer in range(self.depth)
        ]


@dataclass
class SweepHalo:
    """What a sweep needs of halos, and what it leaves in them."""

    reads: dict[Field, Footprint] = field(default_factory=dict)  # beyond walls too
    exchange: dict[Field, Footprint] = field(default_factory=dict)
    fills: list[WallFill] = field(default_factory=list)
    extended: dict[Field, Footprint] = field(default_factory=dict)  # assigned fields computed in the halo too

    def ghosts(self) -> list[Expr]:
        """Every ghost value that is formed before the sweep."""
        return [ghost for fill in self.fills for ghost in fill.ghosts]


@dataclass(frozen=True)
class _State:
    valid: dict[Field, Footprint]  # beyond sides with a neighbour
    filled: dict[Field, Footprint]  # beyond walls, as `HaloAnalysis._around` counts

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


def _within(offsets: Offsets, by: Offsets, layers: Sequence[tuple[int, int]]) -> bool:
    """Whether all sums of two offsets lie in a box: at once, where there are millions of them."""
    return all(
        -lower <= min(one) + min(two) and max(one) + max(two) <= upper
        for one, two, (lower, upper) in zip(
            zip(*offsets, strict=True), zip(*by, strict=True), layers, strict=True
        )
    )


class HaloAnalysis:
    """Halo needs of every sweep of a program.

    Parameters
    ----------
    operations : list of OperationGraph
    nests : dict
        The nests of each sweep.
    """

    def __init__(
        self, operations: list[OperationGraph], nests: dict[SweepGraph, SweepNests], grid: Grid
    ) -> None:
        self.nests, self.grid = nests, grid
        # what the ghosts of a field depend on
        self.wall_fields: dict[Field, set[Field]] = {}
        self.wall_scalars: dict[Field, set[str]] = {}
        self.points = {sweep: self._with_walls(n.reads) for sweep, n in nests.items()}
        # after a sweep: how its fields are read before they are set again
        self.needs: dict[SweepGraph, dict[Field, Offsets]] = {}
        self._backward(operations, {})
        self.result: dict[SweepGraph, SweepHalo] = {}
        self._forward(operations, _State({}, {}))

    # --- backward: what will be read of each field before it is assigned again ---

    def _backward(
        self, operations: list[OperationGraph], after: dict[Field, Offsets]
    ) -> dict[Field, Offsets]:
        for operation in reversed(operations):
            if isinstance(operation, SweepGraph):
                self.needs[operation] = after
                before = {f: o for f, o in after.items() if f not in operation.sets}
                nests = self.nests[operation]
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
                stale = {f for f in state.filled if changed & self.wall_scalars.get(f, set())}
                stale = self._stale(stale, state.filled)
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
        points = self.points[sweep]
        reads = {f: Footprint.from_offsets(o for o, _ in p) for f, p in points.items()}
        around = {f: self._around(f, p) for f, p in points.items()}
        halo = SweepHalo(reads={f: _either(p) for f, p in around.items() if p})
        halo.extended = self._extended(sweep, reads, around)
        valid, filled = dict(state.valid), dict(state.filled)
        for f, footprint in reads.items():
            have = valid.get(f, Footprint())
            missing = {d for d, _ in footprint - have}  # the plan drops what lies beyond walls
            if missing:
                # whole segments: what was valid of one and what is missing need not make up a box
                valid[f] = have | footprint
                halo.exchange[f] = Footprint(tuple((d, w) for d, w in valid[f] if d in missing))
            ghosts = _walls(around[f])
            # those at corners stay right when more of the halo comes: what they were formed of was valid
            if ghosts - filled.get(f, Footprint()):
                halo.fills += self._fills(f, ghosts)
                filled[f] = ghosts
        halo.fills.sort(key=lambda fill: fill.axis)
        for f in sweep.sets:
            valid[f] = halo.extended.get(f, Footprint())
        for f in self._stale(set(sweep.sets), filled):
            filled[f] = Footprint()
        self.result[sweep] = halo
        if self.grid.blocks is not None:
            # beside inactive blocks only those are formed that this sweep reads, far along a wall too
            filled = {}
        return _State(valid, filled)

    def _stale(self, changed: set[Field], filled: dict[Field, Footprint]) -> set[Field]:
        """The fields whose ghosts depend on fields that have changed, also through ghosts of others."""
        stale = changed
        while True:
            more = stale | {f for f in filled if stale & self.wall_fields.get(f, set())}
            if more == stale:
                return stale
            stale = more

    def _extended(
        self, sweep: SweepGraph, reads: dict[Field, Footprint], around: dict[Field, Footprint]
    ) -> dict[Field, Footprint]:
        """The assigned fields that are computed in the halo too, all over the same segments."""
        if self.grid.blocks is not None:  # inactive cells stay zero, whatever the expression gives there
            return {}
        needed = self.needs[sweep]
        able: dict[Field, Offsets] = {}
        sources: dict[Field, dict[Field, Offsets]] = {}
        for f, mine in self.nests[sweep].per_field.items():
            able[f] = frozenset(o for o in needed.get(f, NONE) if any(o))
            sources[f] = mine
        able = {f: reach for f, reach in able.items() if reach}

        def free(f: Field, reach: Offsets) -> bool:
            """Whether the sweep has all that `f` takes at these offsets."""
            for g, offsets in sources[f].items():
                if not _within(offsets, reach, reads[g].layers(self.grid.ndim)):
                    return False
                there = frozenset((o, f.staggered) for o in shifted(offsets, reach))
                if not self._around(g, there) <= around[g]:
                    return False
            return True

        while able:
            reach = frozenset(chain.from_iterable(able.values()))
            left = {f: own for f, own in able.items() if free(f, reach)}
            if left == able:
                return dict.fromkeys(able, Footprint.from_offsets(reach))
            able = left
        return {}

    def _with_walls(self, reads: dict[Field, Points]) -> dict[Field, Points]:
        """What a sweep reads, and what boundary conditions read of other fields along their wall: in the
        halo, and in ghosts of lower axes."""
        points = dict(reads)
        while True:
            found = dict(points)
            for f in points:
                for fill in self._fills(f, self._around(f, points[f])):
                    along = [*product(*(range(-lower, upper + 1) for lower, upper in fill.corners))]
                    for other in self._depends(fill):
                        _check_points(fill, other)
                        # across the wall it reads inward
                        place = tuple(
                            (other if axis == fill.axis else f).staggered[axis]
                            for axis in range(self.grid.ndim)
                        )
                        found[other] = found.get(other, frozenset()) | {(o, place) for o in along}
            if found == points:
                return points
            points = found

    def _fills(self, f: Field, around: Footprint) -> list[WallFill]:
        """The fills of a field: as deep as it is read beyond walls, and as wide along them."""
        fills = []
        for axis, side in product(range(self.grid.ndim), (-1, 1)):
            beyond = [(d, w) for d, w in around if d[axis] == WALL * side]
            if not beyond:
                continue
            depth = max(w[axis] for _, w in beyond)
            name = SIDES[2 * axis + (side > 0)]
            if name not in f.boundary:
                raise InputError(
                    f"field {f.name!r} is read {depth} cell{'s' * (depth > 1)} beyond side {name!r}, "
                    "which has no boundary condition: give one "
                    f"(boundary={{'{name}': hc.Value(0)}} or so), or make axis {name[0]} periodic"
                )
            along = [(0, 0)] * self.grid.ndim
            for other in range(self.grid.ndim):
                if other != axis:
                    lower = max((w[other] for d, w in beyond if d[other] < 0), default=0)
                    upper = max((w[other] for d, w in beyond if d[other] > 0), default=0)
                    along[other] = lower, upper
            fills.append(WallFill(f, axis, side, depth, tuple(along)))
        return fills

    def _around(self, f: Field, points: Points) -> Footprint:
        """The layers of a field that are read around a subdomain: beyond a neighbour in directions of -1 and
        1, beyond a wall in those of -`WALL` and `WALL`.

        At an upper wall layers are counted from the last point of the field. A field that is staggered along
        the axis has one point more there, which is no ghost; points that are staggered where the field is not
        read a layer further into its ghosts.
        """
        widths = []
        for offset, staggered in points:
            sides = []
            for o, s, own, wraps in zip(offset, staggered, f.staggered, self.grid.periodic, strict=True):
                side = [(0, 0)] + [(-1, -o)] * (o < 0) + [(1, o)] * (o > 0)
                if not wraps:
                    upper = o + s - own
                    side += [(-WALL, -o)] * (o < 0) + [(WALL, upper)] * (upper > 0)
                sides.append(side)
            for choice in product(*sides):
                direction, width = zip(*choice, strict=True)
                if any(direction):
                    widths.append((direction, width))
        return Footprint.of(widths)

    def _depends(self, fill: WallFill) -> list[Field]:
        """The other fields that a boundary condition reads; remembers what its ghosts depend on."""
        f = fill.field
        leaves = [leaf for leaf in walk(fill.ghosts) if not leaf.args]
        read = dict.fromkeys(leaf.attribute[0] for leaf in leaves if leaf.op == "read")
        others = [other for other in read if other is not f]  # in an order that is the same in every process
        self.wall_fields.setdefault(f, set()).update(others)
        self.wall_scalars.setdefault(f, set()).update(
            leaf.attribute[0] for leaf in leaves if leaf.op == "scalar"
        )
        return others


def make_uniform(halos: Collection[SweepHalo], ndim: int) -> None:
    """Have every exchange carry all fields that ever travel, each as wide as the widest, with all edges and
    corners: the first version of the cavity code, to see what it is worth that only what is read travels.

    Nothing else changes: what is read, computed in the halo, or filled beyond walls.
    """
    travelling = dict.fromkeys(f for halo in halos for f in halo.exchange)
    moved = chain.from_iterable(halo.exchange.values() for halo in halos)
    widest = max((max(width) for footprint in moved for _, width in footprint), default=0)
    directions = [d for d in product((-1, 0, 1), repeat=ndim) if any(d)]
    whole = Footprint.of((d, tuple(widest * abs(o) for o in d)) for d in directions)
    for halo in halos:
        if halo.exchange:
            # what the sweep computes in the halo must not be overwritten there
            halo.exchange = {f: whole for f in travelling if f in halo.exchange or f not in halo.extended}


def _walls(around: Footprint) -> Footprint:
    """The segments that lie beyond a wall."""
    return Footprint(tuple((d, w) for d, w in around if WALL in map(abs, d)))


def _either(around: Footprint) -> Footprint:
    """The segments, whether beyond a neighbour or a wall."""
    return Footprint.of((tuple((n > 0) - (n < 0) for n in d), w) for d, w in around)


def _check_points(fill: WallFill, other: Field) -> None:
    """Raise where a boundary condition reads a field that has no point beside each of its own."""
    f = fill.field
    for axis, (own, there, wraps) in enumerate(
        zip(f.staggered, other.staggered, f.grid.periodic, strict=True)
    ):
        if axis != fill.axis and own and not there and not wraps:
            raise InputError(
                f"the boundary condition of field {f.name!r} on side {fill.name!r} reads field "
                f"{other.name!r}, which has no point beside that of {f.name!r} at the upper wall of axis "
                f"{AXES[axis]}"
            )


def _union(a: dict[Field, Offsets], b: dict[Field, Offsets]) -> dict[Field, Offsets]:
    return {f: a.get(f, NONE) | b.get(f, NONE) for f in (*a, *b)}
