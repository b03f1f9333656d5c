"""Ghosts beyond walls: ghosts that a sweep needs, reads of their formulas, and the order of the fills."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from halocline.compile.footprint import Direction, Footprint, Offset
from halocline.compile.passes.reach import Points
from halocline.errors import InputError
from halocline.lang.boundary import SIDES, Ghost, known_ghosts
from halocline.lang.expression import Expr, walk
from halocline.lang.grid import AXES, Field

WALL = 2  # see `around`
LAYERS = 8  # minimum number of analysed layers; formulas rarely differ beyond the second layer
Node = tuple[str, int, int]  # ghosts: name of the field, axis and side of the wall
Orders = dict[tuple[Field, int], list[int]]  # order of the filled axes, by field and number of layers


@dataclass(frozen=True)
class WallFill:
    """Ghost layers of one field that a sweep needs at one wall, with one formula per layer (outward)."""

    field: Field
    axis: int
    side: int
    depth: int
    corners: tuple[tuple[int, int], ...]
    ghosts: tuple[Expr, ...] = dataclasses.field(compare=False)  # the other attributes determine them
    covers: tuple[int, ...] = ()  # axes whose fills of the field run before this fill

    @property
    def node(self) -> Node:
        """Field, axis and side of the ghosts."""
        return self.field.name, self.axis, self.side

    @property
    def name(self) -> str:
        """Name of the side: "x-", "x+", ..."""
        return _side(self.axis, self.side)

    @property
    def reach(self) -> int:
        """Number of interior cells that the fill reads inward; k ghosts lie between layer k and the wall."""
        return max(
            (
                abs(leaf.attribute[2][self.axis]) - layer
                for layer, ghost in enumerate(self.ghosts)
                for leaf in walk((ghost,))
                if leaf.op == "read"
            ),
            default=0,
        )

    @property
    def along(self) -> tuple[tuple[int, int], ...]:
        """Number of points that the fill reads along each other axis, below and above."""
        offsets = [offset for field_offsets in self.reads.values() for offset in field_offsets]
        none = (0,) * self.field.grid.ndim
        return tuple((max(0, -min(o)), max(0, *o)) for o in zip(none, none, *offsets, strict=True))

    @cached_property
    def reads(self) -> dict[Field, frozenset[Offset]]:
        """Offsets along the wall at which the formulas read each field."""
        result: dict[Field, set[Offset]] = {}
        for leaf in walk(self.ghosts):  # the order of the fields must be the same in every process
            if leaf.op == "read":
                field, _, offset = leaf.attribute
                along = tuple(0 if axis == self.axis else o for axis, o in enumerate(offset))
                result.setdefault(field, set()).add(along)
        return {field: frozenset(offsets) for field, offsets in result.items()}


def around(field: Field, points: Points) -> Footprint:
    """Return the layers of a field that are read around a subdomain.

    Directions of -1 and 1 denote layers of a neighbour; directions of -`WALL` and `WALL` denote layers beyond
    a wall. At an upper wall, layers are counted from the last point of the field. If the field is staggered
    along the axis, its additional point at the upper wall is no ghost. If the reading points are staggered
    along the axis and the field is not, the points read one more layer of ghosts.
    """
    none = ((0, 0),) * field.grid.ndim
    return Footprint.of(
        segment for offset, staggered in points for segment in _segments(field, offset, staggered, none, none)
    )


def beside(fill: WallFill, field: Field, offsets: frozenset[Offset]) -> Footprint:
    """Return the layers of a field that a fill reads around a subdomain, see `around`.

    Along other axes, the box of the fill includes the required layers of neighbours, and ghosts that earlier
    fills have computed.
    """
    staggered = fill.field.staggered
    # across the wall, the fill reads inward
    place = tuple(
        (field.staggered if axis == fill.axis else staggered)[axis] for axis in range(len(staggered))
    )
    ghosts = tuple(layers if axis in fill.covers else (0, 0) for axis, layers in enumerate(fill.corners))
    return Footprint.of(
        segment for offset in offsets for segment in _segments(field, offset, place, fill.corners, ghosts)
    )


def _segments(
    field: Field,
    offset: Offset,
    place: Sequence[bool],
    layers: Sequence[tuple[int, int]],
    ghosts: Sequence[tuple[int, int]],
) -> Iterator[tuple[Direction, tuple[int, ...]]]:
    """Yield the segments that are read at an offset from points of one location.

    The points include `layers` layers of neighbours and `ghosts` layers beyond walls, per axis (lower,
    upper).
    """
    sides = []
    for axis, o in enumerate(offset):
        lower, upper = layers[axis]
        side = [(0, 0), (-1, lower - o), (1, upper + o)]
        if not field.grid.periodic[axis]:
            lower, upper = ghosts[axis]
            more = o + place[axis] - field.staggered[axis]
            side += [(-WALL, lower - o), (WALL, upper + more)]
        sides.append([(d, width) for d, width in side if not d or width > 0])
    for choice in product(*sides):
        direction, width = zip(*choice, strict=True)
        if any(direction):
            yield direction, width


def walls(around: Footprint) -> Footprint:
    """Return the segments beyond walls."""
    return Footprint(tuple((d, w) for d, w in around if WALL in map(abs, d)))


def neighbours(around: Footprint) -> Footprint:
    """Return the segments in the direction of neighbours, without those beyond walls."""
    return Footprint(tuple((d, w) for d, w in around if WALL not in map(abs, d)))


def merged_directions(around: Footprint) -> Footprint:
    """Return the segments with directions that do not distinguish neighbours from walls."""
    return Footprint.of((tuple((n > 0) - (n < 0) for n in d), w) for d, w in around)


def needs(reads: dict[Field, Points], orders: Orders) -> dict[Field, Footprint]:
    """Return the layers around a subdomain that a sweep and its boundary conditions read, see `around`.

    Boundary conditions read fields along their wall: halo cells, and ghosts beyond the walls of other axes.

    Raises
    ------
    InputError
        Required ghosts have no boundary condition, or depend on each other.
    """
    footprints = {f: around(f, points) for f, points in reads.items()}
    while True:
        extended = dict(footprints)
        fills = [fill for f in footprints for fill in fills_of(f, footprints[f], orders)]
        ordered(fills)  # rejects ghosts that depend on each other, with which the loop would not end
        for fill in fills:
            for other, offsets in fill.reads.items():
                if other is fill.field:  # the reads of the ghosts include all other offsets
                    offsets = frozenset(offset for offset in offsets if any(offset))
                else:
                    _check_points(fill, other, offsets)
                extended[other] = extended.get(other, Footprint()) | beside(fill, other, offsets)
        if extended == footprints:
            return footprints
        footprints = extended


def fills_of(f: Field, around: Footprint, orders: Orders) -> list[WallFill]:
    """Return the fills of a field with the required depth beyond walls and width along them.

    `orders` caches the order of the filled axes per field, for all sweeps of a program.
    """
    ndim = f.grid.ndim
    fills = []
    for axis, side in product(range(ndim), (-1, 1)):
        beyond = Footprint(tuple((d, w) for d, w in around if d[axis] == WALL * side))
        if not beyond:
            continue
        along = [*beyond.layers(ndim)]
        depth = max(along[axis])
        along[axis] = (0, 0)
        name = _side(axis, side)
        if name not in f.boundary:
            raise InputError(
                f"field {f.name!r} is read {depth} cell{'s' * (depth > 1)} beyond side {name!r}, which has "
                f"no boundary condition. Add one, such as boundary={{'{name}': hc.Value(0)}}, or make axis "
                f"{name[0]} periodic."
            )
        ghosts = (f.boundary[name].ghost(Ghost(f, axis, side, layer)) for layer in range(depth))
        fills.append(WallFill(f, axis, side, depth, tuple(along), tuple(ghosts)))
    return _covering(f, fills, orders)


def _covering(f: Field, fills: list[WallFill], orders: Orders) -> list[WallFill]:
    """Return the fills of a field, each with the axes whose ghosts it includes at corners.

    The fill of the higher axis computes the ghosts at corners. If the fill of the lower axis reads ghosts
    beyond the higher axis, it computes the ghosts at corners instead.
    """
    if len({fill.axis for fill in fills}) < 2:
        return fills
    layers = max(LAYERS, *(fill.depth for fill in fills))
    if (f, layers) not in orders:
        orders[f, layers] = _order_of_axes(f, layers)
    order = orders[f, layers]
    return [replace(fill, covers=tuple(sorted(order[: order.index(fill.axis)]))) for fill in fills]


def _order_of_axes(f: Field, layers: int) -> list[int]:
    """Return the axes of a field in the order in which the ghosts beyond their walls are computed.

    The order follows from the boundary conditions alone. The analysis covers all walls and layers that may be
    read, so that the order is the same in every sweep.
    """
    after: dict[int, set[int]] = {axis: set() for axis in range(f.grid.ndim)}
    for axis, side in product(after, (-1, 1)):
        for leaf in walk(known_ghosts(f, axis, side, layers)):
            if leaf.op == "read" and leaf.attribute[0] is f:
                crossed_axes = {n for n, o in enumerate(leaf.attribute[2]) if o and not f.grid.periodic[n]}
                after[axis] |= crossed_axes - {axis}
    order: list[int] = []
    while len(order) < len(after):
        remaining = [axis for axis in after if axis not in order]
        ready = [axis for axis in remaining if after[axis] <= {*order}]
        order.append((ready or remaining)[0])  # if none is ready, `ordered` reports the cycle
    return order


def ordered(fills: Sequence[WallFill]) -> list[WallFill]:
    """Return fills in the order of their axes, but each fill after the fills whose ghosts it reads.

    Raises
    ------
    InputError
        Some fills depend on each other.
    """
    present = {fill.node for fill in fills}
    before = {fill.node: [node for node in _awaited(fill) if node in present] for fill in fills}
    waiting = sorted(fills, key=lambda fill: fill.axis)
    done: dict[Node, WallFill] = {}
    while waiting:
        ready = next((fill for fill in waiting if done.keys() >= {*before[fill.node]}), None)
        if ready is None:
            remaining = {
                fill.node: [node for node in before[fill.node] if node not in done] for fill in waiting
            }
            raise InputError(_circle(remaining))
        waiting = [fill for fill in waiting if fill is not ready]
        done[ready.node] = ready
    return list(done.values())


def independent_groups(fills: Sequence[WallFill]) -> list[list[tuple[int, range]]]:
    """Return groups of ghost layers that can be computed at the same time, in the order of the groups.

    Parameters
    ----------
    fills : sequence of WallFill
        Fills in an order that `ordered` returns.

    Returns
    -------
    list of list of (int, range)
        The number of a fill and its layers. One thread computes the layers from the wall outward, if each
        layer reads ghosts of other layers only along the normal of the wall. Otherwise the layers are in
        different groups.
    """
    levels: dict[Node, int] = {}  # group of the last layer of each fill
    groups: list[list[tuple[int, range]]] = []
    for number, fill in enumerate(fills):
        level = max((levels[node] + 1 for node in _awaited(fill) if node in levels), default=0)
        reads_along = any(any(offset) for offset in fill.reads.get(fill.field, ()))
        layers = range(fill.depth)
        for part in [range(n, n + 1) for n in layers] if reads_along else [layers]:
            groups += [[]] * (level + 1 - len(groups))
            groups[level] = [*groups[level], (number, part)]
            levels[fill.node] = level
            level += 1
    return groups


def _awaited(fill: WallFill) -> dict[Node, None]:
    """Return the ghosts that a fill reads, in order."""
    return {
        (field.name, axis, d // WALL): None
        for field, offsets in fill.reads.items()
        for direction, _ in beside(fill, field, offsets)
        for axis, d in enumerate(direction)
        if abs(d) == WALL
    }


def _circle(before: dict[Node, list[Node]]) -> str:
    """Return the error message for ghosts that depend on each other."""
    chain = [next(iter(before))]
    while chain.count(chain[-1]) == 1:
        chain.append(before[chain[-1]][0])
    (field, axis, side), (other, other_axis, beyond) = chain[-1], before[chain[-1]][0]
    circle = chain[chain.index(chain[-1]) + 1 :]
    names = ", ".join(f"{name!r} beyond {_side(a, s)!r}" for name, a, s in circle)
    return (
        f"the boundary condition of field {field!r} on side {_side(axis, side)!r} reads ghosts of field "
        f"{other!r} beyond side {_side(other_axis, beyond)!r}. Those ghosts depend on the ghosts of this "
        f"condition ({names}). Read only along the normal (u[m]) on one of the walls, or make axis "
        f"{AXES[axis]} or {AXES[other_axis]} periodic"
    )


def _side(axis: int, side: int) -> str:
    return SIDES[2 * axis + (side > 0)]


def _check_points(fill: WallFill, other: Field, offsets: frozenset[Offset]) -> None:
    """Raise InputError if a field that a boundary condition reads has no point next to one of the ghosts.

    Axes along which the condition reads several points are not checked: there, points beyond walls are
    ghosts.
    """
    f = fill.field
    for axis, (staggered, other_staggered, wraps) in enumerate(
        zip(f.staggered, other.staggered, f.grid.periodic, strict=True)
    ):
        reads_one_point = not any(offset[axis] for offset in offsets)
        if axis != fill.axis and staggered and not other_staggered and not wraps and reads_one_point:
            raise InputError(
                f"the boundary condition of field {f.name!r} on side {fill.name!r} reads field "
                f"{other.name!r}. {other.name!r} has no point next to that of {f.name!r} at the upper wall "
                f"of axis {AXES[axis]}"
            )
