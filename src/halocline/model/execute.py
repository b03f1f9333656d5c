"""Discrete-event execution of a plan on a machine file instead of hardware.

Every rank is a server that does one thing at a time, for all of its subdomains. At the beginning of a sweep,
the rank packs cells, posts messages and makes copies. The rank then unpacks messages that have arrived and
runs patches that are ready. Patches that wait for the same messages are one piece of work. A rank of GPUs
makes calls on the host, each with the time of a launch. Every GPU is a server of its own for the kernels that
pack, unpack and copy.

Messages between two ranks use the transfer method of the pair (`halocline.plan.transfer`). A message is
packed and sent, announced and fetched, or copied by the receiver directly from the cells of the sender. In
the last case, the sender must not overwrite the cells before the copy ends. Between GPUs, such a message is
packed, copied and unpacked without MPI. Messages of GPUs by plain MPI are copied to the host and from the
host. Each message queues at each link and card of its route, and occupies the link or card until the last
byte has passed. The first byte continues to the next link before the last byte arrives.

A reduction ends when the last rank has arrived and the hops of a tree are complete. The schedule defines the
sweeps that wait for the result. Without latency and without shared links, the time is that of the closed
formula of `halocline.model.formula`.
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

    Subdomains of the same shape, walls and methods have the same share. Each message of the plan is stored
    with the local number of its subdomain. The peers of the messages are those of one subdomain; the
    directions are valid for all.
    """

    sweep: Sweep
    sends: tuple[tuple[int, Message], ...]
    receives: tuple[tuple[int, Message], ...]
    copying: float  # Seconds of the copies by the rank itself.
    copies: tuple[tuple[int, int, int], ...]  # Copies by its devices: source, target, bytes.
    pieces: tuple[tuple[int, float], ...]  # Required messages (as bits), and seconds.
    in_place: bool

    @property
    def name(self) -> str:
        """Name of the sweep, for people."""
        return " and ".join(self.sweep.names) or self.sweep.kernel

    @cached_property
    def numbers(self) -> dict[tuple[int, Direction], int]:
        """Number of each receive, by subdomain of the rank and direction."""
        return {(local, message.direction): n for n, (local, message) in enumerate(self.receives)}

    @classmethod
    def of_rank(cls, shares: Sequence[_Share]) -> _Share:
        """Return the shares of all subdomains of a rank as one share."""
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
        True to run patches that need no message before all messages have arrived.
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
            f"{layout.ranks} ranks, {layout.ranks_per_node} on a node, need {layout.nodes} nodes; machine "
            f"{machine.name!r} has {machine.nodes}: ask for fewer nodes, or more ranks on each"
        )
    if passes < 2:
        raise InputError(f"passes is {passes}; two at least are needed, the first one is not counted")
    chosen = DEFAULT if methods is None else chosen_methods(methods)
    if rates is None:
        memory = memory_of_node(schedule, layout)
        rates = Rates.of(machine, layout.ranks_per_node, layout.subdomains_per_rank, memory)
    transfers = Transfers(layout, chosen, packing)
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
        self.pulls = machine.device.kind == "cpu"  # ranks copy cells, and pull colocated messages
        self.directions = sorted(
            {d for s in self.sweeps for footprint in s.exchange.values() for d, _ in footprint}
        )
        self.kinds: dict[tuple[object, ...], tuple[_Share, ...]] = {}
        self.ranks: dict[tuple[tuple[object, ...], ...], tuple[_Share, ...]] = {}

    def of_rank(self, rank: int) -> tuple[_Share, ...]:
        """Return the shares of a rank, one per sweep."""
        owned = self.layout.owned(rank)
        kinds = tuple(self._kind(subdomain) for subdomain in owned)
        if kinds not in self.ranks:
            parts = [self._of_kind(kind, subdomain) for kind, subdomain in zip(kinds, owned, strict=True)]
            self.ranks[kinds] = tuple(_Share.of_rank(shares) for shares in zip(*parts, strict=True))
        return self.ranks[kinds]

    def _kind(self, subdomain: int) -> tuple[object, ...]:
        """Return the properties that determine the work of a subdomain.

        The properties are the shape, the walls, and the methods of all neighbours. If a rank has several
        subdomains, the device is another property, since the rank copies between its devices. If blocks of
        the grid are inactive, every subdomain is a kind of its own.
        """
        if self.schedule.blocks is not None:
            return (subdomain,)
        cut = self.cut
        neighbours = [cut.neighbour(subdomain, direction) for direction in self.directions]
        methods = tuple(
            None if peer is None else self.transfers.method(subdomain, peer) for peer in neighbours
        )
        slot = self.layout.slot(subdomain)[1] if self.layout.subdomains_per_rank > 1 else None
        at = cut.coordinates(subdomain)
        walls = tuple((c == 0, c == p - 1) for c, p in zip(at, cut.parts, strict=True))
        return cut.box(subdomain).shape, walls, methods, slot

    def _of_kind(self, kind: tuple[object, ...], subdomain: int) -> tuple[_Share, ...]:
        if kind not in self.kinds:
            plan = self.plan(subdomain)
            pairs = zip(self.sweeps, plan.sweeps[self.schedule.pass_numbers()], strict=True)
            self.kinds[kind] = tuple(self._of_sweep(sweep, todo, plan) for sweep, todo in pairs)
        return self.kinds[kind]

    def _of_sweep(self, sweep: Sweep, todo: SweepPlan, plan: SubdomainPlan) -> _Share:
        # A sweep that does not run in every pass counts in each pass with its share of the work.
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
            copied_bytes[ends] = copied_bytes.get(ends, 0) + _per_pass(copy, sweep)
        copying, copies = 0.0, tuple((*ends, size) for ends, size in copied_bytes.items())
        if self.pulls:
            copying, copies = sum(size / self._copying(a, b) for a, b, size in copies), ()
        return _Share(sweep, sends, receives, copying, copies, _in_order(pieces), todo.in_place)

    def lent(self, message: Message) -> bool:
        """Return True if the receiver copies a message directly from the cells of the sender."""
        return self.pulls and message.method == "colocated"

    def taking(self, message: Message, sweep: Sweep) -> float:
        """Return the time to unpack a message, or the minimum time to copy it, in seconds."""
        rate = self.rates.copying if self.lent(message) else None
        # With `rma`, the receiver fetches from a mailbox and sends an acknowledgement.
        calls = {"colocated": 0, "rma": 2}.get(message.method, 1)
        return sweep.share * (
            message.bytes / (rate or self.rates.packing) + calls * self.machine.network.overhead
        )

    def _device(self, subdomain: int) -> int:
        return self.machine.device_of(self.layout.slot(subdomain)[1], self.layout.slots_per_node)

    def _copying(self, a: int, b: int) -> float:
        """Return the bytes per second that a rank copies between subdomains on two processors."""
        return self.rates.packing if a == b else min(self.rates.packing, self.machine.bandwidth(a, b))


def _calls(message: Message) -> int:
    """Return the number of host calls with which a device sends or receives a message.

    The calls start the kernel that packs or unpacks, and a copy if MPI does not access the memory of the
    device.
    """
    return int(message.packed) + int(message.method != "gpu_aware")


def _rows(message: Message) -> int:
    """Return the number of rows of cells that MPI or a copy reads from the fields one by one."""
    if message.packed:
        return 0
    return sum(prod(box.shape[:-1]) for _, box in message.parts)


def _per_pass(moved: Message | Copy, sweep: Sweep) -> int:
    """Return the mean bytes of a message or copy per pass, if its sweep does not run in every pass."""
    return round(moved.bytes * sweep.share)


class _Run:
    """State of all ranks during an execution."""

    def __init__(self, work: _Work, routes: Routes, overlap: bool, traced: frozenset[int]) -> None:
        self.work, self.routes, self.overlap, self.traced = work, routes, overlap, traced
        self.layout, self.cut = work.layout, work.cut
        ranks = range(self.layout.ranks)
        self.home = [self.layout.home(subdomain) for subdomain in range(self.cut.count)]
        self.owned = [self.layout.owned(rank) for rank in ranks]
        self.shares = [work.of_rank(rank) for rank in ranks]
        self.sweeps = len(work.sweeps)
        self.events: list[tuple[float, int, Callable[[float], None]]] = []  # Time, order, action.
        self.order = count()
        self.at = [0] * len(ranks)  # Number of completed sweeps, over all passes.
        self.come: list[list[int]] = [[] for _ in ranks]  # Arrived messages.
        self.early: list[dict[int, list[int]]] = [{} for _ in ranks]  # Arrived messages of later sweeps.
        self.taken = [0] * len(ranks)
        self.left: list[list[tuple[int, float]]] = [[] for _ in ranks]
        self.copying = [0] * len(ranks)  # Number of active copies between devices.
        self.line: list[list[Travel]] = [[] for _ in ranks]  # Messages sent one after another.
        self.lent: list[dict[int, int]] = [{} for _ in ranks]  # Number of pending copies by others, by sweep.
        self.busy = [True] * len(ranks)
        self.reducing: list[int | None] = [None] * len(ranks)  # Sweep of the pending result.
        self.joined: dict[int, int] = {}  # Number of ranks in a reduction, by sweep.
        self.reduced: dict[int, float] = {}  # Time of the result, by sweep.
        self.waiting: dict[int, list[tuple[int, float]]] = {}  # Waiting ranks and their start times.
        self.spans: list[TraceEvent] = []

    def __call__(self, passes: int) -> Prediction:
        self.last = passes * self.sweeps
        self.ended = [0.0] * passes
        for rank in range(self.layout.ranks):
            self._begin(rank, 0.0)
        while self.events:
            time, _, action = heapq.heappop(self.events)
            action(time)
        seconds = (self.ended[-1] - self.ended[0]) / (passes - 1)
        return Prediction(seconds, self.ended, self.spans)

    def _at(self, time: float, event: Callable[..., None], *arguments: Any) -> None:
        """Schedule a call of a method with the given arguments and the time."""
        action: Callable[[float], None] = partial(event, *arguments)
        heapq.heappush(self.events, (time, next(self.order), action))

    def _share(self, rank: int) -> _Share:
        return self.shares[rank][self.at[rank] % self.sweeps]

    def _note(self, rank: int, kind: str, name: str, begin: float, end: float) -> None:
        if rank in self.traced and end > begin:
            self.spans.append(TraceEvent(rank, 0, kind, f"{self._share(rank).name}: {name}", begin, end))

    # --- events ---

    def _begin(self, rank: int, now: float) -> None:
        """Begin a sweep: lend cells to others, pack and post the other messages, and copy."""
        share, sweep = self._share(rank), self.at[rank]
        rates, part = self.work.rates, share.sweep.share
        overhead = part * self.routes.machine.network.overhead
        self.busy[rank] = True
        self.taken[rank] = 0
        self.come[rank] = self.early[rank].pop(sweep, [])
        self.left[rank] = list(share.pieces)
        time = now + part * rates.begin
        if not self.work.pulls:
            self._at(self._launch(rank, time), self._next, rank)
            return
        for n, (_, send) in enumerate(share.sends):
            if self.work.lent(send):
                self.lent[rank][sweep] = self.lent[rank].get(sweep, 0) + 1
                self._at(now, self._send, rank, sweep, n)
                continue
            packing_end = time + _per_pass(send, share.sweep) / rates.packing
            self._note(rank, "pack", "pack", time, packing_end)
            time = packing_end + (0.0 if send.method == "colocated" else overhead)
            self._note(rank, "pack", "send", packing_end, time)
            self._at(packing_end, self._send, rank, sweep, n)
        self._note(rank, "copy", "copy", time, time + share.copying)
        self._at(time + share.copying, self._next, rank)

    def _launch(self, rank: int, now: float) -> float:
        """Start the packing and copying on the devices of a rank, in the order of the host calls.

        The result is the end time of the calls.
        """
        share, sweep, time = self._share(rank), self.at[rank], now
        launch = share.sweep.share * self.routes.machine.device.launch
        overhead = share.sweep.share * self.routes.machine.network.overhead
        for n, (_, send) in enumerate(share.sends):
            time += launch * _calls(send)
            self._at(time, self._pack, rank, sweep, n)
            time += 0.0 if send.method == "colocated" else overhead
        self._note(rank, "pack", "launch", now, time)
        self.copying[rank] = len(share.copies)
        for copy in share.copies:
            time += launch
            self._at(time, self._copy, rank, copy)
        return time

    def _pack(self, rank: int, sweep: int, n: int, now: float) -> None:
        """Pack a message on a device, and send it at the end."""
        share = self.shares[rank][sweep % self.sweeps]
        local, send = share.sends[n]
        end = now
        if send.packed:
            seconds = _per_pass(send, share.sweep) / self.work.rates.packing
            _, end = self.routes.kernel(self.owned[rank][local], now, seconds)
        self._at(end, self._send, rank, sweep, n)

    def _copy(self, rank: int, copy: tuple[int, int, int], now: float) -> None:
        """Copy by a kernel within a device, or from the memory of another device."""
        a, b, size = copy
        home = self.owned[rank][0]
        if a == b:
            begin, end = self.routes.kernel(home, now, size / self.work.rates.packing, device=a)
            self._note(rank, "copy", "copy", begin, end)
            self._at(end, self._copied, rank)
            return
        hops = self.routes.within(a, b)
        self._at(now, self._cross, Travel(home, home, self.at[rank], COPIED, size, hops, now, now, False))

    def _copied(self, rank: int, now: float) -> None:
        """End a copy between devices."""
        self.copying[rank] -= 1
        if not self.busy[rank]:
            self._next(rank, now)

    def _send(self, rank: int, sweep: int, n: int, now: float) -> None:
        """Send a message, or announce cells that the receiver copies."""
        share = self.shares[rank][sweep % self.sweeps]
        local, send = share.sends[n]
        subdomain = self.owned[rank][local]
        peer = self._peer(subdomain, send)
        peer_rank, local = self.home[peer]
        numbers = self.shares[peer_rank][sweep % self.sweeps].numbers
        number = numbers[local, tuple(-d for d in send.direction)]
        hops, latency = self.routes.way(subdomain, peer, send.method)
        if self.work.lent(send):
            self._at(now + latency, self._arrive, peer_rank, sweep, number)
            return
        # With `rma`, a signal and a request precede the data.
        departure = now + (2 * latency if send.method == "rma" else 0.0)
        size = _per_pass(send, share.sweep)
        part = share.sweep.share
        message = Travel(subdomain, peer, sweep, number, size, hops, now, departure, False, part, _rows(send))
        aware = self.routes.machine.aware if send.method == "gpu_aware" else None
        if aware is not None and aware.serial:
            message.follows = True
            self.line[rank].append(message)
            if len(self.line[rank]) > 1:
                return
        self._at(departure + (0.0 if aware is None else part * aware.setup), self._cross, message)

    def _peer(self, subdomain: int, message: Message) -> int:
        """Return the other end of a message of a subdomain."""
        peer = self.cut.neighbour(subdomain, message.direction)
        assert peer is not None
        return peer

    def _cross(self, message: Travel, now: float) -> None:
        """Move a message across its next link, and deliver it after the last one."""
        arrival = self.routes.cross(message, now)
        if message.reached < len(message.hops):
            self._at(arrival, self._cross, message)
            return
        sender, receiver = self.home[message.sender][0], self.home[message.receiver][0]
        if message.number == COPIED:
            self._note(receiver, "copy", "copy", message.begin, message.least)
            self._at(message.least, self._copied, receiver)
            return
        if message.follows:
            self._at(message.least, self._follow, sender)
        if message.pulled:
            self._note(receiver, "unpack", f"from rank {sender}", message.begin, message.least)
            self._at(message.least, self._finish, receiver, message.number)
            return
        if receiver in self.traced:
            name = f"{self.shares[receiver][message.sweep % self.sweeps].name}: from rank {sender}"
            self.spans.append(TraceEvent(receiver, 1, "message", name, message.begin, message.least))
        self._at(message.least, self._arrive, receiver, message.sweep, message.number)

    def _follow(self, rank: int, now: float) -> None:
        """Send the next message of a rank, after the previous one has arrived."""
        self.line[rank].pop(0)
        if self.line[rank]:
            aware = self.routes.machine.aware
            assert aware is not None
            message = self.line[rank][0]
            message.begin, message.least = now, now + message.share * aware.setup
            self._at(message.least, self._cross, message)

    def _arrive(self, rank: int, sweep: int, number: int, now: float) -> None:
        if sweep != self.at[rank]:
            self.early[rank].setdefault(sweep, []).append(number)
            return
        self.come[rank].append(number)
        if not self.busy[rank]:
            self._next(rank, now)

    def _release(self, rank: int, sweep: int, now: float) -> None:
        """Release lent cells, after a neighbour has copied them."""
        self.lent[rank][sweep] -= 1
        if not self.lent[rank][sweep]:
            del self.lent[rank][sweep]
        if not self.busy[rank]:
            self._next(rank, now)

    def _finish(self, rank: int, number: int, now: float) -> None:
        """End the unpacking or copying of a message."""
        self.taken[rank] |= 1 << number
        local, message = self._share(rank).receives[number]
        if self.work.lent(message):
            subdomain = self.owned[rank][local]
            peer = self._peer(subdomain, message)
            latency = self.routes.way(subdomain, peer)[1]
            self._at(now + latency, self._release, self.home[peer][0], self.at[rank])
        self._next(rank, now)

    def _take(self, rank: int, number: int, now: float) -> None:
        """Unpack a message, or copy lent cells."""
        share = self._share(rank)
        local, message = share.receives[number]
        if not self.work.pulls:
            machine, is_mpi = self.routes.machine, message.method != "colocated"
            calls = _calls(message) - (not is_mpi)  # the sender made the copy
            seconds = is_mpi * machine.network.overhead + calls * machine.device.launch
            calls_end = now + share.sweep.share * seconds
            self._note(rank, "unpack", "launch", now, calls_end)
            self._at(calls_end, self._unpack, rank, number)
            self._at(calls_end, self._next, rank)
            return
        end, name = now + self.work.taking(message, share.sweep), "unpack"
        if self.work.lent(message):
            subdomain = self.owned[rank][local]
            peer = self._peer(subdomain, message)
            hops = self.routes.links(peer, subdomain)
            if hops:
                size = _per_pass(message, share.sweep)
                travel = Travel(peer, subdomain, self.at[rank], number, size, hops, now, end, True)
                self._at(now, self._cross, travel)
                return
            name = f"from rank {self.home[peer][0]}"
        self._note(rank, "unpack", name, now, end)
        self._at(end, self._finish, rank, number)

    def _unpack(self, rank: int, number: int, now: float) -> None:
        """Unpack a message on a device."""
        local, message = self._share(rank).receives[number]
        seconds = _per_pass(message, self._share(rank).sweep) / self.work.rates.packing
        _, end = self.routes.kernel(self.owned[rank][local], now, seconds if message.packed else 0.0)
        self._at(end, self._unpacked, rank, number)

    def _unpacked(self, rank: int, number: int, now: float) -> None:
        self.taken[rank] |= 1 << number
        if not self.busy[rank]:
            self._next(rank, now)

    def _next(self, rank: int, now: float) -> None:
        share = self._share(rank)
        self.busy[rank] = True
        if self.come[rank]:
            self._take(rank, self.come[rank].pop(0), now)
            return
        unpacked, all_messages = self.taken[rank], (1 << len(share.receives)) - 1
        ready = not self.copying[rank] and (self.overlap or unpacked == all_messages)
        # Lent cells must not be overwritten. A sweep in place also waits for the cells that it lends itself.
        if any(sweep < self.at[rank] or share.in_place for sweep in self.lent[rank]):
            ready = False
        for i, (needs, seconds) in enumerate(self.left[rank]):
            if ready and needs & ~unpacked == 0:
                del self.left[rank][i]
                begin = now if self.work.pulls else self.routes.idle(self.owned[rank], now)
                self._note(rank, "patch", "patches", begin, begin + seconds)
                self._at(begin + seconds, self._next, rank)
                return
        if self.left[rank] or unpacked != all_messages or self.copying[rank]:
            self.busy[rank] = False
        elif share.sweep.reductions:
            self._reduce(rank, now)
        else:
            self._advance(rank, now)

    def _reduce(self, rank: int, now: float) -> None:
        """Enter a reduction, and continue without its result.

        Events are processed in the order of time: when the last rank enters, all contributions are available.
        """
        sweep = self.at[rank]
        self.reducing[rank] = sweep
        self.joined[sweep] = self.joined.get(sweep, 0) + 1
        if self.joined[sweep] == self.layout.ranks:
            del self.joined[sweep]
            hops = self.routes.tree(self.layout.ranks, self.work.rates.hop) if self.layout.ranks > 1 else 0.0
            self.reduced[sweep] = now + hops
            for waiting_rank, start in self.waiting.pop(sweep, []):
                self._take_result(waiting_rank, start, now + hops)
        self._advance(rank, now)

    def _take_result(self, rank: int, came: float, there: float) -> None:
        self._note(rank, "reduction", "reduction", came, there)
        self.reducing[rank] = None
        self._enter(rank, max(came, there))

    def _advance(self, rank: int, now: float) -> None:
        """End a sweep, and wait for the result of an earlier sweep if the next one needs it."""
        sweep = self.reducing[rank]
        if sweep is None or self.at[rank] % self.sweeps + 1 not in self.work.waits:
            self._enter(rank, now)
        elif sweep in self.reduced:
            self._take_result(rank, now, self.reduced[sweep])
        else:
            self.waiting.setdefault(sweep, []).append((rank, now))

    def _enter(self, rank: int, now: float) -> None:
        self.at[rank] += 1
        completed_passes, sweep_in_pass = divmod(self.at[rank], self.sweeps)
        if sweep_in_pass == 0:
            self.ended[completed_passes - 1] = max(self.ended[completed_passes - 1], now)
        if self.at[rank] < self.last:
            self._begin(rank, now)
