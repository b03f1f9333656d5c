"""Discrete-event simulation of a plan, with the rates of a machine file.

Each rank executes one operation at a time, for all of its subdomains. At the beginning of a sweep, the rank
packs cells, posts messages and makes copies. The rank then unpacks messages that have arrived, and computes
patches whose messages are unpacked. Patches that wait for the same messages form one piece of work. A rank
with GPUs makes calls on the host, and each call takes the time of a kernel launch. Each GPU executes the
kernels that pack, unpack and copy one after another.

Messages between two ranks use the transfer method of the pair (`halocline.plan.transfer`). Most messages are
packed and sent. With `rma`, a message is packed and announced, and the receiver fetches it. With `colocated`,
the receiver copies the message directly from the cells of the sender. The sender must not overwrite these
cells before the copy ends. Between GPUs, a `colocated` message is packed, copied and unpacked without MPI. An
`mpi` message between GPUs is copied to the host, sent, and copied from the host. Each message waits for each
link and network card of its route, and occupies the link or card until the last byte has passed. The first
byte continues to the next link before the last byte arrives.

A reduction ends when the last rank has entered the reduction and all hops of a tree are complete. The
schedule defines the sweeps that wait for the result. Without latency and without shared links, the result
equals the closed formula of `halocline.model.formula`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count
from math import prod
from typing import Any

from halocline.compile.footprint import Direction
from halocline.compile.schedule import Schedule, Sweep
from halocline.errors import InputError
from halocline.model.rates import Rates, memory_of_node
from halocline.model.routes import COPIED, Routes, Travel
from halocline.plan.exchange import Copy, Message
from halocline.plan.layout import Layout
from halocline.plan.machine import Machine
from halocline.plan.rank import SubdomainPlan, SweepPlan, plan_subdomain
from halocline.plan.trace import TraceEvent
from halocline.plan.transfer import DEFAULT, Transfers, chosen_methods


@dataclass
class Prediction:
    """Predicted times and events of several passes of the loop.

    Attributes
    ----------
    seconds : float
        Mean time of a pass, in seconds, without the first pass.
    ends : list of float
        End time of each pass on the last rank, in seconds.
    spans : list of TraceEvent
        Events and messages of the traced ranks.
    """

    seconds: float
    ends: list[float]
    spans: list[TraceEvent] = field(default_factory=list)


@dataclass(frozen=True)
class _Share:
    """Work of one sweep, for a subdomain or for all subdomains of a rank.

    Subdomains with the same shape, walls and transfer methods share one object. The peer of a message is
    valid for only one of these subdomains, but the direction of a message is valid for all of them. Each
    message is stored with the index of its subdomain on the rank.
    """

    sweep: Sweep
    sends: tuple[tuple[int, Message], ...]
    receives: tuple[tuple[int, Message], ...]
    copying: float  # Seconds of the copies by the rank itself.
    copies: tuple[tuple[int, int, int], ...]  # Copies by devices of the rank: source, target, bytes.
    pieces: tuple[tuple[int, float], ...]  # Pieces of work: required messages (as bits), and seconds.
    in_place: bool

    @property
    def name(self) -> str:
        """Name of the sweep in traces."""
        return " and ".join(self.sweep.names) or self.sweep.kernel

    @cached_property
    def numbers(self) -> dict[tuple[int, Direction], int]:
        """Index of each receive, by subdomain of the rank and direction."""
        return {(local, message.direction): n for n, (local, message) in enumerate(self.receives)}

    @classmethod
    def of_rank(cls, shares: Sequence[_Share]) -> _Share:
        """Return the combined work of all subdomains of a rank."""
        if len(shares) == 1:
            return shares[0]
        pieces: dict[int, float] = {}
        first = 0
        for share in shares:
            for needs, seconds in share.pieces:
                pieces[needs << first] = pieces.get(needs << first, 0.0) + seconds
            first += len(share.receives)
        first_share, copying = shares[0], sum(share.copying for share in shares)
        copies = tuple(copy for share in shares for copy in share.copies)
        sends = tuple((local, m) for local, share in enumerate(shares) for _, m in share.sends)
        receives = tuple((local, m) for local, share in enumerate(shares) for _, m in share.receives)
        return cls(
            first_share.sweep, sends, receives, copying, copies, _in_order(pieces), first_share.in_place
        )


def _in_order(pieces: dict[int, float]) -> tuple[tuple[int, float], ...]:
    """Return pieces of work, sorted by the number of required messages."""
    return tuple(sorted(pieces.items(), key=lambda piece: (piece[0].bit_count(), piece[0])))


def execute(
    schedule: Schedule,
    layout: Layout,
    machine: Machine,
    *,
    rates: Rates | None = None,
    methods: Iterable[str] | str | None = None,
    packing: str = "all",
    passes: int = 3,
    overlap: bool = True,
    traced: Sequence[int] = (),
    patch: int | Sequence[int] | None = None,
) -> Prediction:
    """Predict the time of one pass of the outermost loop, or of the whole program if it has no loop.

    Parameters
    ----------
    schedule : Schedule
    layout : Layout
        Distribution of the subdomains over the ranks. Subdomains share devices if a node has more subdomains
        than devices.
    machine : Machine
    rates : Rates, optional
        Rates of a rank; by default the rates of the machine.
    methods : str or iterable of str, optional
        Allowed transfer methods, as in a run; see `halocline.plan.chosen_methods`.
    packing : str
        Selection of the MPI messages that are packed; see `halocline.plan.transfer.PACKING`.
    passes : int
        Number of passes, at least two.
    overlap : bool
        True to compute patches that need no message while messages are in transit.
    traced : sequence of int
        Ranks whose events are recorded.
    patch : int or sequence of int, optional
        See `halocline.plan.plan_rank`.

    Raises
    ------
    InputError
        The layout needs more nodes than the machine has, there are fewer than two passes, or a method is
        unknown.
    """
    if layout.nodes > machine.nodes:
        raise InputError(
            f"{layout.ranks} ranks ({layout.ranks_per_node} per node) need {layout.nodes} nodes, but machine "
            f"{machine.name!r} has {machine.nodes}. Use fewer nodes, or more ranks per node."
        )
    if passes < 2:
        raise InputError(f"passes is {passes}; expected at least 2, because the first pass is not counted")
    allowed_methods = DEFAULT if methods is None else chosen_methods(methods)
    if rates is None:
        memory = memory_of_node(schedule, layout)
        rates = Rates.of(machine, layout.ranks_per_node, layout.subdomains_per_rank, memory)
    transfers = Transfers(layout, allowed_methods, packing)
    plan = partial(plan_subdomain, schedule, transfers, patch=patch)
    work = _Work(schedule, transfers, machine, rates, plan)
    return _Run(work, Routes(machine, layout), overlap, frozenset(traced))(passes)


class _Work:
    """Work of each rank in each sweep of a pass."""

    def __init__(
        self,
        schedule: Schedule,
        transfers: Transfers,
        machine: Machine,
        rates: Rates,
        plan: Callable[[int], SubdomainPlan],
    ) -> None:
        self.schedule, self.transfers, self.machine, self.rates = schedule, transfers, machine, rates
        self.plan = plan
        self.layout, self.cut = transfers.layout, transfers.layout.decomposition
        self.sweeps, self.waits = list(schedule.pass_sweeps()), schedule.pass_waits()
        self.pulls = (
            machine.device.kind == "cpu"
        )  # ranks copy cells, also from the memory of colocated senders
        self.directions = sorted(
            {d for s in self.sweeps for footprint in s.exchange.values() for d, _ in footprint}
        )
        self.kinds: dict[tuple[object, ...], tuple[_Share, ...]] = {}
        self.ranks: dict[tuple[tuple[object, ...], ...], tuple[_Share, ...]] = {}

    def of_rank(self, rank: int) -> tuple[_Share, ...]:
        """Return the work of a rank in each sweep of a pass."""
        owned = self.layout.subdomains_of(rank)
        kinds = tuple(self._kind(subdomain) for subdomain in owned)
        if kinds not in self.ranks:
            parts = [
                self._shares_of_kind(kind, subdomain) for kind, subdomain in zip(kinds, owned, strict=True)
            ]
            self.ranks[kinds] = tuple(_Share.of_rank(shares) for shares in zip(*parts, strict=True))
        return self.ranks[kinds]

    def _kind(self, subdomain: int) -> tuple[object, ...]:
        """Return the properties that determine the work of a subdomain.

        The properties are the shape, the walls, and the methods of all neighbours. If a rank has several
        subdomains, the device is another property, because the rank copies between its devices. If blocks of
        the grid are inactive, the number of the subdomain is the only property.
        """
        if self.schedule.blocks is not None:
            return (subdomain,)
        cut = self.cut
        neighbours = [cut.neighbour(subdomain, direction) for direction in self.directions]
        methods = tuple(
            None if peer is None else self.transfers.method(subdomain, peer) for peer in neighbours
        )
        slot = self.layout.slot(subdomain)[1] if self.layout.subdomains_per_rank > 1 else None
        coordinates = cut.coordinates(subdomain)
        walls = tuple((c == 0, c == p - 1) for c, p in zip(coordinates, cut.parts, strict=True))
        return cut.box(subdomain).shape, walls, methods, slot

    def _shares_of_kind(self, kind: tuple[object, ...], subdomain: int) -> tuple[_Share, ...]:
        if kind not in self.kinds:
            plan = self.plan(subdomain)
            pairs = zip(self.sweeps, plan.sweeps[self.schedule.pass_numbers()], strict=True)
            self.kinds[kind] = tuple(self._share_of_sweep(sweep, todo, plan) for sweep, todo in pairs)
        return self.kinds[kind]

    def _share_of_sweep(self, sweep: Sweep, todo: SweepPlan, plan: SubdomainPlan) -> _Share:
        # A sweep that runs only in some passes counts in each pass with its average work.
        seconds = self.rates.per_cell(sweep, self.schedule.dtype_of(sweep)) * sweep.share
        table = plan.patches.table
        cells = (table[:, 1, :] - table[:, 0, :]).prod(axis=1)
        pieces: dict[int, float] = {}
        for needs, size in zip(todo.patch_needs.tolist(), cells.tolist(), strict=True):
            pieces[needs] = pieces.get(needs, 0.0) + size * seconds
        sends = tuple((0, message) for message in todo.sends)
        receives = tuple((0, message) for message in todo.receives)
        copied_bytes: dict[tuple[int, int], int] = {}
        for copy in todo.copies:
            ends = self._device(copy.subdomain), self._device(plan.number)
            copied_bytes[ends] = copied_bytes.get(ends, 0) + _bytes_per_pass(copy, sweep)
        copying, copies = 0.0, tuple((*ends, size) for ends, size in copied_bytes.items())
        if self.pulls:
            copying, copies = sum(size / self._copying(a, b) for a, b, size in copies), ()
        return _Share(sweep, sends, receives, copying, copies, _in_order(pieces), todo.in_place)

    def is_copied_by_receiver(self, message: Message) -> bool:
        """Return True if the receiver copies a message directly from the cells of the sender."""
        return self.pulls and message.method == "colocated"

    def unpacking_time(self, message: Message, sweep: Sweep) -> float:
        """Return the seconds to unpack a message, or the minimum seconds of its copy by the receiver."""
        rate = self.rates.copying if self.is_copied_by_receiver(message) else None
        # With `rma`, the receiver fetches the message from a mailbox and sends an acknowledgement.
        calls = {"colocated": 0, "rma": 2}.get(message.method, 1)
        return sweep.share * (
            message.bytes / (rate or self.rates.packing) + calls * self.machine.network.overhead
        )

    def _device(self, subdomain: int) -> int:
        return self.machine.device_of(self.layout.slot(subdomain)[1], self.layout.slots_per_node)

    def _copying(self, a: int, b: int) -> float:
        """Return the bytes per second at which a rank copies from one processor to another."""
        return self.rates.packing if a == b else min(self.rates.packing, self.machine.bandwidth(a, b))


def _calls(message: Message) -> int:
    """Return the number of host calls with which a device sends or receives a message.

    The calls start the kernel that packs or unpacks. If MPI does not access device memory, they also start a
    copy.
    """
    return int(message.packed) + int(message.method != "gpu_aware")


def _rows(message: Message) -> int:
    """Return the number of rows of cells that MPI or a copy reads separately from the fields."""
    if message.packed:
        return 0
    return sum(prod(box.shape[:-1]) for _, box in message.parts)


def _bytes_per_pass(transfer: Message | Copy, sweep: Sweep) -> int:
    """Return the bytes of a message or copy per pass. The sweep may run only in some of the passes."""
    return round(transfer.bytes * sweep.share)


class _Run:
    """State of all ranks during an execution."""

    def __init__(self, work: _Work, routes: Routes, overlap: bool, traced: frozenset[int]) -> None:
        self.work, self.routes, self.overlap, self.traced = work, routes, overlap, traced
        self.layout, self.cut = work.layout, work.cut
        ranks = range(self.layout.ranks)
        self.home = [self.layout.home(subdomain) for subdomain in range(self.cut.count)]
        self.subdomains_of_rank = [self.layout.subdomains_of(rank) for rank in ranks]
        self.shares = [work.of_rank(rank) for rank in ranks]
        self.sweeps = len(work.sweeps)
        self.events: list[tuple[float, int, Callable[[float], None]]] = []  # Time, order, action.
        self.order = count()
        self.current_sweep = [0] * len(ranks)  # Index of the sweep of each rank, over all passes.
        self.arrived: list[list[int]] = [[] for _ in ranks]  # Arrived messages, not unpacked.
        # Arrived messages of later sweeps.
        self.arrived_early: list[dict[int, list[int]]] = [{} for _ in ranks]
        self.unpacked = [0] * len(ranks)  # Unpacked messages of the sweep, as bits.
        self.remaining_pieces: list[list[tuple[int, float]]] = [[] for _ in ranks]
        self.copying = [0] * len(ranks)  # Number of active copies between devices.
        self.serial_messages: list[list[Travel]] = [[] for _ in ranks]  # Messages sent one after another.
        self.pending_copies: list[dict[int, int]] = [
            {} for _ in ranks
        ]  # Pending copies by neighbours, by sweep.
        self.busy = [True] * len(ranks)
        self.pending_reduction: list[int | None] = [None] * len(ranks)  # Sweep with the pending reduction.
        self.ranks_in_reduction: dict[int, int] = {}  # Number of ranks in a reduction, by sweep.
        self.result_times: dict[int, float] = {}  # Time of the result, by sweep.
        self.waiting: dict[int, list[tuple[int, float]]] = {}  # Waiting ranks and start times, by sweep.
        self.spans: list[TraceEvent] = []

    def __call__(self, passes: int) -> Prediction:
        self.total_sweeps = passes * self.sweeps
        self.pass_ends = [0.0] * passes
        for rank in range(self.layout.ranks):
            self._begin(rank, 0.0)
        while self.events:
            time, _, action = heapq.heappop(self.events)
            action(time)
        seconds = (self.pass_ends[-1] - self.pass_ends[0]) / (passes - 1)
        return Prediction(seconds, self.pass_ends, self.spans)

    def _schedule(self, time: float, event: Callable[..., None], *arguments: Any) -> None:
        """Schedule a call of a method with the given arguments and the time."""
        action: Callable[[float], None] = partial(event, *arguments)
        heapq.heappush(self.events, (time, next(self.order), action))

    def _share(self, rank: int) -> _Share:
        return self.shares[rank][self.current_sweep[rank] % self.sweeps]

    def _record(self, rank: int, kind: str, name: str, begin: float, end: float) -> None:
        if rank in self.traced and end > begin:
            self.spans.append(TraceEvent(rank, 0, kind, f"{self._share(rank).name}: {name}", begin, end))

    # --- events ---

    def _begin(self, rank: int, current_time: float) -> None:
        """Begin a sweep: announce cells for receivers to copy, pack and post other messages, make copies."""
        share, sweep = self._share(rank), self.current_sweep[rank]
        rates, part = self.work.rates, share.sweep.share
        overhead = part * self.routes.machine.network.overhead
        self.busy[rank] = True
        self.unpacked[rank] = 0
        self.arrived[rank] = self.arrived_early[rank].pop(sweep, [])
        self.remaining_pieces[rank] = list(share.pieces)
        time = current_time + part * rates.begin
        if not self.work.pulls:
            self._schedule(self._launch(rank, time), self._continue, rank)
            return
        for n, (_, send) in enumerate(share.sends):
            if self.work.is_copied_by_receiver(send):
                self.pending_copies[rank][sweep] = self.pending_copies[rank].get(sweep, 0) + 1
                self._schedule(current_time, self._send, rank, sweep, n)
                continue
            packing_end = time + _bytes_per_pass(send, share.sweep) / rates.packing
            self._record(rank, "pack", "pack", time, packing_end)
            time = packing_end + (0.0 if send.method == "colocated" else overhead)
            self._record(rank, "pack", "send", packing_end, time)
            self._schedule(packing_end, self._send, rank, sweep, n)
        self._record(rank, "copy", "copy", time, time + share.copying)
        self._schedule(time + share.copying, self._continue, rank)

    def _launch(self, rank: int, current_time: float) -> float:
        """Start packing and copies on the devices of a rank, in the order of the host calls.

        Return the end time of the calls.
        """
        share, sweep, time = self._share(rank), self.current_sweep[rank], current_time
        launch = share.sweep.share * self.routes.machine.device.launch
        overhead = share.sweep.share * self.routes.machine.network.overhead
        for n, (_, send) in enumerate(share.sends):
            time += launch * _calls(send)
            self._schedule(time, self._pack, rank, sweep, n)
            time += 0.0 if send.method == "colocated" else overhead
        self._record(rank, "pack", "launch", current_time, time)
        self.copying[rank] = len(share.copies)
        for copy in share.copies:
            time += launch
            self._schedule(time, self._copy, rank, copy)
        return time

    def _pack(self, rank: int, sweep: int, n: int, current_time: float) -> None:
        """Pack a message on a device, and send the message when the kernel has ended."""
        share = self.shares[rank][sweep % self.sweeps]
        local, send = share.sends[n]
        end = current_time
        if send.packed:
            seconds = _bytes_per_pass(send, share.sweep) / self.work.rates.packing
            _, end = self.routes.queue_kernel(self.subdomains_of_rank[rank][local], current_time, seconds)
        self._schedule(end, self._send, rank, sweep, n)

    def _copy(self, rank: int, copy: tuple[int, int, int], current_time: float) -> None:
        """Start a copy within a device, or from the memory of another device."""
        a, b, size = copy
        home = self.subdomains_of_rank[rank][0]
        if a == b:
            begin, end = self.routes.queue_kernel(
                home, current_time, size / self.work.rates.packing, device=a
            )
            self._record(rank, "copy", "copy", begin, end)
            self._schedule(end, self._finish_copy, rank)
            return
        hops = self.routes.hops_within_node(a, b)
        self._schedule(
            current_time,
            self._cross_hop,
            Travel(
                home, home, self.current_sweep[rank], COPIED, size, hops, current_time, current_time, False
            ),
        )

    def _finish_copy(self, rank: int, current_time: float) -> None:
        """End a copy between devices."""
        self.copying[rank] -= 1
        if not self.busy[rank]:
            self._continue(rank, current_time)

    def _send(self, rank: int, sweep: int, n: int, current_time: float) -> None:
        """Send a message, or announce cells that the receiver copies."""
        share = self.shares[rank][sweep % self.sweeps]
        local, send = share.sends[n]
        subdomain = self.subdomains_of_rank[rank][local]
        peer = self._peer(subdomain, send)
        peer_rank, local = self.home[peer]
        numbers = self.shares[peer_rank][sweep % self.sweeps].numbers
        number = numbers[local, tuple(-d for d in send.direction)]
        hops, latency = self.routes.hops_between(subdomain, peer, send.method)
        if self.work.is_copied_by_receiver(send):
            self._schedule(current_time + latency, self._deliver, peer_rank, sweep, number)
            return
        # With `rma`, a signal and a request precede the data.
        departure = current_time + (2 * latency if send.method == "rma" else 0.0)
        size = _bytes_per_pass(send, share.sweep)
        part = share.sweep.share
        message = Travel(
            subdomain, peer, sweep, number, size, hops, current_time, departure, False, part, _rows(send)
        )
        aware = self.routes.machine.aware if send.method == "gpu_aware" else None
        if aware is not None and aware.serial:
            message.is_serial = True
            self.serial_messages[rank].append(message)
            if len(self.serial_messages[rank]) > 1:
                return
        self._schedule(departure + (0.0 if aware is None else part * aware.setup), self._cross_hop, message)

    def _peer(self, subdomain: int, message: Message) -> int:
        """Return the other end of a message of a subdomain."""
        peer = self.cut.neighbour(subdomain, message.direction)
        assert peer is not None
        return peer

    def _cross_hop(self, message: Travel, current_time: float) -> None:
        """Move a message across its next link, and deliver it after the last one."""
        arrival = self.routes.cross(message, current_time)
        if message.hops_passed < len(message.hops):
            self._schedule(arrival, self._cross_hop, message)
            return
        sender, receiver = self.home[message.sender][0], self.home[message.receiver][0]
        if message.number == COPIED:
            self._record(receiver, "copy", "copy", message.begin, message.earliest_arrival)
            self._schedule(message.earliest_arrival, self._finish_copy, receiver)
            return
        if message.is_serial:
            self._schedule(message.earliest_arrival, self._send_next, sender)
        if message.is_pulled:
            self._record(receiver, "unpack", f"from rank {sender}", message.begin, message.earliest_arrival)
            self._schedule(message.earliest_arrival, self._finish_message, receiver, message.number)
            return
        if receiver in self.traced:
            name = f"{self.shares[receiver][message.sweep % self.sweeps].name}: from rank {sender}"
            self.spans.append(
                TraceEvent(receiver, 1, "message", name, message.begin, message.earliest_arrival)
            )
        self._schedule(message.earliest_arrival, self._deliver, receiver, message.sweep, message.number)

    def _send_next(self, rank: int, current_time: float) -> None:
        """Send the next message of a rank, after the previous one has arrived."""
        self.serial_messages[rank].pop(0)
        if self.serial_messages[rank]:
            aware = self.routes.machine.aware
            assert aware is not None
            message = self.serial_messages[rank][0]
            message.begin, message.earliest_arrival = current_time, current_time + message.share * aware.setup
            self._schedule(message.earliest_arrival, self._cross_hop, message)

    def _deliver(self, rank: int, sweep: int, number: int, current_time: float) -> None:
        if sweep != self.current_sweep[rank]:
            self.arrived_early[rank].setdefault(sweep, []).append(number)
            return
        self.arrived[rank].append(number)
        if not self.busy[rank]:
            self._continue(rank, current_time)

    def _release_cells(self, rank: int, sweep: int, current_time: float) -> None:
        """Record that a neighbour has copied cells, so that the rank may overwrite them."""
        self.pending_copies[rank][sweep] -= 1
        if not self.pending_copies[rank][sweep]:
            del self.pending_copies[rank][sweep]
        if not self.busy[rank]:
            self._continue(rank, current_time)

    def _finish_message(self, rank: int, number: int, current_time: float) -> None:
        """End the unpacking or copying of a message."""
        self.unpacked[rank] |= 1 << number
        local, message = self._share(rank).receives[number]
        if self.work.is_copied_by_receiver(message):
            subdomain = self.subdomains_of_rank[rank][local]
            peer = self._peer(subdomain, message)
            latency = self.routes.hops_between(subdomain, peer)[1]
            self._schedule(
                current_time + latency, self._release_cells, self.home[peer][0], self.current_sweep[rank]
            )
        self._continue(rank, current_time)

    def _process_message(self, rank: int, number: int, current_time: float) -> None:
        """Unpack a message, or copy it from the cells of the sender."""
        share = self._share(rank)
        local, message = share.receives[number]
        if not self.work.pulls:
            machine, is_mpi = self.routes.machine, message.method != "colocated"
            calls = _calls(message) - (not is_mpi)  # the sender has made the copy
            seconds = is_mpi * machine.network.overhead + calls * machine.device.launch
            calls_end = current_time + share.sweep.share * seconds
            self._record(rank, "unpack", "launch", current_time, calls_end)
            self._schedule(calls_end, self._unpack, rank, number)
            self._schedule(calls_end, self._continue, rank)
            return
        end, name = current_time + self.work.unpacking_time(message, share.sweep), "unpack"
        if self.work.is_copied_by_receiver(message):
            subdomain = self.subdomains_of_rank[rank][local]
            peer = self._peer(subdomain, message)
            hops = self.routes.read_hops(peer, subdomain)
            if hops:
                size = _bytes_per_pass(message, share.sweep)
                travel = Travel(
                    peer, subdomain, self.current_sweep[rank], number, size, hops, current_time, end, True
                )
                self._schedule(current_time, self._cross_hop, travel)
                return
            name = f"from rank {self.home[peer][0]}"
        self._record(rank, "unpack", name, current_time, end)
        self._schedule(end, self._finish_message, rank, number)

    def _unpack(self, rank: int, number: int, current_time: float) -> None:
        """Unpack a message on a device."""
        local, message = self._share(rank).receives[number]
        seconds = _bytes_per_pass(message, self._share(rank).sweep) / self.work.rates.packing
        _, end = self.routes.queue_kernel(
            self.subdomains_of_rank[rank][local], current_time, seconds if message.packed else 0.0
        )
        self._schedule(end, self._finish_unpacking, rank, number)

    def _finish_unpacking(self, rank: int, number: int, current_time: float) -> None:
        self.unpacked[rank] |= 1 << number
        if not self.busy[rank]:
            self._continue(rank, current_time)

    def _continue(self, rank: int, current_time: float) -> None:
        share = self._share(rank)
        self.busy[rank] = True
        if self.arrived[rank]:
            self._process_message(rank, self.arrived[rank].pop(0), current_time)
            return
        unpacked, all_messages = self.unpacked[rank], (1 << len(share.receives)) - 1
        ready = not self.copying[rank] and (self.overlap or unpacked == all_messages)
        # A sweep waits until neighbours have copied the cells of earlier sweeps. A sweep in place also waits
        # until neighbours have copied the cells of this sweep.
        if any(sweep < self.current_sweep[rank] or share.in_place for sweep in self.pending_copies[rank]):
            ready = False
        for i, (needs, seconds) in enumerate(self.remaining_pieces[rank]):
            if ready and needs & ~unpacked == 0:
                del self.remaining_pieces[rank][i]
                begin = (
                    current_time
                    if self.work.pulls
                    else self.routes.idle_time(self.subdomains_of_rank[rank], current_time)
                )
                self._record(rank, "patch", "patches", begin, begin + seconds)
                self._schedule(begin + seconds, self._continue, rank)
                return
        if self.remaining_pieces[rank] or unpacked != all_messages or self.copying[rank]:
            self.busy[rank] = False
        elif share.sweep.reductions:
            self._reduce(rank, current_time)
        else:
            self._end_sweep(rank, current_time)

    def _reduce(self, rank: int, current_time: float) -> None:
        """Enter a reduction, and continue without waiting for its result.

        Events are processed in the order of time. Therefore all contributions are available when the last
        rank enters.
        """
        sweep = self.current_sweep[rank]
        self.pending_reduction[rank] = sweep
        self.ranks_in_reduction[sweep] = self.ranks_in_reduction.get(sweep, 0) + 1
        if self.ranks_in_reduction[sweep] == self.layout.ranks:
            del self.ranks_in_reduction[sweep]
            hops = (
                self.routes.tree_time(self.layout.ranks, self.work.rates.hop)
                if self.layout.ranks > 1
                else 0.0
            )
            self.result_times[sweep] = current_time + hops
            for waiting_rank, start in self.waiting.pop(sweep, []):
                self._take_result(waiting_rank, start, current_time + hops)
        self._end_sweep(rank, current_time)

    def _take_result(self, rank: int, start: float, result_time: float) -> None:
        self._record(rank, "reduction", "reduction", start, result_time)
        self.pending_reduction[rank] = None
        self._begin_next_sweep(rank, max(start, result_time))

    def _end_sweep(self, rank: int, current_time: float) -> None:
        """End a sweep. If the next sweep needs the result of an earlier reduction, wait for this result."""
        sweep = self.pending_reduction[rank]
        if sweep is None or self.current_sweep[rank] % self.sweeps + 1 not in self.work.waits:
            self._begin_next_sweep(rank, current_time)
        elif sweep in self.result_times:
            self._take_result(rank, current_time, self.result_times[sweep])
        else:
            self.waiting.setdefault(sweep, []).append((rank, current_time))

    def _begin_next_sweep(self, rank: int, current_time: float) -> None:
        self.current_sweep[rank] += 1
        completed_passes, sweep_in_pass = divmod(self.current_sweep[rank], self.sweeps)
        if sweep_in_pass == 0:
            self.pass_ends[completed_passes - 1] = max(self.pass_ends[completed_passes - 1], current_time)
        if self.current_sweep[rank] < self.total_sweeps:
            self._begin(rank, current_time)
