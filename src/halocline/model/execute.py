"""Discrete-event execution: a plan runs on a machine file instead of hardware.

Every rank is a server that does one thing at a time: it begins a sweep (packs, copies, posts its messages),
unpacks what has come, and runs its patches, those that wait for the same messages as one piece of work, as
soon as they are ready. A message queues at each link and card that it crosses, and holds it for as long as
its bytes take there; its first byte goes on to the next while the last has not yet come. A reduction ends
when the last rank has come and the hops of a tree are done. For no latency and links that nobody shares this
comes to the closed formula of `halocline.model.formula`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import ceil, log2

from halocline.compile.footprint import Direction
from halocline.compile.schedule import Schedule, Sweep
from halocline.errors import InputError
from halocline.lang.dtype import ITEMSIZE
from halocline.plan.decompose import Decomposition
from halocline.plan.layout import Layout
from halocline.plan.machine import Machine, Road
from halocline.plan.rank import SubdomainPlan, SweepPlan, plan_subdomain
from halocline.plan.transfer import Transfers


@dataclass(frozen=True)
class Rates:
    """What one rank does in a second, and what it costs to begin.

    Attributes
    ----------
    bandwidth : float
        Bytes a second that its sweeps move through memory.
    packing : float
        Bytes a second that it packs, unpacks or copies.
    begin : float
        Seconds that each sweep takes beside its patches: kernel launches, waking threads.
    """

    bandwidth: float
    packing: float
    begin: float = 0.0

    @classmethod
    def of(cls, machine: Machine, ranks_per_node: int) -> Rates:
        """Of a rank with its share of the devices of a node; packing reads and writes memory."""
        each = machine.device.bandwidth * min(1.0, machine.device.count / ranks_per_node)
        return cls(each, each / 2, machine.device.launch)


@dataclass(frozen=True)
class Span:
    """What a rank or message did from `begin` to `end`, in seconds."""

    rank: int
    name: str
    begin: float
    end: float


@dataclass
class Prediction:
    """A run of some passes of the loop.

    Attributes
    ----------
    seconds : float
        Of one pass, after the first.
    ends : list of float
        When the last rank ended each pass.
    spans : list of Span
        What the ranks that were asked for did, and their messages.
    """

    seconds: float
    ends: list[float]
    spans: list[Span] = field(default_factory=list)


@dataclass(frozen=True)
class _Share:
    """One sweep of a rank, and of all ranks with subdomains of the same shape at the same walls."""

    name: str
    begin: float
    sends: tuple[tuple[Direction, int], ...]  # with bytes
    receives: dict[Direction, int]  # the bit of the message from each direction
    unpacking: tuple[float, ...]  # seconds of each received message
    pieces: tuple[tuple[int, float], ...]  # needs (bits of received messages) and seconds
    all_received: int
    reduces: bool


def execute(
    schedule: Schedule,
    layout: Layout,
    machine: Machine,
    *,
    rates: Rates | None = None,
    passes: int = 3,
    overlap: bool = True,
    traced: Sequence[int] = (),
    patch: int | Sequence[int] | None = None,
    threads: int = 1,
) -> Prediction:
    """Predict the time of one pass of the outermost loop, or of the whole program where it has none.

    Parameters
    ----------
    schedule : Schedule
    layout : Layout
        Each subdomain counts as a rank of its own; more of them than a node has devices share these.
    machine : Machine
    rates : Rates, optional
        What a rank does in a second; from the machine by default.
    passes : int
        How many to run, two at least.
    overlap : bool
        Whether patches that need no message run before messages have come.
    traced : sequence of int
        Ranks whose doings are kept.
    patch, threads
        As for `halocline.plan.plan_rank`; the threads of a rank share its rates.

    Raises
    ------
    InputError
        More ranks than the machine has room for.
    """
    decomposition, slots = layout.decomposition, layout.slots_per_node
    transfers = Transfers(layout, ("self", "mpi"))
    if layout.nodes > machine.nodes:
        raise InputError(
            f"{layout.ranks} ranks, {layout.ranks_per_node} on a node, need {layout.nodes} nodes, but "
            f"{machine.title} has {machine.nodes}"
        )
    if passes < 2:
        raise InputError(f"passes is {passes}; two at least are needed, the first one is not counted")
    run = _Run(
        schedule,
        decomposition,
        _Roads(machine, layout),
        rates or Rates.of(machine, slots),
        overlap,
        frozenset(traced),
        lambda number: plan_subdomain(schedule, transfers, number, patch=patch, threads=threads),
    )
    return run(passes)


@dataclass(frozen=True)
class _Hop:
    """One direction of a link, or a network card, on the way of a message."""

    at_home: bool  # at the sender's node, not the receiver's
    ends: tuple[str, str]
    bandwidth: float
    latency: float


@dataclass(slots=True)
class _Travel:
    """A message on its way."""

    sender: int
    receiver: int
    what: int  # sweep and bit at the receiver
    size: int
    hops: list[_Hop]
    begin: float
    reached: int = 0  # hops
    last: float = 0.0  # when its last byte has crossed them


class _Roads:
    """The links of all nodes, and when each is free."""

    def __init__(self, machine: Machine, layout: Layout) -> None:
        self.machine, self.slots = machine, layout.slots_per_node
        places = [layout.slot(subdomain) for subdomain in range(layout.decomposition.count)]
        self.node = [node for node, _ in places]
        self.device = [machine.device_of(slot, self.slots) for _, slot in places]
        self.free: dict[tuple[int, tuple[str, str]], float] = {}
        self._known: dict[tuple[int, int, bool], list[_Hop]] = {}

    def tree(self, ranks: int) -> float:
        """The seconds that a number takes through a tree over all ranks and back."""
        inside = min(ranks, self.slots)
        nodes = -(-ranks // self.slots)
        network = self.machine.network
        near = max((link.latency for link in self.machine.links), default=0.0)
        return 2 * (
            ceil(log2(nodes)) * (network.latency + 2 * network.overhead)
            + ceil(log2(inside)) * (near + network.overhead)
        )

    def cross(self, message: _Travel, now: float) -> float:
        """Let a message that is at its next hop cross it; when it is at the one after."""
        hop = message.hops[message.reached]
        key = self.node[message.sender if hop.at_home else message.receiver], hop.ends
        begin = max(now, self.free.get(key, 0.0))
        self.free[key] = through = begin + message.size / hop.bandwidth
        message.last = max(message.last, through) + hop.latency
        message.reached += 1
        return begin + hop.latency

    def hops(self, sender: int, receiver: int) -> list[_Hop]:
        """The way from one rank to another."""
        same = self.node[sender] == self.node[receiver]
        key = self.device[sender], self.device[receiver], same
        if key not in self._known:
            self._known[key] = list(self._way(*key))
        return self._known[key]

    def _way(self, a: int, b: int, same_node: bool) -> Iterator[_Hop]:
        machine, network = self.machine, self.machine.network
        if same_node and a == b:
            yield _Hop(True, (f"device{a}", f"device{a}"), machine.device.bandwidth / 2, network.overhead)
        elif same_node:
            yield from self._links(True, machine.road(f"device{a}", f"device{b}"))
        else:
            out, into = machine.card(a), machine.card(b)
            yield from self._links(True, machine.road(f"device{a}", out))
            yield _Hop(True, (out, "network"), network.bandwidth, network.latency + network.overhead)
            yield _Hop(False, ("network", into), network.bandwidth, 0.0)
            yield from self._links(False, machine.road(into, f"device{b}"))

    def _links(self, at_home: bool, road: Road) -> Iterator[_Hop]:
        for start, end, link in road:
            ends = (start, end) if link.duplex or start < end else (end, start)
            yield _Hop(at_home, ends, link.bandwidth, link.latency)


_BEGUN, _SENT, _HOP, _COME, _DONE = range(5)


class _Run:
    """The ranks of one execution."""

    def __init__(
        self,
        schedule: Schedule,
        decomposition: Decomposition,
        roads: _Roads,
        rates: Rates,
        overlap: bool,
        traced: frozenset[int],
        plan: Callable[[int], SubdomainPlan],
    ) -> None:
        self.schedule, self.decomposition, self.roads = schedule, decomposition, roads
        self.rates, self.overlap, self.traced, self.plan = rates, overlap, traced, plan
        self.sweeps = list(schedule.pass_sweeps())
        self.kinds: dict[tuple[object, ...], tuple[_Share, ...]] = {}
        ranks = range(decomposition.count)
        self.shares = [self._shares(rank) for rank in ranks]
        self.events: list[tuple[float, int, int, int, int]] = []  # time, order, kind, rank or message, what
        self.order = count()
        self.numbers = count()
        self.messages: dict[int, _Travel] = {}  # on their way, by number
        self.at = [0] * len(ranks)  # sweeps ended, over all passes
        self.come: list[list[int]] = [[] for _ in ranks]  # messages that wait to be unpacked
        self.early: list[dict[int, list[int]]] = [{} for _ in ranks]  # those of later sweeps
        self.unpacked = [0] * len(ranks)
        self.left: list[list[tuple[int, float]]] = [[] for _ in ranks]
        self.busy = [True] * len(ranks)
        self.joined: dict[int, int] = {}  # ranks that have come to a reduction, by sweep
        self.ends: list[float] = []
        self.spans: list[Span] = []

    def __call__(self, passes: int) -> Prediction:
        self.last = passes * len(self.sweeps)
        self.ended = [0.0] * passes
        for rank in range(self.decomposition.count):
            self._begin(rank, 0.0)
        while self.events:
            now, _, kind, rank, what = heapq.heappop(self.events)
            if kind == _BEGUN:
                self._post(rank, now)
            elif kind == _SENT:
                self._travel(rank, what, now)
            elif kind == _HOP:
                self._cross(rank, now)
            elif kind == _COME:
                self._arrive(rank, what, now)
            else:
                self._finish(rank, what, now)
        seconds = (self.ended[-1] - self.ended[0]) / (passes - 1)
        return Prediction(seconds, self.ended, self.spans)

    def _push(self, time: float, kind: int, rank: int, what: int = 0) -> None:
        heapq.heappush(self.events, (time, next(self.order), kind, rank, what))

    def _share(self, rank: int) -> _Share:
        return self.shares[rank][self.at[rank] % len(self.sweeps)]

    def _note(self, rank: int, name: str, begin: float, end: float) -> None:
        if rank in self.traced and end > begin:
            self.spans.append(Span(rank, name, begin, end))

    # --- what happens ---

    def _begin(self, rank: int, now: float) -> None:
        share = self._share(rank)
        self.busy[rank] = True
        self.unpacked[rank] = 0
        self.come[rank] = self.early[rank].pop(self.at[rank], [])
        self.left[rank] = list(share.pieces)
        self._note(rank, "pack", now, now + share.begin)
        self._push(now + share.begin, _BEGUN, rank)

    def _post(self, rank: int, now: float) -> None:
        overhead = self.roads.machine.network.overhead
        share = self._share(rank)
        for n in range(len(share.sends)):
            self._push(now + n * overhead, _SENT, rank, self.at[rank] << 8 | n)
        done = now + len(share.sends) * overhead
        self._note(rank, "send", now, done)
        self._push(done, _DONE, rank)

    def _travel(self, rank: int, what: int, now: float) -> None:
        sweep, n = what >> 8, what & 255
        direction, size = self.shares[rank][sweep % len(self.sweeps)].sends[n]
        peer = self.decomposition.neighbour(rank, direction)
        assert peer is not None
        bit = self.shares[peer][sweep % len(self.sweeps)].receives[tuple(-d for d in direction)]
        number = next(self.numbers)
        self.messages[number] = _Travel(
            rank, peer, sweep << 8 | bit, size, self.roads.hops(rank, peer), now, last=now
        )
        self._cross(number, now)

    def _cross(self, number: int, now: float) -> None:
        message = self.messages[number]
        there = self.roads.cross(message, now)
        if message.reached < len(message.hops):
            self._push(there, _HOP, number)
            return
        del self.messages[number]
        if message.sender in self.traced:
            name = f"message to {message.receiver}"
            self.spans.append(Span(message.sender, name, message.begin, message.last))
        self._push(message.last, _COME, message.receiver, message.what)

    def _arrive(self, rank: int, what: int, now: float) -> None:
        sweep, bit = what >> 8, what & 255
        if sweep != self.at[rank]:
            self.early[rank].setdefault(sweep, []).append(bit)
            return
        self.come[rank].append(bit)
        if not self.busy[rank]:
            self._next(rank, now)

    def _finish(self, rank: int, what: int, now: float) -> None:
        """A piece of work is done; `what` is one more than the message that was unpacked, or 0."""
        if what:
            self.unpacked[rank] |= 1 << (what - 1)
        self._next(rank, now)

    def _next(self, rank: int, now: float) -> None:
        share = self._share(rank)
        self.busy[rank] = True
        if self.come[rank]:
            bit = self.come[rank].pop(0)
            done = now + share.unpacking[bit]
            self._note(rank, "unpack", now, done)
            self._push(done, _DONE, rank, bit + 1)
            return
        have = self.unpacked[rank]
        ready = self.overlap or have == share.all_received
        for i, (needs, seconds) in enumerate(self.left[rank]):
            if ready and needs & ~have == 0:
                del self.left[rank][i]
                self._note(rank, share.name, now, now + seconds)
                self._push(now + seconds, _DONE, rank)
                return
        if self.left[rank] or have != share.all_received:
            self.busy[rank] = False
        elif share.reduces:
            self._reduce(rank, now)
        else:
            self._advance(rank, now)

    def _reduce(self, rank: int, now: float) -> None:
        """Events come in the order of time: who comes last has waited for no one."""
        sweep, ranks = self.at[rank], self.decomposition.count
        self.joined[sweep] = self.joined.get(sweep, 0) + 1
        if rank in self.traced:
            self.spans.append(Span(rank, "reduction", now, now))
        if self.joined[sweep] == ranks:
            done = now + (self.roads.tree(ranks) if ranks > 1 else 0.0)
            for each in range(ranks):
                self._advance(each, done)

    def _advance(self, rank: int, now: float) -> None:
        self.at[rank] += 1
        turn, within = divmod(self.at[rank], len(self.sweeps))
        if within == 0:
            self.ended[turn - 1] = max(self.ended[turn - 1], now)
        if self.at[rank] < self.last:
            self._begin(rank, now)

    # --- what each rank has to do ---

    def _shares(self, rank: int) -> tuple[_Share, ...]:
        """Of one rank: the same for all whose subdomains have its shape and touch the same walls."""
        cut = self.decomposition
        box = cut.box(rank)
        kind = (
            box.shape,
            tuple(c == 0 for c in cut.coordinates(rank)),
            tuple(c == p - 1 for c, p in zip(cut.coordinates(rank), cut.parts, strict=True)),
        )
        if kind not in self.kinds:
            plan = self.plan(rank)
            todo = {id(s): p for s, p in zip(self.schedule.sweeps(), plan.sweeps, strict=True)}
            self.kinds[kind] = tuple(self._of_sweep(s, todo[id(s)], plan) for s in self.sweeps)
        return self.kinds[kind]

    def _of_sweep(self, sweep: Sweep, todo: SweepPlan, plan: SubdomainPlan) -> _Share:
        rates = self.rates
        table = plan.patches.table
        cells = (table[:, 1, :] - table[:, 0, :]).prod(axis=1)
        pieces: dict[int, float] = {}
        for needs, own in zip(todo.patch_needs.tolist(), cells.tolist(), strict=True):
            pieces[needs] = pieces.get(needs, 0.0) + own * sweep.bytes / rates.bandwidth
        copied = sum(c.source.size * ITEMSIZE[plan.fields[c.field].dtype] for c in todo.copies)
        packed = sum(message.bytes for message in todo.sends)
        return _Share(
            " and ".join(sweep.names),
            rates.begin + (copied + packed) / rates.packing,
            tuple((m.direction, m.bytes) for m in todo.sends),
            {m.direction: bit for bit, m in enumerate(todo.receives)},
            tuple(m.bytes / rates.packing for m in todo.receives),
            tuple(sorted(pieces.items(), key=lambda piece: (piece[0].bit_count(), piece[0]))),
            (1 << len(todo.receives)) - 1,
            bool(sweep.reductions),
        )
