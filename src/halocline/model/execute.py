"""Discrete-event execution: a plan runs on a machine file instead of hardware.

Every rank is a server that does one thing at a time, for all of its subdomains: it begins a sweep (packs,
posts its messages, copies), takes what has come, and runs its patches, those that wait for the same
messages as one piece of work, as soon as they are ready. A rank of GPUs makes calls of the host, which take
a launch each; every GPU is a server of its own for the kernels that pack, unpack and copy. What crosses
between two ranks goes by the transfer method of the pair (`halocline.plan.transfer`): packed and sent,
announced and fetched, or copied by the receiver straight out of the sender's cells, which the sender may not
overwrite before; between GPUs that is packed, copied and unpacked without MPI. Messages of GPUs by plain MPI
are copied to the host and from it. Each queues at each link and card that it crosses, and holds it for as
long as its bytes take there; its first byte goes on to the next while the last has not yet come. A reduction
ends when the last rank has come and the hops of a tree are done; ranks wait for it where the schedule says.
For no latency and links that nobody shares this comes to the closed formula of `halocline.model.formula`.
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
    """A run of some passes of the loop.

    Attributes
    ----------
    seconds : float
        Of one pass, after the first.
    ends : list of float
        When the last rank ended each pass.
    spans : list of TraceEvent
        What the ranks that were asked for did, and their messages.
    """

    seconds: float
    ends: list[float]
    spans: list[TraceEvent] = field(default_factory=list)


@dataclass(frozen=True)
class _Share:
    """One sweep of a subdomain, and of all with its shape, walls and methods; or of all of a rank.

    Messages are those of the plan, each after the subdomain of the rank that it belongs to. Their peers are
    those of one subdomain; their directions hold for all.
    """

    sweep: Sweep
    sends: tuple[tuple[int, Message], ...]
    receives: tuple[tuple[int, Message], ...]
    copying: float  # seconds in which the rank itself copies
    copies: tuple[tuple[int, int, int], ...]  # that its devices make: from device to device, bytes
    pieces: tuple[tuple[int, float], ...]  # needs (bits of received messages) and seconds
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
        """Return the shares of all subdomains of a rank as one."""
        if len(shares) == 1:
            return shares[0]
        pieces: dict[int, float] = {}
        first = 0
        for share in shares:
            for needs, seconds in share.pieces:
                pieces[needs << first] = pieces.get(needs << first, 0.0) + seconds
            first += len(share.receives)
        one, copying = shares[0], sum(share.copying for share in shares)
        copies = tuple(copy for share in shares for copy in share.copies)
        sends = tuple((local, m) for local, share in enumerate(shares) for _, m in share.sends)
        receives = tuple((local, m) for local, share in enumerate(shares) for _, m in share.receives)
        return cls(one.sweep, sends, receives, copying, copies, _in_order(pieces), one.in_place)


def _in_order(pieces: dict[int, float]) -> tuple[tuple[int, float], ...]:
    """Return pieces of work sorted: those that wait for fewer messages first."""
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
    """Predict the time of one pass of the outermost loop, or of the whole program where it has none.

    Parameters
    ----------
    schedule : Schedule
    layout : Layout
        Which rank has which subdomains; more of them than a node has devices share these.
    machine : Machine
    rates : Rates, optional
        What a rank does in a second; from the machine by default.
    methods : str or iterable of str, optional
        The transfer methods that may be taken, as in a run; see `halocline.plan.chosen_methods`.
    packing : str
        Which messages by MPI are packed; see `halocline.plan.transfer.PACKING`.
    passes : int
        How many to run, two at least.
    overlap : bool
        Whether patches that need no message run before messages have come.
    traced : sequence of int
        Ranks whose events are kept.
    patch : int or sequence of int, optional
        As for `halocline.plan.plan_rank`.

    Raises
    ------
    InputError
        More ranks than the machine has room for; a method that is unknown.
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
    """What each rank has to do in each sweep of a pass."""

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
        self.pulls = machine.device.kind == "cpu"  # ranks themselves copy, and pull what is colocated
        self.directions = sorted(
            {d for s in self.sweeps for footprint in s.exchange.values() for d, _ in footprint}
        )
        self.kinds: dict[tuple[object, ...], tuple[_Share, ...]] = {}
        self.ranks: dict[tuple[tuple[object, ...], ...], tuple[_Share, ...]] = {}

    def of_rank(self, rank: int) -> tuple[_Share, ...]:
        """Sweep by sweep."""
        owned = self.layout.owned(rank)
        kinds = tuple(self._kind(subdomain) for subdomain in owned)
        if kinds not in self.ranks:
            each = [self._of_kind(kind, subdomain) for kind, subdomain in zip(kinds, owned, strict=True)]
            self.ranks[kinds] = tuple(_Share.of_rank(shares) for shares in zip(*each, strict=True))
        return self.ranks[kinds]

    def _kind(self, subdomain: int) -> tuple[object, ...]:
        """What is the same for subdomains that do the same: shape, walls, and the methods of all neighbours;
        where some belong to one rank, their devices too, since a rank copies between these. Where blocks of
        the grid are inactive, each counts for itself."""
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
        # what runs every few passes counts in each with its part of the work
        seconds = self.rates.per_cell(sweep, self.schedule.dtype_of(sweep)) * sweep.share
        table = plan.patches.table
        cells = (table[:, 1, :] - table[:, 0, :]).prod(axis=1)
        pieces: dict[int, float] = {}
        for needs, size in zip(todo.patch_needs.tolist(), cells.tolist(), strict=True):
            pieces[needs] = pieces.get(needs, 0.0) + size * seconds
        sends = tuple((0, message) for message in todo.sends)
        receives = tuple((0, message) for message in todo.receives)
        copied: dict[tuple[int, int], int] = {}
        for copy in todo.copies:
            ends = self._device(copy.subdomain), self._device(plan.number)
            copied[ends] = copied.get(ends, 0) + _per_pass(copy, sweep)
        copying, copies = 0.0, tuple((*ends, size) for ends, size in copied.items())
        if self.pulls:
            copying, copies = sum(size / self._copying(a, b) for a, b, size in copies), ()
        return _Share(sweep, sends, receives, copying, copies, _in_order(pieces), todo.in_place)

    def lent(self, message: Message) -> bool:
        """Return True where the receiver copies a message straight out of the sender's cells."""
        return self.pulls and message.method == "colocated"

    def taking(self, message: Message, sweep: Sweep) -> float:
        """Return the seconds to unpack a message, or at least to copy it."""
        rate = self.rates.copying if self.lent(message) else None
        # a receiver fetches from a mailbox, and acknowledges that
        calls = {"colocated": 0, "rma": 2}.get(message.method, 1)
        return sweep.share * (
            message.bytes / (rate or self.rates.packing) + calls * self.machine.network.overhead
        )

    def _device(self, subdomain: int) -> int:
        return self.machine.device_of(self.layout.slot(subdomain)[1], self.layout.slots_per_node)

    def _copying(self, a: int, b: int) -> float:
        """Return the bytes a second that a rank copies between subdomains on two processors."""
        return self.rates.packing if a == b else min(self.rates.packing, self.machine.bandwidth(a, b))


def _calls(message: Message) -> int:
    """Return the calls on the host with which a device sends or takes a message: its kernel, and a copy where
    MPI does not take it out of the device."""
    return int(message.packed) + int(message.method != "gpu_aware")


def _rows(message: Message) -> int:
    """Return the rows of cells of a message that MPI or a copy takes out of the fields one by one."""
    if message.packed:
        return 0
    return sum(prod(box.shape[:-1]) for _, box in message.parts)


def _per_pass(moved: Message | Copy, sweep: Sweep) -> int:
    """Return the bytes of a message or copy in a pass, where its sweep runs in some passes only."""
    return round(moved.bytes * sweep.share)


class _Run:
    """The ranks of one execution."""

    def __init__(self, work: _Work, routes: Routes, overlap: bool, traced: frozenset[int]) -> None:
        self.work, self.routes, self.overlap, self.traced = work, routes, overlap, traced
        self.layout, self.cut = work.layout, work.cut
        ranks = range(self.layout.ranks)
        self.home = [self.layout.home(subdomain) for subdomain in range(self.cut.count)]
        self.owned = [self.layout.owned(rank) for rank in ranks]
        self.shares = [work.of_rank(rank) for rank in ranks]
        self.sweeps = len(work.sweeps)
        self.events: list[tuple[float, int, Callable[[float], None]]] = []  # time, order, what happens then
        self.order = count()
        self.at = [0] * len(ranks)  # sweeps ended, over all passes
        self.come: list[list[int]] = [[] for _ in ranks]  # messages that wait to be taken
        self.early: list[dict[int, list[int]]] = [{} for _ in ranks]  # those of later sweeps
        self.taken = [0] * len(ranks)
        self.left: list[list[tuple[int, float]]] = [[] for _ in ranks]
        self.copying = [0] * len(ranks)  # copies between devices that have not ended
        self.line: list[list[Travel]] = [[] for _ in ranks]  # messages that follow one another
        self.lent: list[dict[int, int]] = [{} for _ in ranks]  # cells that others have yet to copy, by sweep
        self.busy = [True] * len(ranks)
        self.reducing: list[int | None] = [None] * len(ranks)  # the sweep whose results are yet to be taken
        self.joined: dict[int, int] = {}  # how many have come to a reduction, by sweep
        self.reduced: dict[int, float] = {}  # when its results are there
        self.waiting: dict[int, list[tuple[int, float]]] = {}  # who waits for them, since when
        self.spans: list[TraceEvent] = []

    def __call__(self, passes: int) -> Prediction:
        self.last = passes * self.sweeps
        self.ended = [0.0] * passes
        for rank in range(self.layout.ranks):
            self._begin(rank, 0.0)
        while self.events:
            now, _, event = heapq.heappop(self.events)
            event(now)
        seconds = (self.ended[-1] - self.ended[0]) / (passes - 1)
        return Prediction(seconds, self.ended, self.spans)

    def _at(self, time: float, event: Callable[..., None], *arguments: Any) -> None:
        """Let a method be called with these arguments, and the time, at a time."""
        then: Callable[[float], None] = partial(event, *arguments)
        heapq.heappush(self.events, (time, next(self.order), then))

    def _share(self, rank: int) -> _Share:
        return self.shares[rank][self.at[rank] % self.sweeps]

    def _note(self, rank: int, kind: str, name: str, begin: float, end: float) -> None:
        if rank in self.traced and end > begin:
            self.spans.append(TraceEvent(rank, 0, kind, f"{self._share(rank).name}: {name}", begin, end))

    # --- what happens ---

    def _begin(self, rank: int, now: float) -> None:
        """Lend what others copy, pack and post the rest, and copy."""
        share, sweep = self._share(rank), self.at[rank]
        rates, part = self.work.rates, share.sweep.share
        overhead = part * self.routes.machine.network.overhead
        self.busy[rank] = True
        self.taken[rank] = 0
        self.come[rank] = self.early[rank].pop(sweep, [])
        self.left[rank] = list(share.pieces)
        done = now + part * rates.begin
        if not self.work.pulls:
            self._at(self._launch(rank, done), self._next, rank)
            return
        for n, (_, send) in enumerate(share.sends):
            if self.work.lent(send):
                self.lent[rank][sweep] = self.lent[rank].get(sweep, 0) + 1
                self._at(now, self._send, rank, sweep, n)
                continue
            packed = done + _per_pass(send, share.sweep) / rates.packing
            self._note(rank, "pack", "pack", done, packed)
            done = packed + (0.0 if send.method == "colocated" else overhead)
            self._note(rank, "pack", "send", packed, done)
            self._at(packed, self._send, rank, sweep, n)
        self._note(rank, "copy", "copy", done, done + share.copying)
        self._at(done + share.copying, self._next, rank)

    def _launch(self, rank: int, now: float) -> float:
        """Let the devices of a rank pack and copy, in the order of the calls of the host; return when it has
        made them."""
        share, sweep, done = self._share(rank), self.at[rank], now
        launch = share.sweep.share * self.routes.machine.device.launch
        overhead = share.sweep.share * self.routes.machine.network.overhead
        for n, (_, send) in enumerate(share.sends):
            done += launch * _calls(send)
            self._at(done, self._pack, rank, sweep, n)
            done += 0.0 if send.method == "colocated" else overhead
        self._note(rank, "pack", "launch", now, done)
        self.copying[rank] = len(share.copies)
        for copy in share.copies:
            done += launch
            self._at(done, self._copy, rank, copy)
        return done

    def _pack(self, rank: int, sweep: int, n: int, now: float) -> None:
        """Let a device pack a message, which then leaves."""
        share = self.shares[rank][sweep % self.sweeps]
        local, send = share.sends[n]
        end = now
        if send.packed:
            seconds = _per_pass(send, share.sweep) / self.work.rates.packing
            _, end = self.routes.kernel(self.owned[rank][local], now, seconds)
        self._at(end, self._send, rank, sweep, n)

    def _copy(self, rank: int, copy: tuple[int, int, int], now: float) -> None:
        """Let a kernel copy within a device, or read the memory of another."""
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
        """Let a message leave; of cells that are lent, let the receiver know."""
        share = self.shares[rank][sweep % self.sweeps]
        local, send = share.sends[n]
        subdomain = self.owned[rank][local]
        peer = self._peer(subdomain, send)
        there, local = self.home[peer]
        numbers = self.shares[there][sweep % self.sweeps].numbers
        number = numbers[local, tuple(-d for d in send.direction)]
        hops, latency = self.routes.way(subdomain, peer, send.method)
        if self.work.lent(send):
            self._at(now + latency, self._arrive, there, sweep, number)
            return
        # before what is fetched, the signal goes there and the request comes back
        later = now + (2 * latency if send.method == "rma" else 0.0)
        size = _per_pass(send, share.sweep)
        part = share.sweep.share
        message = Travel(subdomain, peer, sweep, number, size, hops, now, later, False, part, _rows(send))
        aware = self.routes.machine.aware if send.method == "gpu_aware" else None
        if aware is not None and aware.serial:
            message.follows = True
            self.line[rank].append(message)
            if len(self.line[rank]) > 1:
                return
        self._at(later + (0.0 if aware is None else part * aware.setup), self._cross, message)

    def _peer(self, subdomain: int, message: Message) -> int:
        """Return the other end of a message of a subdomain."""
        peer = self.cut.neighbour(subdomain, message.direction)
        assert peer is not None
        return peer

    def _cross(self, message: Travel, now: float) -> None:
        """Let a message cross its next link; at the end of its way it is there."""
        there = self.routes.cross(message, now)
        if message.reached < len(message.hops):
            self._at(there, self._cross, message)
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
        """Let the next message of a rank leave, after the one before has arrived."""
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
        """A neighbour has copied what was lent to it."""
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
        """Unpack a message, or copy what is lent."""
        share = self._share(rank)
        local, message = share.receives[number]
        if not self.work.pulls:
            machine, is_mpi = self.routes.machine, message.method != "colocated"
            calls = _calls(message) - (not is_mpi)  # the sender has made the copy
            seconds = is_mpi * machine.network.overhead + calls * machine.device.launch
            called = now + share.sweep.share * seconds
            self._note(rank, "unpack", "launch", now, called)
            self._at(called, self._unpack, rank, number)
            self._at(called, self._next, rank)
            return
        done, name = now + self.work.taking(message, share.sweep), "unpack"
        if self.work.lent(message):
            subdomain = self.owned[rank][local]
            peer = self._peer(subdomain, message)
            hops = self.routes.links(peer, subdomain)
            if hops:
                size = _per_pass(message, share.sweep)
                travel = Travel(peer, subdomain, self.at[rank], number, size, hops, now, done, True)
                self._at(now, self._cross, travel)
                return
            name = f"from rank {self.home[peer][0]}"
        self._note(rank, "unpack", name, now, done)
        self._at(done, self._finish, rank, number)

    def _unpack(self, rank: int, number: int, now: float) -> None:
        """Let a device unpack a message."""
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
        have, all_taken = self.taken[rank], (1 << len(share.receives)) - 1
        ready = not self.copying[rank] and (self.overlap or have == all_taken)
        # cells that are lent may not be overwritten: by a sweep in place not those that it lends itself
        if any(sweep < self.at[rank] or share.in_place for sweep in self.lent[rank]):
            ready = False
        for i, (needs, seconds) in enumerate(self.left[rank]):
            if ready and needs & ~have == 0:
                del self.left[rank][i]
                begin = now if self.work.pulls else self.routes.idle(self.owned[rank], now)
                self._note(rank, "patch", "patches", begin, begin + seconds)
                self._at(begin + seconds, self._next, rank)
                return
        if self.left[rank] or have != all_taken or self.copying[rank]:
            self.busy[rank] = False
        elif share.sweep.reductions:
            self._reduce(rank, now)
        else:
            self._advance(rank, now)

    def _reduce(self, rank: int, now: float) -> None:
        """The rank's part of a reduction is on its way. Events come in the order of time: when the last one
        comes, all parts are there."""
        sweep = self.at[rank]
        self.reducing[rank] = sweep
        self.joined[sweep] = self.joined.get(sweep, 0) + 1
        if self.joined[sweep] == self.layout.ranks:
            del self.joined[sweep]
            hops = self.routes.tree(self.layout.ranks, self.work.rates.hop) if self.layout.ranks > 1 else 0.0
            self.reduced[sweep] = now + hops
            for each, came in self.waiting.pop(sweep, []):
                self._take_result(each, came, now + hops)
        self._advance(rank, now)

    def _take_result(self, rank: int, came: float, there: float) -> None:
        self._note(rank, "reduction", "reduction", came, there)
        self.reducing[rank] = None
        self._enter(rank, max(came, there))

    def _advance(self, rank: int, now: float) -> None:
        """After a sweep: wait for the results of an earlier one, where the next needs them."""
        sweep = self.reducing[rank]
        if sweep is None or self.at[rank] % self.sweeps + 1 not in self.work.waits:
            self._enter(rank, now)
        elif sweep in self.reduced:
            self._take_result(rank, now, self.reduced[sweep])
        else:
            self.waiting.setdefault(sweep, []).append((rank, now))

    def _enter(self, rank: int, now: float) -> None:
        self.at[rank] += 1
        turn, within = divmod(self.at[rank], self.sweeps)
        if within == 0:
            self.ended[turn - 1] = max(self.ended[turn - 1], now)
        if self.at[rank] < self.last:
            self._begin(rank, now)
