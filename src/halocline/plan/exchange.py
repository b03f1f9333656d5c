"""The messages and copies that fill halos from neighbours before a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from halocline.compile.footprint import Direction, Footprint
from halocline.compile.schedule import FieldInfo
from halocline.lang.dtype import ITEMSIZE
from halocline.plan.box import Box
from halocline.plan.subdomain import Subdomain

TAGS = 27  # per exchange, one for each direction in three dimensions


@dataclass(frozen=True)
class Message:
    """What travels between this rank and one neighbour in one direction, in one go.

    Parameters
    ----------
    peer : int
        The rank at the other end.
    tag : int
        The same at both ends, another for every direction and exchange: two ranks along a periodic axis
        are neighbours twice, and know by the tag which side a message is for.
    direction : tuple of int
        Where the peer lies, seen from this rank; 0 along axes that one subdomain spans.
    parts : tuple of (field, box)
        What is packed (sent) or unpacked (received), in this order; boxes in this rank's own indices.
        They have equal shapes at both ends.
    bytes : int
    """

    peer: int
    tag: int
    direction: Direction
    parts: tuple[tuple[int, Box], ...]
    bytes: int


@dataclass(frozen=True)
class Copy:
    """A halo segment of `field` whose source is this subdomain itself, around a periodic axis."""

    field: int
    source: Box
    target: Box


@dataclass(frozen=True)
class Exchange:
    """Everything that one rank sends, receives and copies before a sweep."""

    sends: tuple[Message, ...] = ()
    receives: tuple[Message, ...] = ()
    copies: tuple[Copy, ...] = ()


def exchange(
    subdomain: Subdomain,
    fields: tuple[FieldInfo, ...],
    footprints: Mapping[int, Footprint],
    number: int,
    wraps: tuple[int, ...] = (),
) -> Exchange:
    """Plans one exchange of one rank.

    Parameters
    ----------
    footprints : mapping from field number to Footprint
        The halo segments that are to be filled, the same on every rank.
    number : int
        Tells this exchange from the others of the schedule.
    wraps : tuple of int
        Fields whose rows the kernel wraps around itself: their ends need no copy.
    """
    sends: dict[Direction, list[tuple[int, Box]]] = {}
    receives: dict[Direction, list[tuple[int, Box]]] = {}
    copies = []
    for number_of_field, footprint in sorted(footprints.items()):
        points = subdomain.owned(fields[number_of_field])
        for direction, width in footprint:
            towards = subdomain.across(direction)
            source = subdomain.source(points, direction, width)
            target = subdomain.segment(points, direction, width)
            if not any(towards):
                along_rows = number_of_field in wraps and not any(direction[:-1])
                if subdomain.neighbour(direction) is not None and not along_rows:
                    copies.append(Copy(number_of_field, source, target))
                continue
            # the neighbour opposite receives from here what this rank receives from `direction`
            if subdomain.neighbour(_opposite(direction)) is not None:
                sends.setdefault(_opposite(towards), []).append((number_of_field, source))
            if subdomain.neighbour(direction) is not None:
                receives.setdefault(towards, []).append((number_of_field, target))

    def message(towards: Direction, sent: Direction, parts: list[tuple[int, Box]]) -> Message:
        peer = subdomain.neighbour(towards)
        assert peer is not None
        size = sum(box.size * ITEMSIZE[fields[f].dtype] for f, box in parts)
        return Message(peer, number * TAGS + _code(sent), towards, tuple(parts), size)

    return Exchange(
        tuple(message(d, d, parts) for d, parts in sorted(sends.items())),
        tuple(message(d, _opposite(d), parts) for d, parts in sorted(receives.items())),
        tuple(copies),
    )


def _opposite(direction: Direction) -> Direction:
    return tuple(-d for d in direction)


def _code(direction: Direction) -> int:
    """A number from 0 to 26 for a direction, the same for grids of any dimension."""
    return sum((d + 1) * 3**axis for axis, d in enumerate(direction))
