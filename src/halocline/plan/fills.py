"""Where boundary conditions are applied: the ghost cells of a subdomain beyond the walls it touches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from halocline.compile.schedule import FieldInfo, Fill
from halocline.lang.blocks import Blocks
from halocline.plan.box import Box
from halocline.plan.exchange import Message
from halocline.plan.subdomain import Subdomain
from halocline.plan.transfer import Transfers


@dataclass(frozen=True)
class Rim:
    """A part of a fill that lies over halo segments which come by message.

    Bit i of `needs` is set where it reads what the i-th received message of the sweep brings.
    """

    box: Box
    needs: int


@dataclass(frozen=True)
class FillBoxes:
    """Where the fill numbered `fill` of a sweep runs on this rank.

    `core` depends on no message. Rims follow the cores, both in the order of the sweep's fills: a fill
    reads the ghost cells that fills of lower axes wrote.

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
    over ghost cells that the fill of a lower axis has written (core). Ghost cells of higher axes are
    left to their own fill, which covers this one's.
    """
    if not subdomain.active(blocks):
        return ()
    return tuple(
        boxes
        for number, fill in enumerate(fills)
        if subdomain.walls[fill.axis][fill.side > 0]
        for boxes in _boxes(subdomain, fields[fill.field], fills, number, receives, transfers, blocks)
    )


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
            continue
        lower, upper = fill.corners[axis]
        alone = subdomain.decomposition.parts[axis] == 1 and transfers.copied(*[subdomain.number] * 2)
        start, stop, rims = 0, n, []
        for layers, wall, outward in zip((lower, upper), subdomain.walls[axis], (-1, 1), strict=True):
            if not layers or (wall and axis > fill.axis):
                continue
            interval = (-layers, 0) if outward < 0 else (n, n + layers)
            if not wall and not alone:
                rims.append(interval)
            elif outward < 0:
                start = -layers
            else:
                stop = n + layers
        pieces.append([(start, stop), *rims])

    boxes = [Box(*map(tuple, zip(*intervals, strict=True))) for intervals in product(*pieces)]
    over = tuple(Rim(box, _needs(box, fill, receives)) for box in boxes[1:])
    if blocks is None:
        yield FillBoxes(number, boxes[0], over)
        return
    near = blocks.near(_reach(fill, fills), subdomain.decomposition.periodic)
    for core in subdomain.pieces(boxes[0], near):
        yield FillBoxes(number, core, ())
    if over:
        yield FillBoxes(number, Box((0,) * len(owned.lo), (0,) * len(owned.lo)), over)


def _reach(fill: Fill, fills: tuple[Fill, ...]) -> list[int]:
    """How far from a ghost cell, along each axis, what reads it may lie: patches, across the wall and along
    it, and fills of other axes, from their walls inward."""
    reach = [max(layers) for layers in fill.corners]
    for other in fills:
        if other.axis != fill.axis:
            reach[other.axis] = max(reach[other.axis], max(fill.corners[other.axis]) + other.reach)
    reach[fill.axis] = fill.depth
    return reach


def _needs(box: Box, fill: Fill, receives: tuple[Message, ...]) -> int:
    """The messages that bring what a rim reads: the cells inward from the wall."""
    inward = (0, fill.reach) if fill.side < 0 else (fill.reach, 0)
    read = box.grow([inward if axis == fill.axis else (0, 0) for axis in range(len(box.lo))])
    return needs(receives, dict.fromkeys(fill.operands, read))


def needs(receives: tuple[Message, ...], read: Mapping[int, Box]) -> int:
    """The messages, as bits, that bring any cell of the box that is read of each field."""
    mask = 0
    for i, message in enumerate(receives):
        if any(field in read and box.intersect(read[field]) for field, box in message.parts):
            mask |= 1 << i
    return mask
