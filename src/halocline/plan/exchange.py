"""The messages and copies that fill halos from neighbours before a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from operator import sub

from halocline.compile.footprint import Direction
from halocline.compile.schedule import Schedule, Sweep
from halocline.lang.dtype import ITEMSIZE
from halocline.plan.box import Box
from halocline.plan.subdomain import Subdomain
from halocline.plan.transfer import Transfers

TAGS = 27  # per exchange, one for each direction in three dimensions


@dataclass(frozen=True)
class Message:
    """What one subdomain sends to another in one direction, as one message.

    Parameters
    ----------
    peer : int
        The subdomain at the other end.
    tag : int
        The same at both ends, another for every direction and exchange: two subdomains along a periodic
        axis are neighbours twice, and know by the tag which side a message is for.
    direction : tuple of int
        Where the peer lies, seen from this subdomain; 0 along axes that one subdomain spans.
    parts : tuple of (field, box)
        What is sent or received, in this order; boxes in this subdomain's own indices. They have equal
        shapes at both ends.
    sources : tuple of Box
        Of a received message: the same parts in the sender's indices.
    bytes : int
    method : str
        See `halocline.plan.transfer.METHODS`.
    packed : bool
        False where MPI takes the cells out of the field; see `halocline.plan.transfer.PACKING`.
    """

    peer: int
    tag: int
    direction: Direction
    parts: tuple[tuple[int, Box], ...]
    sources: tuple[Box, ...]
    bytes: int
    method: str
    packed: bool = True

    @property
    def code(self) -> int:
        """The direction in which the message leaves its sender, as a number below 27."""
        return self.tag % TAGS


@dataclass(frozen=True)
class Copy:
    """A halo segment of `field` that this rank copies: from the subdomain `subdomain`, perhaps around a
    periodic axis from the one that it is for. `source` is in that one's indices."""

    field: int
    source: Box
    target: Box
    subdomain: int
    bytes: int


@dataclass(frozen=True)
class Exchange:
    """Everything that is sent, received and copied for one subdomain before a sweep."""

    sends: tuple[Message, ...] = ()
    receives: tuple[Message, ...] = ()
    copies: tuple[Copy, ...] = ()


def exchange(
    subdomain: Subdomain, schedule: Schedule, number: int, sweep: Sweep, transfers: Transfers, wrapped: bool
) -> Exchange:
    """Plan the exchange of one subdomain before a sweep.

    Inactive cells of blocks are not sent, and subdomains without an active cell receive nothing: their halos
    are not read, and all others hold zeros there.

    Parameters
    ----------
    schedule : Schedule
        Has the fields, and the blocks of the grid.
    number : int
        Number of the sweep, which distinguishes this exchange from the others of the schedule.
    sweep : Sweep
        Its `exchange` has the halo segments to fill, the same on all subdomains.
    transfers : Transfers
    wrapped : bool
        True where the kernel wraps the rows of the fields in `Sweep.wraps` around itself: their ends need no
        copy.
    """
    own, fields, blocks = subdomain.number, schedule.fields, schedule.blocks
    wraps = sweep.wraps if wrapped else ()

    def neighbour(direction: Direction) -> int | None:
        peer = subdomain.neighbour(direction)
        if peer is None or peer == own or Subdomain(subdomain.decomposition, peer).active(blocks):
            return peer
        return None

    if not subdomain.active(blocks):
        return Exchange()
    sends: dict[Direction, list[tuple[int, Box]]] = {}
    receives: dict[Direction, list[tuple[int, Box, Box]]] = {}
    copies = []
    # directions of messages with parts along the last axis: one to this subdomain itself has no direction
    along_last: set[Direction] = set()
    for number_of_field, footprint in sorted(sweep.exchange.items()):
        field = fields[number_of_field]
        points = subdomain.owned(field)
        for direction, width in footprint:
            towards = subdomain.across(direction)
            lengthwise = {towards, _opposite(towards)} if direction[-1] else set()
            peer = neighbour(direction)
            along_rows = number_of_field in wraps and not any(direction[:-1])
            if peer is not None and not along_rows:
                there = Subdomain(subdomain.decomposition, peer) if peer != own else subdomain
                segment = subdomain.segment(points, direction, width)
                whole = there.source(there.owned(field), direction, width)
                for source in there.pieces(whole, blocks):
                    target = source.shift(tuple(map(sub, segment.lo, whole.lo)))
                    if transfers.copied(own, peer):
                        size = target.size * ITEMSIZE[field.dtype]
                        copies.append(Copy(number_of_field, source, target, peer, size))
                    else:
                        along_last |= lengthwise
                        receives.setdefault(towards, []).append((number_of_field, target, source))
            # the neighbour opposite receives from here what this subdomain receives from `direction`
            peer = neighbour(_opposite(direction))
            if peer is not None and not along_rows and not transfers.copied(own, peer):
                for source in subdomain.pieces(subdomain.source(points, direction, width), blocks):
                    along_last |= lengthwise
                    sends.setdefault(_opposite(towards), []).append((number_of_field, source))

    def message(
        towards: Direction, sent: Direction, parts: list[tuple[int, Box]], sources: list[Box]
    ) -> Message:
        peer = subdomain.neighbour(towards)
        assert peer is not None
        size = sum(box.size * ITEMSIZE[fields[f].dtype] for f, box in parts)
        code = sum((d + 1) * 3**axis for axis, d in enumerate(sent))  # below 27, in any dimension
        tag, method = number * TAGS + code, transfers.method(own, peer)
        packed = transfers.packed(method, sent in along_last)
        return Message(peer, tag, towards, tuple(parts), tuple(sources), size, method, packed)

    sent = tuple(message(d, d, parts, []) for d, parts in sorted(sends.items()))
    received = tuple(
        message(d, _opposite(d), [(f, box) for f, box, _ in parts], [source for _, _, source in parts])
        for d, parts in sorted(receives.items())
    )
    return Exchange(sent, received, tuple(copies))


def _opposite(direction: Direction) -> Direction:
    return tuple(-d for d in direction)
