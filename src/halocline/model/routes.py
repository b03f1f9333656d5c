"""The links of all nodes of a machine, and the messages that cross them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, log2

from halocline.plan.layout import Layout
from halocline.plan.machine import Host, Machine, Route


@dataclass(frozen=True)
class Hop:
    """Server on the way of a message: one direction of a link, a network card, or a rank that copies.

    Attributes
    ----------
    at_home : bool
        Whether it belongs to the sender's node, not the receiver's.
    ends : (str, str)
        The two ends of the link. Both empty: the receiver itself.
    bandwidth : float
        Bytes a second.
    latency : float
        Seconds.
    whole : bool
        Whether the message goes on only when its last byte has passed.
    per_row : float
        Seconds of each row of a message that is not packed.
    """

    at_home: bool
    ends: tuple[str, str]
    bandwidth: float
    latency: float
    whole: bool = False
    per_row: float = 0.0


RECEIVER = ("", "")  # ends of the copies that a receiving rank makes


@dataclass(slots=True)
class Travel:
    """Bytes on their way from one subdomain to another.

    `least` is the earliest time at which they can all be there. What is `pulled` keeps its receiver busy
    until then; it has waited for the latency before. `rows` are counted where a message is not packed.
    """

    sender: int
    receiver: int
    sweep: int
    number: int  # of the message at the receiver; COPIED where the rank copies between two of its devices
    size: int
    hops: Sequence[Hop]
    begin: float
    least: float
    pulled: bool
    share: float = 1.0  # of the passes in which it is sent
    rows: int = 0
    follows: bool = False  # one message of its rank after the other
    reached: int = 0  # hops


COPIED = -1


class Routes:
    """The links of all nodes, and when each is free."""

    def __init__(self, machine: Machine, layout: Layout) -> None:
        self.machine, self.layout = machine, layout
        self.devices = frozenset(machine.devices)
        slots = layout.slots_per_node
        places = [layout.slot(subdomain) for subdomain in range(layout.decomposition.count)]
        self.node = [node for node, _ in places]
        self.device = [machine.device_of(slot, slots) for _, slot in places]
        self.rank = [layout.home(subdomain)[0] for subdomain in range(layout.decomposition.count)]
        self.free: dict[tuple[int, tuple[str, str]], float] = {}
        self._known: dict[tuple[int, int, bool, str], tuple[list[Hop], float]] = {}

    def tree(self, ranks: int, hop: float | None = None) -> float:
        """The seconds that a number takes through a tree over all ranks and back; `hop` of them within a
        node, if that is known."""
        inside = min(ranks, self.layout.ranks_per_node)
        nodes = -(-ranks // self.layout.ranks_per_node)
        network = self.machine.network
        if hop is None:
            near = max((link.latency for link in self.machine.links), default=0.0)
            hop = 2 * (near + network.overhead)
        return 2 * ceil(log2(nodes)) * (network.latency + 2 * network.overhead) + ceil(log2(inside)) * hop

    def cross(self, message: Travel, now: float) -> float:
        """Let a message that is at its next hop cross it; return when it is at the one after."""
        hop = message.hops[message.reached]
        if hop.ends == RECEIVER:
            key = self.rank[message.receiver], hop.ends
        else:
            key = self.node[message.sender if hop.at_home else message.receiver], hop.ends
        begin = max(now, self.free.get(key, 0.0))
        taken = message.size / hop.bandwidth + message.share * message.rows * hop.per_row
        self.free[key] = through = begin + taken
        latency = 0.0 if message.pulled else message.share * hop.latency
        message.least = max(message.least, through) + latency
        message.reached += 1
        return message.least if hop.whole else begin + latency

    def kernel(
        self, subdomain: int, now: float, seconds: float, device: int | None = None
    ) -> tuple[float, float]:
        """Let a kernel follow others on the device of a subdomain, or on another of its node; return its
        begin and end."""
        key = self._kernels(subdomain, device)
        begin = max(now, self.free.get(key, 0.0))
        self.free[key] = end = begin + seconds
        return begin, end

    def idle(self, subdomains: Iterable[int], now: float) -> float:
        """Return when the devices of some subdomains have ended their kernels."""
        return max(now, *(self.free.get(self._kernels(subdomain), 0.0) for subdomain in subdomains))

    def _kernels(self, subdomain: int, device: int | None = None) -> tuple[int, tuple[str, str]]:
        number = self.device[subdomain] if device is None else device
        return self.node[subdomain], (f"device{number}", "kernels")

    def way(self, sender: int, receiver: int, method: str = "") -> tuple[list[Hop], float]:
        """Return the hops from one subdomain to another by a transfer method, and their latencies added."""
        same = self.node[sender] == self.node[receiver]
        key = self.device[sender], self.device[receiver], same, method
        if key not in self._known:
            hops = list(self._way(*key))
            self._known[key] = hops, sum(hop.latency for hop in hops)
        return self._known[key]

    def within(self, a: int, b: int) -> list[Hop]:
        """Return the links from one device of a node to another."""
        return list(self._links(True, self.machine.route(f"device{a}", f"device{b}")))

    def links(self, sender: int, receiver: int) -> list[Hop]:
        """Return the links that reads of another subdomain's memory cross: none on the same device, where
        they are bound by its memory."""
        return [] if self.device[sender] == self.device[receiver] else self.way(sender, receiver)[0]

    def _way(self, a: int, b: int, same_node: bool, method: str) -> Iterator[Hop]:
        machine, network = self.machine, self.machine.network
        if method == "mpi" and machine.host is not None:
            yield from self._through_hosts(machine.host, a, b, same_node)
            return
        aware = machine.aware if method == "gpu_aware" else None
        if same_node and a == b:
            ends = (f"device{a}", f"device{a}")
            device = machine.device
            yield Hop(True, ends, device.messages or device.bandwidth / 2, device.latency)
        elif same_node:
            most = (aware and aware.within) or inf
            yield from self._links(True, machine.route(f"device{a}", f"device{b}"), most)
        else:
            most = (aware and aware.bandwidth) or inf
            out, into = machine.card(a), machine.card(b)
            yield from self._links(True, machine.route(f"device{a}", out), most)
            yield Hop(True, (out, "network"), network.bandwidth, network.latency + network.overhead)
            yield Hop(False, ("network", into), network.bandwidth, 0.0)
            yield from self._links(False, machine.route(into, f"device{b}"), most)

    def _through_hosts(self, host: Host, a: int, b: int, same_node: bool) -> Iterator[Hop]:
        """Yield the hops of a message that is copied to the host, sent, and copied to the other device: each
        stage begins when the one before has ended (STAGED, Pearson et al. 2020, Section III.C)."""
        machine, network = self.machine, self.machine.network
        here, there = machine.socket(a), machine.socket(b)
        yield self._staged(host, True, machine.route(f"device{a}", here))
        if same_node:
            yield from self._links(True, machine.route(here, there) if here != there else ())
            yield Hop(False, RECEIVER, host.copying, machine.device.latency, whole=True)
        else:
            out, into = machine.card(a), machine.card(b)
            yield from self._links(True, machine.route(here, out))
            yield Hop(True, (out, "network"), network.bandwidth, network.latency + network.overhead)
            *more, last = (
                Hop(False, ("network", into), network.bandwidth, 0.0),
                *self._links(False, machine.route(into, there)),
            )
            yield from more
            yield replace(last, whole=True)
        yield self._staged(host, False, machine.route(there, f"device{b}"))

    def _staged(self, host: Host, at_home: bool, route: Route) -> Hop:
        """Return the hop of a copy between a device and its host."""
        slowest = min(self._links(at_home, route), key=lambda hop: hop.bandwidth)
        bandwidth = min(slowest.bandwidth, host.staging or inf)
        latency = host.latency + sum(link.latency for _, _, link in route)
        return replace(slowest, bandwidth=bandwidth, latency=latency, whole=True, per_row=host.per_row)

    def _links(self, at_home: bool, route: Route, most: float = inf) -> Iterator[Hop]:
        """Yield the links of a route; that of a device carries no more than `most`."""
        for start, end, link in route:
            ends = (start, end) if link.duplex or start < end else (end, start)
            bandwidth = min(link.bandwidth, most) if {start, end} & self.devices else link.bandwidth
            yield Hop(at_home, ends, bandwidth, link.latency)
