"""Ghosts beyond walls: which a sweep needs, what their formulas read, and in what order they are formed."""

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
LAYERS = 8  # all of these are analysed, however few a sweep reads; formulas rarely differ beyond the second
Node = tuple[str, int, int]  # the ghosts of a field, by its name, beyond the wall of an axis and side
Orders = dict[tuple[Field, int], list[int]]  # axes in the order of their fills, by field and number of layers


@dataclass(frozen=True)
class WallFill:
    """Ghost layers of one field at one wall that a sweep needs: their formulas, layer by layer outward."""

    field: Field
    axis: int
    side: int
    depth: int
    corners: tuple[tuple[int, int], ...]
    ghosts: tuple[Expr, ...] = dataclasses.field(compare=False)  # they follow from the rest
    covers: tuple[int, ...] = ()  # the axes whose ghosts of the field are formed before

    @property
    def node(self) -> Node:
        """Whose ghosts they are."""
        return self.field.name, self.axis, self.side

    @property
    def name(self) -> str:
        """Of the side: "x-", "x+", ..."""
        return _side(self.axis, self.side)

    @property
    def reach(self) -> int:
        """How many interior cells inward it reads: a ghost in layer k has k ghosts before the wall."""
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
        """How many points along each other axis it reads, below and above."""
        offsets = [offset for each in self.reads.values() for offset in each]
        none = (0,) * self.field.grid.ndim
        return tuple((max(0, -min(o)), max(0, *o)) for o in zip(none, none, *offsets, strict=True))

    @cached_property
    def reads(self) -> dict[Field, frozenset[Offset]]:
        """What the formulas read of each field, as offsets along the wall."""
        found: dict[Field, set[Offset]] = {}
        for leaf in walk(self.ghosts):  # fields in an order that is the same in every process
            if leaf.op == "read":
                field, _, offset = leaf.attribute
                along = tuple(0 if axis == self.axis else o for axis, o in enumerate(offset))
                found.setdefault(field, set()).add(along)
        return {field: frozenset(offsets) for field, offsets in found.items()}


def around(field: Field, points: Points) -> Footprint:
    """The layers of a field that are read around a subdomain: beyond a neighbour in directions of -1 and 1,
    beyond a wall in those of -`WALL` and `WALL`.

    At an upper wall layers are counted from the last point of the field. A field that is staggered along
    the axis has one point more there, which is no ghost; points that are staggered where the field is not
    read a layer further into its ghosts.
    """
    none = ((0, 0),) * field.grid.ndim
    return Footprint.of(
        segment for offset, staggered in points for segment in _segments(field, offset, staggered, none, none)
    )


def beside(fill: WallFill, field: Field, offsets: frozenset[Offset]) -> Footprint:
    """The layers of a field that a fill reads around a subdomain, see `around`.

    Along other axes it runs over what it is wanted for beyond neighbours, and over ghosts that are there.
    """
    own = fill.field.staggered
    # across the wall it reads inward
    place = tuple((field.staggered if axis == fill.axis else own)[axis] for axis in range(len(own)))
    there = tuple(layers if axis in fill.covers else (0, 0) for axis, layers in enumerate(fill.corners))
    return Footprint.of(
        segment for offset in offsets for segment in _segments(field, offset, place, fill.corners, there)
    )


def _segments(
    field: Field,
    offset: Offset,
    place: Sequence[bool],
    layers: Sequence[tuple[int, int]],
    ghosts: Sequence[tuple[int, int]],
) -> Iterator[tuple[Direction, tuple[int, ...]]]:
    """The segments that points at a place read at an offset: those, too, that lie this number of layers
    beyond neighbours or walls."""
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
    """The segments that lie beyond a wall."""
    return Footprint(tuple((d, w) for d, w in around if WALL in map(abs, d)))


def neighbours(around: Footprint) -> Footprint:
    """The segments that lie beyond neighbours alone."""
    return Footprint(tuple((d, w) for d, w in around if WALL not in map(abs, d)))


def either(around: Footprint) -> Footprint:
    """The segments, whether beyond a neighbour or a wall."""
    return Footprint.of((tuple((n > 0) - (n < 0) for n in d), w) for d, w in around)


def needs(reads: dict[Field, Points], orders: Orders) -> dict[Field, Footprint]:
    """What a sweep reads around a subdomain, see `around`, and what boundary conditions read of fields along
    their wall: in the halo, and in ghosts of other axes.

    Raises
    ------
    InputError
        Ghosts that it reads have no condition, or wait for each other.
    """
    needed = {f: around(f, points) for f, points in reads.items()}
    while True:
        found = dict(needed)
        fills = [fill for f in needed for fill in fills_of(f, needed[f], orders)]
        ordered(fills)  # ghosts that wait for each other would be wanted ever farther along the walls
        for fill in fills:
            for other, offsets in fill.reads.items():
                if other is fill.field:  # the rest is there with what reads the ghosts
                    offsets = frozenset(offset for offset in offsets if any(offset))
                else:
                    _check_points(fill, other, offsets)
                found[other] = found.get(other, Footprint()) | beside(fill, other, offsets)
        if found == needed:
            return needed
        needed = found


def fills_of(f: Field, around: Footprint, orders: Orders) -> list[WallFill]:
    """Return the fills of a field: as deep as it is read beyond walls, and as wide along them.

    `orders` keeps the orders in which the walls of fields are filled, for all sweeps of a program.
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
                f"field {f.name!r} is read {depth} cell{'s' * (depth > 1)} beyond side {name!r}, "
                "which has no boundary condition: give one "
                f"(boundary={{'{name}': hc.Value(0)}} or so), or make axis {name[0]} periodic"
            )
        ghosts = (f.boundary[name].ghost(Ghost(f, axis, side, layer)) for layer in range(depth))
        fills.append(WallFill(f, axis, side, depth, tuple(along), tuple(ghosts)))
    return _covering(f, fills, orders)


def _covering(f: Field, fills: list[WallFill], orders: Orders) -> list[WallFill]:
    """The fills of a field, which form the ghosts at corners: those of the higher axis, unless those of the
    lower one read the field's ghosts of the higher."""
    if len({fill.axis for fill in fills}) < 2:
        return fills
    layers = max(LAYERS, *(fill.depth for fill in fills))
    if (f, layers) not in orders:
        orders[f, layers] = _order_of_axes(f, layers)
    order = orders[f, layers]
    return [replace(fill, covers=tuple(sorted(order[: order.index(fill.axis)]))) for fill in fills]


def _order_of_axes(f: Field, layers: int) -> list[int]:
    """Return the order in which the walls of a field are filled, by their axes.

    It follows from the boundary conditions alone. All walls and layers that may be read are analysed, so that
    the order is the same in every sweep.
    """
    after: dict[int, set[int]] = {axis: set() for axis in range(f.grid.ndim)}
    for axis, side in product(after, (-1, 1)):
        for leaf in walk(known_ghosts(f, axis, side, layers)):
            if leaf.op == "read" and leaf.attribute[0] is f:
                past = {n for n, o in enumerate(leaf.attribute[2]) if o and not f.grid.periodic[n]}
                after[axis] |= past - {axis}
    order: list[int] = []
    while len(order) < len(after):
        left = [axis for axis in after if axis not in order]
        ready = [axis for axis in left if after[axis] <= {*order}]
        order.append((ready or left)[0])  # where none is ready `ordered` finds out what waits for what
    return order


def ordered(fills: Sequence[WallFill]) -> list[WallFill]:
    """Fills in an order of axes in which each follows those whose ghosts it reads.

    Raises
    ------
    InputError
        Some wait for each other.
    """
    present = {fill.node for fill in fills}
    before = {fill.node: [node for node in _awaited(fill) if node in present] for fill in fills}
    waiting = sorted(fills, key=lambda fill: fill.axis)
    done: dict[Node, WallFill] = {}
    while waiting:
        ready = next((fill for fill in waiting if done.keys() >= {*before[fill.node]}), None)
        if ready is None:
            left = {fill.node: [node for node in before[fill.node] if node not in done] for fill in waiting}
            raise InputError(_circle(left))
        waiting = [fill for fill in waiting if fill is not ready]
        done[ready.node] = ready
    return list(done.values())


def _awaited(fill: WallFill) -> dict[Node, None]:
    """The ghosts that a fill reads."""
    return {
        (field.name, axis, d // WALL): None
        for field, offsets in fill.reads.items()
        for direction, _ in beside(fill, field, offsets)
        for axis, d in enumerate(direction)
        if abs(d) == WALL
    }


def _circle(before: dict[Node, list[Node]]) -> str:
    """Which ghosts wait for each other, in words."""
    chain = [next(iter(before))]
    while chain.count(chain[-1]) == 1:
        chain.append(before[chain[-1]][0])
    (field, axis, side), (other, there, beyond) = chain[-1], before[chain[-1]][0]
    circle = chain[chain.index(chain[-1]) + 1 :]
    names = ", ".join(f"{name!r} beyond {_side(a, s)!r}" for name, a, s in circle)
    return (
        f"the boundary condition of field {field!r} on side {_side(axis, side)!r} reads ghosts of field "
        f"{other!r} beyond side {_side(there, beyond)!r}, which wait for those it forms "
        f"(in a circle: {names}): on one of the walls read straight inward, u[m], or make axis "
        f"{AXES[axis]} or {AXES[there]} periodic"
    )


def _side(axis: int, side: int) -> str:
    return SIDES[2 * axis + (side > 0)]


def _check_points(fill: WallFill, other: Field, offsets: frozenset[Offset]) -> None:
    """Raise where a boundary condition reads a field that has no point beside each of its own.

    Where it reads several points along that axis, those beyond the wall are ghosts.
    """
    f = fill.field
    for axis, (own, there, wraps) in enumerate(
        zip(f.staggered, other.staggered, f.grid.periodic, strict=True)
    ):
        beside = not any(offset[axis] for offset in offsets)
        if axis != fill.axis and own and not there and not wraps and beside:
            raise InputError(
                f"the boundary condition of field {f.name!r} on side {fill.name!r} reads field "
                f"{other.name!r}, which has no point beside that of {f.name!r} at the upper wall of axis "
                f"{AXES[axis]}"
            )
