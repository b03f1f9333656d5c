"""Where boundary conditions are applied: the ghost cells of a subdomain beyond the walls it touches."""

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
    """A part of a fill that lies over halo segments which come by message, or reads them along the wall.

    Bit i of `needs` is set where it reads what the i-th received message of the sweep brings.
    """

    box: Box
    needs: int


@dataclass(frozen=True)
class FillBoxes:
    """Where the fill numbered `fill` of a sweep runs on this rank.

    `core` depends on no message. Rims follow the cores, both in the order of the sweep's fills: a fill
    reads ghost cells that fills before it wrote.

    Boxes are in the points of the fill's field: the kernel runs over exactly these indices.
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
    """The boxes of every fill whose wall this subdomain touches; several for a fill where inactive blocks lie
    between, whose ghost cells nobody reads.

    Along the other axes a fill covers the owned points, and as many layers beyond as `Fill.corners` asks:
    over halo cells of another subdomain (a rim), over halo cells that were copied within this one (core),
    over ghost cells that fills of the axes that it covers have written (core). Other ghost cells are left to
    their own fill, which covers this one's. Where it reads along the wall, owned points beside another
    subdomain belong to rims too, and so does a core that reads rims.
    """
    if not subdomain.active(blocks):
        return ()
    found: list[FillBoxes] = []
    late: list[tuple[Fill, Box]] = []  # rims so far
    for number, fill in enumerate(fills):
        if not subdomain.walls[fill.axis][fill.side > 0]:
            continue
        for boxes in _boxes(subdomain, fields[fill.field], fills, number, receives, transfers, blocks):
            if any(_reads(boxes.core, fill, other, box) for other, box in late):
                core = Rim(boxes.core, _needs(boxes.core, fill, receives))
                boxes = FillBoxes(number, _nowhere(boxes.core), (core, *boxes.rims))
            found.append(boxes)
        late += [(fill, rim.box) for boxes in found if boxes.fill == number for rim in boxes.rims]
    return tuple(found)


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
    pieces = []  # per axis the intervals that the fill covers, the one without messages first
    for axis, n in enumerate(owned.hi):
        if axis == fill.axis:
            pieces.append([(-fill.depth, 0) if fill.side < 0 else (n, n + fill.depth)])
        else:
            pieces.append(_intervals(subdomain, fill, axis, n, transfers))

    boxes = [Box(*map(tuple, zip(*intervals, strict=True))) for intervals in product(*pieces)]
    over = tuple(Rim(box, _needs(box, fill, receives)) for box in boxes[1:] if box)
    if blocks is None:
        yield FillBoxes(number, boxes[0], over)
        return
    near = blocks.near(_reach(fill, fills), subdomain.decomposition.periodic)
    for core in subdomain.pieces(boxes[0], near) if boxes[0] else ():
        yield FillBoxes(number, core, ())
    if over:
        yield FillBoxes(number, _nowhere(owned), over)


def _intervals(
    subdomain: Subdomain, fill: Fill, axis: int, n: int, transfers: Transfers
) -> list[tuple[int, int]]:
    """What a fill covers along another axis of `n` points: the interval without messages, perhaps empty,
    then those of rims."""
    alone = subdomain.decomposition.parts[axis] == 1 and transfers.copied(*[subdomain.number] * 2)
    (lower, upper), (below, above) = fill.corners[axis], fill.along[axis]
    there = [axis in fill.covers if wall else alone for wall in subdomain.walls[axis]]
    comes = [not wall and not alone for wall in subdomain.walls[axis]]
    start = min(below, n) if comes[0] else -lower if there[0] else 0
    stop = max(n - above, start) if comes[1] else n + upper if there[1] else n
    rims = [(-lower, start)] * comes[0] + [(stop, n + upper)] * comes[1]
    return [(start, stop), *(rim for rim in rims if rim[0] < rim[1])]


def _nowhere(like: Box) -> Box:
    return Box((0,) * len(like.lo), (0,) * len(like.lo))


def _reach(fill: Fill, fills: tuple[Fill, ...]) -> list[int]:
    """How far from a ghost cell, along each axis, what reads it may lie: patches, across the wall and along
    it, and fills of other axes, from their walls inward."""
    reach = [max(layers) for layers in fill.corners]
    for other in fills:
        if other.axis != fill.axis:
            reach[other.axis] = max(reach[other.axis], max(fill.corners[other.axis]) + other.reach)
    reach[fill.axis] = fill.depth
    for other in fills:
        # its ghosts are read so far along the wall, and across it
        if any(map(any, other.along)):
            more = [max(layers) for layers in other.corners]
            more[other.axis] = max(other.depth, other.reach)
            reach = list(map(add, reach, more))
    return reach


def _reads(box: Box, fill: Fill, other: Fill, there: Box) -> bool:
    """Whether a fill that runs over a box reads ghosts of another one in a box."""
    if not box or other.axis == fill.axis or other.field not in fill.operands:
        return False
    return bool(_read(box, fill).intersect(there))


def _read(box: Box, fill: Fill) -> Box:
    """The cells of a rim, of those inward from the wall, and of those along it that the fill reads."""
    inward = (0, fill.reach) if fill.side < 0 else (fill.reach, 0)
    return box.grow([inward if axis == fill.axis else fill.along[axis] for axis in range(len(box.lo))])


def _needs(box: Box, fill: Fill, receives: tuple[Message, ...]) -> int:
    """The messages that bring what a rim reads."""
    return needs(receives, dict.fromkeys(fill.operands, _read(box, fill)))


def needs(receives: tuple[Message, ...], read: Mapping[int, Box]) -> int:
    """The messages, as bits, that bring any cell of the box that is read of each field."""
    mask = 0
    for i, message in enumerate(receives):
        if any(field in read and box.intersect(read[field]) for field, box in message.parts):
            mask |= 1 << i
    return mask
