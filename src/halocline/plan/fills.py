"""Boxes of boundary fills: the ghost cells of a subdomain beyond the walls that it touches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from operator import add

from halocline.compile.schedule import FieldInfo, Fill
from halocline.lang.blocks import Blocks
from halocline.plan.box import Box
from halocline.plan.exchange import Message
from halocline.plan.subdomain import Subdomain
from halocline.plan.transfer import Transfers


@dataclass(frozen=True)
class Rim:
    """Part of a fill that depends on messages.

    A rim covers halo segments that arrive by message, or reads them along the wall. Bit i of `needs` is set
    if the rim reads cells of the i-th received message of the sweep.
    """

    box: Box
    needs: int


@dataclass(frozen=True)
class FillBoxes:
    """Boxes of one fill of a sweep in one subdomain; `fill` is the index of the fill.

    The `core` depends on no message. All cores run before the rims. Cores and rims each follow the order of
    the fills of the sweep, because a fill reads ghost cells that earlier fills wrote.

    Boxes contain point indices of the field that is filled. The kernel runs over exactly these indices.
    """

    fill: int
    core: Box
    rims: tuple[Rim, ...]


def fill_boxes(
    subdomain: Subdomain,
    fields: tuple[FieldInfo, ...],
    fills: tuple[Fill, ...],
    receives: tuple[Message, ...],
    transfers: Transfers,
    blocks: Blocks | None = None,
) -> tuple[FillBoxes, ...]:
    """Return the boxes of all fills whose wall this subdomain touches.

    A fill has several entries if inactive blocks interrupt the wall. No kernel reads the ghost cells of these
    blocks.

    Along the other axes, a fill covers the owned points and the layers of `Fill.corners` beyond them. These
    layers are of three kinds:

    - halo cells of another subdomain form a rim
    - halo cells that are copied within this subdomain belong to the core
    - ghost cells that the fills of the axes in `Fill.covers` write belong to the core

    The fill of another axis sets all other ghost cells in these layers. The box of that fill extends over the
    ghost cells of this fill. If a fill reads along the wall, owned points next to another subdomain also
    belong to rims. A core that reads rims becomes a rim.
    """
    if not subdomain.active(blocks):
        return ()
    fill_plans: list[FillBoxes] = []
    previous_rims: list[tuple[Fill, Box]] = []  # rims of the previous fills
    for number, fill in enumerate(fills):
        if not subdomain.walls[fill.axis][fill.side > 0]:
            continue
        for boxes in _boxes(subdomain, fields[fill.field], fills, number, receives, transfers, blocks):
            if any(_reads(boxes.core, fill, other, box) for other, box in previous_rims):
                core = Rim(boxes.core, _needs(boxes.core, fill, receives))
                boxes = FillBoxes(number, _empty_box(boxes.core), (core, *boxes.rims))
            fill_plans.append(boxes)
        previous_rims += [
            (fill, rim.box) for boxes in fill_plans if boxes.fill == number for rim in boxes.rims
        ]
    return tuple(fill_plans)


def _boxes(
    subdomain: Subdomain,
    field: FieldInfo,
    fills: tuple[Fill, ...],
    number: int,
    receives: tuple[Message, ...],
    transfers: Transfers,
    blocks: Blocks | None,
) -> Iterator[FillBoxes]:
    fill, owned = fills[number], subdomain.owned(field)
    pieces = []  # intervals that the fill covers, per axis; the first needs no messages
    for axis, n in enumerate(owned.hi):
        if axis == fill.axis:
            pieces.append([(-fill.depth, 0) if fill.side < 0 else (n, n + fill.depth)])
        else:
            pieces.append(_intervals(subdomain, fill, axis, n, transfers))

    boxes = [Box(*map(tuple, zip(*intervals, strict=True))) for intervals in product(*pieces)]
    rims = tuple(Rim(box, _needs(box, fill, receives)) for box in boxes[1:] if box)
    if blocks is None:
        yield FillBoxes(number, boxes[0], rims)
        return
    nearby_blocks = blocks.with_neighbours(_reach(fill, fills), subdomain.decomposition.periodic)
    for core in subdomain.pieces(boxes[0], nearby_blocks) if boxes[0] else ():
        yield FillBoxes(number, core, ())
    if rims:
        yield FillBoxes(number, _empty_box(owned), rims)


def _intervals(
    subdomain: Subdomain, fill: Fill, axis: int, n: int, transfers: Transfers
) -> list[tuple[int, int]]:
    """Return the intervals that a fill covers along another axis of `n` points.

    The first interval depends on no message and may be empty. The intervals of rims follow.
    """
    alone = subdomain.decomposition.parts[axis] == 1 and transfers.is_copied(*[subdomain.number] * 2)
    (lower, upper), (below, above) = fill.corners[axis], fill.along[axis]
    is_covered = [axis in fill.covers if wall else alone for wall in subdomain.walls[axis]]
    is_received = [not wall and not alone for wall in subdomain.walls[axis]]
    start = min(below, n) if is_received[0] else -lower if is_covered[0] else 0
    stop = max(n - above, start) if is_received[1] else n + upper if is_covered[1] else n
    rims = [(-lower, start)] * is_received[0] + [(stop, n + upper)] * is_received[1]
    return [(start, stop), *(rim for rim in rims if rim[0] < rim[1])]


def _empty_box(like: Box) -> Box:
    return Box((0,) * len(like.lo), (0,) * len(like.lo))


def _reach(fill: Fill, fills: tuple[Fill, ...]) -> list[int]:
    """Return the maximum distance per axis between a ghost cell of a fill and the cells that depend on it.

    These cells belong to patches, across and along the wall, or to fills of other axes.
    """
    reach = [max(layers) for layers in fill.corners]
    for other in fills:
        if other.axis != fill.axis:
            reach[other.axis] = max(reach[other.axis], max(fill.corners[other.axis]) + other.reach)
    reach[fill.axis] = fill.depth
    for other in fills:
        # ghost cells of the other fill are read over this distance, along the wall and across it
        if any(map(any, other.along)):
            extra = [max(layers) for layers in other.corners]
            extra[other.axis] = max(other.depth, other.reach)
            reach = list(map(add, reach, extra))
    return reach


def _reads(box: Box, fill: Fill, other: Fill, target: Box) -> bool:
    """Return True if a fill over a box reads ghost cells of another fill in the box `target`."""
    if not box or other.axis == fill.axis or other.field not in fill.operands:
        return False
    return bool(_cells_read(box, fill).intersect(target))


def _cells_read(box: Box, fill: Fill) -> Box:
    """Return the cells that the fill of a box reads, including cells inside the wall and along the wall."""
    inward = (0, fill.reach) if fill.side < 0 else (fill.reach, 0)
    return box.grow([inward if axis == fill.axis else fill.along[axis] for axis in range(len(box.lo))])


def _needs(box: Box, fill: Fill, receives: tuple[Message, ...]) -> int:
    """Return a bit mask of the messages that contain cells read by a rim."""
    return needs(receives, dict.fromkeys(fill.operands, _cells_read(box, fill)))


def needs(receives: tuple[Message, ...], read: Mapping[int, Box]) -> int:
    """Return a bit mask of the messages that contain a cell of `read[field]` for at least one field."""
    mask = 0
    for i, message in enumerate(receives):
        if any(field in read and box.intersect(read[field]) for field, box in message.parts):
            mask |= 1 << i
    return mask
