"""Messages and copies that fill halos from neighbours before a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from operator import sub

from halocline.compile.footprint import Direction
from halocline.compile.schedule import Schedule, Sweep
from halocline.lang.dtype import ITEMSIZE
from halocline.plan.box import Box
from halocline.plan.subdomain import Subdomain
from halocline.plan.transfer import Transfers

TAGS = 27  # per exchange: one tag for each direction in three dimensions


@dataclass(frozen=True)
class Message:
    """Message from one subdomain to another in one direction.

    Parameters
    ----------
    peer : int
        The other subdomain.
    tag : int
        MPI tag, equal for sender and receiver, and different for every direction and exchange. Two subdomains
        may be neighbours on both sides of a periodic axis. The tag then identifies the side.
    direction : tuple of int
        Direction of the peer, relative to this subdomain; 0 along axes that one subdomain spans.
    parts : tuple of (field, box)
        Sent or received boxes, in message order and in the indices of this subdomain. Sender and receiver
        have boxes of equal shapes.
    sources : tuple of Box
        For a received message: the same boxes in the indices of the sender.
    bytes : int
        Size of the message.
    method : str
        Transfer method, a key of `halocline.plan.transfer.METHODS`.
    packed : bool
        False if MPI reads the cells directly from the field; see `halocline.plan.transfer.PACKING`.
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
        """Direction of the message, relative to its sender, as a number below 27."""
        return self.tag % TAGS


@dataclass(frozen=True)
class Copy:
    """Copy of a halo segment of `field` within this rank.

    The cells come from `subdomain`, which may be the target subdomain itself across a periodic axis. The box
    `source` is in the indices of `subdomain`.
    """

    field: int
    source: Box
    target: Box
    subdomain: int
    bytes: int


@dataclass(frozen=True)
class Exchange:
    """All messages and copies of one subdomain before a sweep."""

    sends: tuple[Message, ...] = ()
    receives: tuple[Message, ...] = ()
    copies: tuple[Copy, ...] = ()


def exchange(
    subdomain: Subdomain,
    schedule: Schedule,
    number: int,
    sweep: Sweep,
    transfers: Transfers,
    kernel_wraps: bool,
) -> Exchange:
    """Plan the exchange of one subdomain before a sweep.

    Inactive cells of blocks are not sent. Subdomains without an active cell receive nothing, because no
    kernel reads their halos. All other subdomains hold zeros in inactive halo cells.

    Parameters
    ----------
    schedule : Schedule
        Schedule with the fields and the blocks of the grid.
    number : int
        Index of the sweep in the schedule. The message tags of the exchange depend on this index, so that no
        two exchanges use the same tags.
    sweep : Sweep
        Sweep whose `exchange` contains the halo segments to fill. These segments are the same on all
        subdomains.
    transfers : Transfers
    kernel_wraps : bool
        True if the kernel wraps the rows of the fields in `Sweep.wraps` periodically. The ends of these rows
        need no copy.
    """
    this_subdomain, fields, blocks = subdomain.number, schedule.fields, schedule.blocks
    wraps = sweep.wraps if kernel_wraps else ()

    def neighbour(direction: Direction) -> int | None:
        peer = subdomain.neighbour(direction)
        if peer is None or peer == this_subdomain or Subdomain(subdomain.decomposition, peer).active(blocks):
            return peer
        return None

    if not subdomain.active(blocks):
        return Exchange()
    sends: dict[Direction, list[tuple[int, Box]]] = {}
    receives: dict[Direction, list[tuple[int, Box, Box]]] = {}
    copies = []
    # directions of messages with parts along the last axis; messages of a subdomain to itself have none
    along_last: set[Direction] = set()
    for number_of_field, footprint in sorted(sweep.exchange.items()):
        field = fields[number_of_field]
        points = subdomain.owned(field)
        for direction, width in footprint:
            peer_direction = subdomain.across(direction)
            lengthwise = {peer_direction, _opposite(peer_direction)} if direction[-1] else set()
            peer = neighbour(direction)
            along_rows = number_of_field in wraps and not any(direction[:-1])
            if peer is not None and not along_rows:
                peer_subdomain = (
                    Subdomain(subdomain.decomposition, peer) if peer != this_subdomain else subdomain
                )
                segment = subdomain.segment(points, direction, width)
                source_box = peer_subdomain.source(peer_subdomain.owned(field), direction, width)
                for source in peer_subdomain.pieces(source_box, blocks):
                    target = source.shift(tuple(map(sub, segment.lo, source_box.lo)))
                    if transfers.is_copied(this_subdomain, peer):
                        size = target.size * ITEMSIZE[field.dtype]
                        copies.append(Copy(number_of_field, source, target, peer, size))
                    else:
                        along_last |= lengthwise
                        receives.setdefault(peer_direction, []).append((number_of_field, target, source))
            # the neighbour opposite to `direction` receives the mirrored segment
            peer = neighbour(_opposite(direction))
            if peer is not None and not along_rows and not transfers.is_copied(this_subdomain, peer):
                for source in subdomain.pieces(subdomain.source(points, direction, width), blocks):
                    along_last |= lengthwise
                    sends.setdefault(_opposite(peer_direction), []).append((number_of_field, source))

    def message(
        peer_direction: Direction, sent: Direction, parts: list[tuple[int, Box]], sources: list[Box]
    ) -> Message:
        peer = subdomain.neighbour(peer_direction)
        assert peer is not None
        size = sum(box.size * ITEMSIZE[fields[f].dtype] for f, box in parts)
        code = sum((d + 1) * 3**axis for axis, d in enumerate(sent))  # below 27, in any dimension
        tag, method = number * TAGS + code, transfers.method(this_subdomain, peer)
        packed = transfers.is_packed(method, sent in along_last)
        return Message(peer, tag, peer_direction, tuple(parts), tuple(sources), size, method, packed)

    sent = tuple(message(d, d, parts, []) for d, parts in sorted(sends.items()))
    received = tuple(
        message(d, _opposite(d), [(f, box) for f, box, _ in parts], [source for _, _, source in parts])
        for d, parts in sorted(receives.items())
    )
    return Exchange(sent, received, tuple(copies))


def _opposite(direction: Direction) -> Direction:
    return tuple(-d for d in direction)
