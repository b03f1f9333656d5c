"""Halo analysis: halo segments that are valid, exchanged or filled before each sweep.

A sweep also computes an assigned field in the halo, if all values that this computation reads are available
in any case. This rule avoids the exchange of the search direction p in the conjugate gradient method.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, product

from halocline.compile.footprint import Footprint, Offset
from halocline.compile.lower import LoopGraph, OperationGraph, ScalarGraph, SweepGraph
from halocline.compile.rotation import rotations
from halocline.compile.sweep import SweepNests
from halocline.compile.walls import (
    Orders,
    WallFill,
    fills_of,
    merged_directions,
    needs,
    neighbours,
    ordered,
    walls,
)
from halocline.compile.walls import around as around_points
from halocline.lang.expression import Expr, walk
from halocline.lang.grid import Field, Grid

Offsets = frozenset[Offset]
NONE: Offsets = frozenset()
UNIFORM = {"faces": 1, "edges": 2, "uniform": 3}  # maximum number of nonzero axes of a segment
HALOS = ("read", *UNIFORM)  # see `make_uniform`


@dataclass
class SweepHalo:
    """Halo segments that a sweep needs, and halo segments that it computes."""

    reads: dict[Field, Footprint] = field(default_factory=dict)  # also beyond walls
    exchange: dict[Field, Footprint] = field(default_factory=dict)
    fills: list[WallFill] = field(default_factory=list)
    extended: dict[Field, Footprint] = field(default_factory=dict)  # fields computed in the halo

    def ghosts(self) -> list[Expr]:
        """Return the expressions of all ghosts that are computed before the sweep."""
        return [ghost for fill in self.fills for ghost in fill.ghosts]


@dataclass(frozen=True)
class _State:
    valid: dict[Field, Footprint]  # valid halo segments at neighbours
    filled: dict[Field, Footprint]  # valid ghosts beyond walls, with directions as in `walls.around`

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
    """Return the sums of all pairs of offsets."""
    return frozenset(tuple(a + b for a, b in zip(x, y, strict=True)) for x in offsets for y in by)


def _within(offsets: Offsets, by: Offsets, layers: Sequence[tuple[int, int]]) -> bool:
    """Return True if all sums of two offsets, one from each set, lie in a box, without computing the sums."""
    return all(
        -lower <= min(first) + min(second) and max(first) + max(second) <= upper
        for first, second, (lower, upper) in zip(
            zip(*offsets, strict=True), zip(*by, strict=True), layers, strict=True
        )
    )


class HaloAnalysis:
    """Halo segments that each sweep of a program needs.

    Parameters
    ----------
    operations : list of OperationGraph
    nests : dict
        Nests of each sweep.
    """

    def __init__(
        self, operations: list[OperationGraph], nests: dict[SweepGraph, SweepNests], grid: Grid
    ) -> None:
        self.nests, self.grid = nests, grid
        # fields and scalars on which the ghosts of a field depend
        self.wall_fields: dict[Field, set[Field]] = {}
        self.wall_scalars: dict[Field, set[str]] = {}
        self._orders: Orders = {}
        self.around = {sweep: needs(n.reads, self._orders) for sweep, n in nests.items()}
        for around_fields in self.around.values():
            self._remember(
                fill for f, read in around_fields.items() for fill in fills_of(f, read, self._orders)
            )
        # offsets at which later sweeps read each field before it is set again
        self.needs: dict[SweepGraph, dict[Field, Offsets]] = {}
        self._backward(operations, {})
        self.result: dict[SweepGraph, SweepHalo] = {}
        # exchanges before a loop, which the passes of the loop do not repeat
        self.before: dict[LoopGraph, dict[Field, Footprint]] = {}
        self._forward(operations, _State({}, {}))

    # --- backward: the reads of each field before it is assigned again ---

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

    # --- forward: the valid segments ---

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
                state = self._loop(operation, state)
        return state

    def _loop(self, loop: LoopGraph, state: _State) -> _State:
        """Return the state at the start of every pass, and record the exchange before the loop.

        The analysis starts with all halo segments that the loop reads before it assigns their field. It
        assumes that an exchange before the loop makes these segments valid. It then drops the segments that a
        pass does not keep valid; sweeps inside the loop exchange these segments. There is no exchange before
        a conditional statement, since its body may rarely run.
        """
        first_reads = {} if loop.often is not None else self._read_first(loop.body, set())
        empty = Footprint()
        valid = {
            f: state.valid.get(f, empty) | first_reads.get(f, empty) for f in (*state.valid, *first_reads)
        }
        entry = _State(valid, state.filled)
        while True:
            next_entry = entry.meet(self._forward(loop.body, entry))
            next_entry = _State(_extensible(next_entry.valid, first_reads, state.valid), next_entry.filled)
            if next_entry == entry:
                break
            entry = next_entry
        missing = {f: footprint - state.valid.get(f, empty) for f, footprint in entry.valid.items()}
        self.before[loop] = {f: footprint for f, footprint in missing.items() if footprint}
        return entry

    def _read_first(self, operations: list[OperationGraph], assigned: set[Field]) -> dict[Field, Footprint]:
        """Return the halo segments of each field that operations read before they assign the field.

        The method also adds to `assigned` all fields that the operations assign.
        """
        read: dict[Field, Footprint] = {}
        for operation in operations:
            more: dict[Field, Footprint] = {}
            if isinstance(operation, SweepGraph):
                more = {f: neighbours(p) for f, p in self.around[operation].items() if f not in assigned}
                assigned |= set(operation.sets)
            elif isinstance(operation, LoopGraph):
                more = self._read_first(operation.body, assigned)
            for f, footprint in more.items():
                read[f] = read.get(f, Footprint()) | footprint
        return read

    def _sweep(self, sweep: SweepGraph, state: _State) -> _State:
        around = self.around[sweep]
        reads = {f: neighbours(p) for f, p in around.items()}
        halo = SweepHalo(reads={f: merged_directions(p) for f, p in around.items() if p})
        halo.extended = self._extended(sweep, reads, around)
        valid, filled = dict(state.valid), dict(state.filled)
        for f, footprint in reads.items():
            present = valid.get(f, Footprint())
            missing = {d for d, _ in footprint - present}  # the plan drops segments beyond walls
            if missing:
                # whole segments, since the missing part of a segment may not be a box
                valid[f] = present | footprint
                halo.exchange[f] = Footprint(tuple((d, w) for d, w in valid[f] if d in missing))
            ghosts = walls(around[f])
            # later exchanges do not change ghosts at corners, since these were computed from valid values
            if ghosts - filled.get(f, Footprint()):
                halo.fills += fills_of(f, ghosts, self._orders)
                filled[f] = ghosts
        halo.fills = ordered(halo.fills)
        before = dict(valid)
        for f in sweep.sets:
            valid[f] = halo.extended.get(f, Footprint())
        for f, followers in rotations(sweep.sets).items():
            # the halo remains in the buffer, ghosts beyond walls depend on the field
            valid |= {to: before.get(of, Footprint()) for of, to in pairwise((f, *followers))}
        for f in self._stale(set(sweep.sets), filled):
            filled[f] = Footprint()
        self.result[sweep] = halo
        if self.grid.blocks is not None:
            # next to inactive blocks, fills compute only the ghosts that this sweep reads
            filled = {}
        return _State(valid, filled)

    def _stale(self, changed: set[Field], filled: dict[Field, Footprint]) -> set[Field]:
        """Return the fields whose ghosts depend on changed fields, directly or through other ghosts."""
        stale = changed
        while True:
            more = stale | {f for f in filled if stale & self.wall_fields.get(f, set())}
            if more == stale:
                return stale
            stale = more

    def _extended(
        self, sweep: SweepGraph, reads: dict[Field, Footprint], around: dict[Field, Footprint]
    ) -> dict[Field, Footprint]:
        """Return the assigned fields that are computed also in the halo, all with the same segments."""
        if self.grid.blocks is not None:  # inactive cells in the halo must remain zero
            return {}
        later_reads = self.needs[sweep]
        candidates: dict[Field, Offsets] = {}
        sources: dict[Field, dict[Field, Offsets]] = {}
        for f, reads_of_field in self.nests[sweep].per_field.items():
            candidates[f] = frozenset(o for o in later_reads.get(f, NONE) if any(o))
            sources[f] = reads_of_field
        candidates = {f: reach for f, reach in candidates.items() if reach}

        def free(f: Field, reach: Offsets) -> bool:
            """Return True if the sweep already reads all values that `f` needs at these offsets."""
            for g, offsets in sources[f].items():
                if not _within(offsets, reach, reads[g].layers(self.grid.ndim)):
                    return False
                points = frozenset((o, f.staggered) for o in shifted(offsets, reach))
                if not around_points(g, points) <= around[g]:
                    return False
            return True

        while candidates:
            reach = frozenset(chain.from_iterable(candidates.values()))
            remaining = {f: field_reach for f, field_reach in candidates.items() if free(f, reach)}
            if remaining == candidates:
                return dict.fromkeys(candidates, Footprint.from_offsets(reach))
            candidates = remaining
        return {}

    def _remember(self, fills: Iterable[WallFill]) -> None:
        """Record the fields and scalars on which ghosts depend."""
        for fill in fills:
            leaves = [leaf for leaf in walk(fill.ghosts) if not leaf.args]
            fields = {leaf.attribute[0] for leaf in leaves if leaf.op == "read"}
            self.wall_fields.setdefault(fill.field, set()).update(fields - {fill.field})
            scalars = {leaf.attribute[0] for leaf in leaves if leaf.op == "scalar"}
            self.wall_scalars.setdefault(fill.field, set()).update(scalars)


def make_uniform(halos_of_sweeps: Mapping[SweepGraph, SweepHalo], ndim: int, axes: int = 3) -> None:
    """Extend every exchange to the fields of all exchanges, and to segments of the maximum width.

    The directions of the additional segments have up to `axes` nonzero entries. With `axes` = 1, the segments
    are the faces, as in the first version of the cavity code of Virginia Tech (Sections 4.4 and 4.5). With
    `axes` = 2, they are the faces and edges: the 18 segments of Pekkilä et al. 2022, Section 5. With `axes` =
    3, they are all 26 segments. The function changes neither the reads, nor the fields that are computed in
    the halo, nor the fills beyond walls.
    """
    halos = list(halos_of_sweeps.values())
    exchanged = dict.fromkeys(f for halo in halos for f in halo.exchange)
    footprints = chain.from_iterable(halo.exchange.values() for halo in halos)
    widest = max((max(width) for footprint in footprints for _, width in footprint), default=0)
    offsets = product((-widest, 0, widest), repeat=ndim)
    uniform = Footprint.from_offsets(o for o in offsets if o.count(0) >= ndim - axes)
    for sweep, halo in halos_of_sweeps.items():
        if halo.exchange:
            # the exchange must not overwrite values that the sweep computes in the halo
            chains = rotations(sweep.sets)
            computed = {g for f in halo.extended for g in (f, *chains.get(f, ()))}
            halo.exchange = {
                f: uniform | halo.exchange.get(f, Footprint())
                for f in exchanged
                if f in halo.exchange or f not in computed
            }


def _extensible(
    entry: dict[Field, Footprint], reads_of_loop: dict[Field, Footprint], state: dict[Field, Footprint]
) -> dict[Field, Footprint]:
    """Return the valid segments at the start of every pass, without useless exchanges before the loop.

    If a segment is narrower than the reads of the loop, a sweep of the loop exchanges this segment in any
    case. The result then contains at most the width that is valid before the loop (`state`).
    """

    def useful(f: Field, footprint: Footprint) -> Footprint:
        too_narrow = {d for d, _ in reads_of_loop.get(f, Footprint()) - footprint}
        widths_before = dict(state.get(f, Footprint()))
        return Footprint.of(
            (d, tuple(map(min, w, widths_before[d])) if d in too_narrow else w)
            for d, w in footprint
            if d not in too_narrow or d in widths_before
        )

    return {f: useful(f, footprint) for f, footprint in entry.items()}


def with_exchanges(
    operations: list[OperationGraph], before: dict[LoopGraph, dict[Field, Footprint]]
) -> tuple[list[OperationGraph], dict[SweepGraph, SweepHalo]]:
    """Insert the exchange before each loop, and return the operations and the halos of these exchanges.

    An exchange is a sweep that computes nothing; `before` contains the exchanged segments of each loop.
    """
    result: list[OperationGraph] = []
    halos: dict[SweepGraph, SweepHalo] = {}
    for operation in operations:
        if isinstance(operation, LoopGraph):
            if before[operation]:
                sweep = SweepGraph()
                halos[sweep] = SweepHalo(exchange=before[operation])
                result.append(sweep)
            operation.body, inside = with_exchanges(operation.body, before)
            halos |= inside
        result.append(operation)
    return result, halos


def _union(a: dict[Field, Offsets], b: dict[Field, Offsets]) -> dict[Field, Offsets]:
    return {f: a.get(f, NONE) | b.get(f, NONE) for f in (*a, *b)}
