"""Plan of one rank, as plain data: exchanges, boundary fills and patches of every sweep of a schedule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial, reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from halocline.compile.footprint import Direction, Footprint
from halocline.compile.schedule import FieldInfo, Loop, Operation, Schedule, Sweep
from halocline.errors import HaloclineError
from halocline.lang.blocks import Blocks
from halocline.lang.dtype import ITEMSIZE
from halocline.plan.box import Box, Layers
from halocline.plan.decompose import Decomposition
from halocline.plan.exchange import Copy, Exchange, Message, exchange
from halocline.plan.fills import FillBoxes, fill_boxes, needs
from halocline.plan.fit import check_fit
from halocline.plan.layout import Layout
from halocline.plan.patches import Patches, WorkingSet, cut_patches, scratch_bytes
from halocline.plan.subdomain import Subdomain
from halocline.plan.transfer import NEEDS_PROGRESS, Transfers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class FieldPlan:
    """Array of one field of a subdomain.

    Parameters
    ----------
    owned : Box
        Points that the subdomain computes: its cells, and one more layer at an upper wall of a staggered
        axis.
    storage : Box
        Owned points and their halo.
    bytes : int
        Size of `storage` without padding. With inactive blocks, only active blocks and their surroundings
        count.
    """

    name: str
    dtype: str
    owned: Box
    storage: Box
    bytes: int


@dataclass(frozen=True)
class HaloBox:
    """Box of halo cells that the halo kernel of a sweep computes.

    For `top` see the table of `Patches`. Bit i of `needs` is set if the box waits for the i-th received
    message. The flag `rims` is True if the box waits for the rims of the boundary fills.
    """

    box: Box
    top: tuple[int, ...]
    needs: int
    rims: bool


@dataclass(frozen=True, eq=False)
class SweepPlan:
    """Work of one sweep in one subdomain.

    Before the first patch, the engine packs all sends, makes all copies and computes the inner part (core) of
    each fill. Patches, halo boxes and the outer parts of fills (rims) then run as soon as their dependencies
    are complete.

    Parameters
    ----------
    sends, receives : tuple of Message
    copies : tuple of Copy
    fills : tuple of FillBoxes
    halos : tuple of HaloBox
    patch_needs : array (patches,) of uint32
        Bit i is set if the patch waits for the i-th received message.
    patch_rims : array (patches,) of bool
        True if the patch waits for the rims of the fills.
    scratch_bytes : int
        Scratch memory of each thread in bytes, sufficient for the largest patch.
    backward : bool
        True if threads process their patches in descending order. The order alternates between sweeps, so
        that each sweep starts with the data that the previous sweep left in the cache.
    in_place : bool
        True if the sweep overwrites cells that are sent before the sweep.
    """

    sends: tuple[Message, ...]
    receives: tuple[Message, ...]
    copies: tuple[Copy, ...]
    fills: tuple[FillBoxes, ...]
    halos: tuple[HaloBox, ...]
    patch_needs: NDArray[np.uint32]
    patch_rims: NDArray[np.bool_]
    scratch_bytes: int
    backward: bool
    in_place: bool

    @property
    def cores(self) -> list[tuple[int, Box]]:
        """Pairs of fill index and box, for the boxes that depend on no message."""
        return [(fill.fill, fill.core) for fill in self.fills if fill.core]

    @property
    def rims(self) -> list[tuple[int, Box]]:
        """Pairs of fill index and box, for the boxes that wait for messages."""
        return [(fill.fill, rim.box) for fill in self.fills for rim in fill.rims]

    @property
    def rim_needs(self) -> int:
        """Bit mask of the messages that the rims wait for."""
        return reduce(or_, (rim.needs for fill in self.fills for rim in fill.rims), 0)

    @property
    def halo_needs(self) -> list[int]:
        """Bit mask of the messages for which each halo box waits, directly or through the rims."""
        return [halo.needs | (self.rim_needs if halo.rims else 0) for halo in self.halos]

    @property
    def bytes_sent(self) -> int:
        """Bytes of all sent messages."""
        return sum(message.bytes for message in self.sends)

    @property
    def bytes_not_packed(self) -> int:
        """Bytes of sent messages that MPI reads from the fields, or that devices copy row by row."""
        return sum(message.bytes for message in self.sends if not message.packed)

    @property
    def bytes_received(self) -> int:
        """Bytes of all received messages."""
        return sum(message.bytes for message in self.receives)

    @property
    def bytes_copied(self) -> int:
        """Bytes of all copies within the rank."""
        return sum(copy.bytes for copy in self.copies)


@dataclass(frozen=True, eq=False)
class SubdomainPlan:
    """Plan of one subdomain: all data about its cells and neighbours that the engine requires.

    Parameters
    ----------
    decomposition : Decomposition
    number : int
    box : Box
        Cells of the subdomain in the indices of the grid. All other boxes are in the indices of the
        subdomain.
    fields : tuple of FieldPlan
        Plans of the fields, by field number.
    patches : Patches
        Patches, the same for all sweeps.
    sweeps : tuple of SweepPlan
        Plans of the sweeps, in the order of `Schedule.sweeps`.
    """

    decomposition: Decomposition
    number: int
    box: Box
    fields: tuple[FieldPlan, ...]
    patches: Patches
    sweeps: tuple[SweepPlan, ...]

    @property
    def neighbours(self) -> dict[Direction, int]:
        """Subdomain in each direction with messages."""
        return {
            message.direction: message.peer
            for sweep in self.sweeps
            for message in (*sweep.sends, *sweep.receives)
        }

    def arrivals(self, sweeps: slice) -> Iterator[tuple[int, Direction, int]]:
        """Yield source, direction of the source, and bytes for each message and copy in a range of sweeps."""
        for plan in self.sweeps[sweeps]:
            for message in plan.receives:
                yield message.peer, message.direction, message.bytes
            for copy in plan.copies:
                along = zip(copy.target.lo, copy.target.hi, self.box.shape, strict=True)
                direction = tuple(-1 if lo < 0 else int(hi > n and lo >= n) for lo, hi, n in along)
                yield copy.subdomain, direction, copy.bytes

    @property
    def memory(self) -> int:
        """Bytes of all fields with their halos."""
        return sum(field.bytes for field in self.fields)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as lists, numbers and strings for JSON."""
        return {
            "subdomain": self.number,
            "coordinates": self.decomposition.coordinates(self.number),
            "box": asdict(self.box),
            "neighbours": [
                {"direction": direction, "subdomain": peer}
                for direction, peer in sorted(self.neighbours.items())
            ],
            "memory_bytes": self.memory,
            "fields": [asdict(field) for field in self.fields],
            "patches": {
                "edges": self.patches.edges,
                "ranges": self.patches.ranges,
                "table": self.patches.table.tolist(),
            },
            "sweeps": [
                {
                    **asdict(sweep),
                    "bytes_sent": sweep.bytes_sent,
                    "bytes_not_packed": sweep.bytes_not_packed,
                    "bytes_received": sweep.bytes_received,
                    "patch_needs": sweep.patch_needs.tolist(),
                    "patch_rims": sweep.patch_rims.tolist(),
                }
                for sweep in self.sweeps
            ],
        }


@dataclass(frozen=True, eq=False)
class RankPlan:
    """Plan of one rank.

    Parameters
    ----------
    transfers : Transfers
    rank : int
    subdomains : tuple of SubdomainPlan
        Plans of the subdomains, in the order of the rank; see `Layout.subdomains_of`.
    threads : int
    """

    transfers: Transfers
    rank: int
    subdomains: tuple[SubdomainPlan, ...]
    threads: int

    @property
    def layout(self) -> Layout:
        """Layout of subdomains on ranks."""
        return self.transfers.layout

    @property
    def decomposition(self) -> Decomposition:
        """Decomposition of the grid."""
        return self.layout.decomposition

    @property
    def memory(self) -> int:
        """Bytes of all fields with their halos."""
        return sum(plan.memory for plan in self.subdomains)

    @property
    def mailbox_bytes(self) -> int:
        """Total bytes of the mailboxes for messages of the method "rma".

        There is one mailbox per neighbour, with the size of the largest message to this neighbour.
        """
        largest: dict[tuple[int, Direction], int] = {}
        for plan in self.subdomains:
            for message in (m for sweep in plan.sweeps for m in sweep.sends if m.method == "rma"):
                mailbox = plan.number, message.direction
                largest[mailbox] = max(largest.get(mailbox, 0), message.bytes)
        return sum(largest.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as lists, numbers and strings for JSON."""
        return {
            "rank": self.rank,
            "decomposition": asdict(self.decomposition),
            "node": self.layout.node(self.rank),
            "methods": self.transfers.methods,
            "threads": self.threads,
            "memory_bytes": self.memory,
            "subdomains": [plan.to_dict() for plan in self.subdomains],
        }


def plan_rank(
    schedule: Schedule,
    transfers: Transfers,
    rank: int,
    *,
    patch: int | Sequence[int] | Mapping[str, int] | None = None,
    threads: int = 1,
    cache: int | None = None,
) -> RankPlan:
    """Return the plan of one rank. The cost of this call does not depend on the number of ranks.

    Parameters
    ----------
    transfers : Transfers
        Layout of subdomains on ranks, and transfer methods.
    patch, threads, cache
        See `halocline.plan.patches.cut_patches`.

    Raises
    ------
    InputError
        A subdomain is too thin for the reads of the schedule, or the patch shape is invalid.
    """
    patch_options = {"patch": patch, "threads": threads, "cache": cache}
    owned = transfers.layout.subdomains_of(rank)
    plans = tuple(plan_subdomain(schedule, transfers, number, **patch_options) for number in owned)
    return RankPlan(transfers, rank, plans, threads)


def plan_subdomain(
    schedule: Schedule, transfers: Transfers, number: int, **patch_options: Any
) -> SubdomainPlan:
    """Return the plan of one subdomain.

    Parameters
    ----------
    **patch_options
        Arguments `patch`, `threads` and `cache` of `halocline.plan.patches.cut_patches`.

    Raises
    ------
    InputError
        A subdomain is too thin for the reads of the schedule, or the patch shape is invalid.
    """
    decomposition = transfers.layout.decomposition
    check_fit(schedule, decomposition)
    subdomain = Subdomain(decomposition, number)
    sweeps, blocks, kernel_wraps = list(schedule.sweeps()), schedule.blocks, wraps_rows(transfers)
    exchanges = [
        exchange(subdomain, schedule, n, sweep, transfers, kernel_wraps) for n, sweep in enumerate(sweeps)
    ]
    messages = [
        message for halo_exchange in exchanges for message in (*halo_exchange.sends, *halo_exchange.receives)
    ]
    patches = cut_patches(
        subdomain,
        [WorkingSet.of(schedule, sweep) for sweep in sweeps],
        _received_layers(schedule, exchanges),
        ends=_wrap_widths(schedule) if kernel_wraps else (0, 0),
        blocks=blocks,
        polled=any(message.method in NEEDS_PROGRESS for message in messages),
        device=schedule.device is not None,
        **patch_options,
    )
    patches_reading = functools.cache(
        partial(_patches_reading, patches)
    )  # cached, because a sweep reads the same segments of several fields
    fields = tuple(_plan_field(subdomain, field, blocks) for field in schedule.fields)
    plans = tuple(
        _plan_sweep(schedule, sweep, subdomain, transfers, halo_exchange, patches, patches_reading, backward)
        for sweep, halo_exchange, backward in zip(
            sweeps, exchanges, _directions(schedule.operations), strict=True
        )
    )
    return SubdomainPlan(decomposition, number, subdomain.box, fields, patches, plans)


def wraps_rows(transfers: Transfers) -> bool:
    """Return True if kernels may wrap rows periodically (`Sweep.wraps`).

    This requires that each subdomain is its own neighbour along the rows, and may copy from itself.
    """
    return transfers.layout.decomposition.parts[-1] == 1 and "self" in transfers.methods


def _directions(operations: tuple[Operation, ...]) -> Iterator[bool]:
    """Yield `SweepPlan.backward` of every sweep, in program order.

    In the program and in each loop body, the first sweep that computes values runs forward.
    """
    backward = True
    for operation in operations:
        if isinstance(operation, Sweep):
            backward = backward != operation.computes
            yield backward
        elif isinstance(operation, Loop):
            yield from _directions(operation.body)


def _wrap_widths(schedule: Schedule) -> tuple[int, int]:
    """Return the numbers of cells that kernels fill before and after each row that wraps around."""
    reads = (sweep.reads[field] for sweep in schedule.sweeps() for field in sweep.wraps)
    return reduce(or_, reads, Footprint()).layers(schedule.ndim)[-1]


def _patches_reading(patches: Patches, box: Box, layers: Layers) -> NDArray[np.bool_]:
    """Return a mask of the patches that read any cell of a box; `layers` are the reads of one cell."""
    reach = box.grow([(above, below) for below, above in layers])
    axes = zip(*patches.table.transpose(1, 2, 0), reach.lo, reach.hi, strict=True)
    return reduce(and_, [(lo < end) & (hi + top > first) for lo, hi, top, first, end in axes])


def _plan_sweep(
    schedule: Schedule,
    sweep: Sweep,
    subdomain: Subdomain,
    transfers: Transfers,
    halo_exchange: Exchange,
    patches: Patches,
    patches_reading: Callable[[Box, Layers], NDArray[np.bool_]],
    backward: bool,
) -> SweepPlan:
    """Return the plan of one sweep."""
    import numpy as np  # imported here: readers of plans do not require NumPy

    fills = fill_boxes(
        subdomain, schedule.fields, sweep.fills, halo_exchange.receives, transfers, schedule.blocks
    )
    rims: dict[int, list[Box]] = {}
    for fill in fills:
        rims.setdefault(sweep.fills[fill.fill].field, []).extend(rim.box for rim in fill.rims)
    arriving: dict[tuple[Direction, int], list[tuple[int, Box]]] = {}
    for i, message in enumerate(halo_exchange.receives):
        for field, box in message.parts:
            arriving.setdefault((message.direction, field), []).append((i, box))

    patch_needs = np.zeros(len(patches), dtype=np.uint32)
    patch_rims = np.zeros(len(patches), dtype=np.bool_)
    for field, footprint in sweep.reads.items():
        points = subdomain.owned(schedule.fields[field])
        for direction, width in footprint:
            segment = subdomain.segment(points, direction, width)
            messages = arriving.get((subdomain.across(direction), field), ())
            bits = [i for i, box in messages if box.intersect(segment)]
            # one more layer above if there are more points than cells
            above = segment.grow([(0, p - c) for p, c in zip(points.hi, subdomain.shape, strict=True)])
            boxes = [box for rim in rims.get(field, ()) if (box := rim.intersect(above))]
            if not (bits or boxes):
                continue
            reading = patches_reading(segment, tuple((w, w) for w in width))
            for i in bits:
                patch_needs |= reading.astype(np.uint32) << np.uint32(i)
            for box in boxes:
                patch_rims |= reading & patches_reading(box, footprint.layers(schedule.ndim))
    patch_needs.setflags(write=False)
    patch_rims.setflags(write=False)

    _check_storage(schedule, subdomain, sweep, halo_exchange, fills)
    return SweepPlan(
        halo_exchange.sends,
        halo_exchange.receives,
        halo_exchange.copies,
        fills,
        tuple(_halo_boxes(schedule, sweep, subdomain, halo_exchange.receives, rims)),
        patch_needs,
        patch_rims,
        scratch_bytes(sweep, patches),
        backward,
        any(field in sweep.exchange for field in sweep.overwrites),
    )


def _halo_boxes(
    schedule: Schedule,
    sweep: Sweep,
    subdomain: Subdomain,
    receives: tuple[Message, ...],
    rims: Mapping[int, Sequence[Box]],
) -> Iterator[HaloBox]:
    """Yield the boxes of the halo kernel: the halo segments in its extent that a neighbour owns."""
    if sweep.halo_kernel is None:
        return
    for direction, width in sweep.halo_extent:
        if subdomain.neighbour(direction) is None:
            continue
        box = subdomain.segment(subdomain.cells, direction, width)
        top = tuple(int(not d and wall) for d, (_, wall) in zip(direction, subdomain.walls, strict=True))
        computed = box.grow([(0, t) for t in top])
        read = {
            field: computed.grow(footprint.layers(schedule.ndim)) for field, footprint in sweep.reads.items()
        }
        waits = any(rim.intersect(read[field]) for field in read for rim in rims.get(field, ()))
        yield HaloBox(box, top, needs(receives, read), waits)


def _received_layers(schedule: Schedule, exchanges: Sequence[Exchange]) -> Layers:
    """Return the depth (lower, upper) of received messages along each axis."""
    messages = [message for halo_exchange in exchanges for message in halo_exchange.receives]
    segments = ((message.direction, box.shape) for message in messages for _, box in message.parts)
    return Footprint.of(segments).layers(schedule.ndim)


def _plan_field(subdomain: Subdomain, field: FieldInfo, blocks: Blocks | None) -> FieldPlan:
    owned = subdomain.owned(field)
    storage = owned.grow(field.halo)
    points = sum(piece.grow(field.halo).size for piece in subdomain.pieces(owned, blocks))
    size = min(points, storage.size) * ITEMSIZE[field.dtype]
    return FieldPlan(field.name, field.dtype, owned, storage, size)


def _check_storage(
    schedule: Schedule,
    subdomain: Subdomain,
    sweep: Sweep,
    halo_exchange: Exchange,
    fills: tuple[FillBoxes, ...],
) -> None:
    """Raise HaloclineError if a message, copy or fill would write outside the memory of a field."""
    written = [(field, box) for message in halo_exchange.receives for field, box in message.parts]
    written += [(copy.field, copy.target) for copy in halo_exchange.copies]
    for fill in fills:
        written += [(sweep.fills[fill.fill].field, box) for box in (fill.core, *(r.box for r in fill.rims))]
    for number, box in written:
        field = schedule.fields[number]
        storage = subdomain.owned(field).grow(field.halo)
        if not box <= storage:
            raise HaloclineError(
                f"sweep {sweep.kernel!r} fills field {field.name!r} from {box.lo} to {box.hi}, but its "
                f"memory spans {storage.lo} to {storage.hi}: the schedule allocates too narrow a halo"
            )
