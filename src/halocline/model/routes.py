"""The links of all nodes of a machine, and the messages that cross them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log2

from halocline.plan.layout import Layout
from halocline.plan.machine import Machine, Route


@dataclass(frozen=True)
class Hop:
    """One direction of a link, or a network card, on the way of a message."""

    at_home: bool  # at the sender's node, not the receiver's
    ends: tuple[str, str]
    bandwidth: float
    latency: float


@dataclass(slots=True)
class Travel:
    """Bytes on their way from one subdomain to another.

    `least` is the earliest time at which they can all be there. What is `pulled` keeps its receiver busy
    until then; it has waited for the latency before.
    """

    sender: int
    receiver: int
    sweep: int
    number: int  # of the message at the receiver
    size: int
    hops: list[Hop]
    begin: float
    least: float
    pulled: bool
    reached: int = 0  # hops


class Routes:
    """The links of all nodes, and when each is free."""

    def __init__(self, machine: Machine, layout: Layout) -> None:
        self.machine, self.layout = machine, layout
        slots = layout.slots_per_node
        places = [layout.slot(subdomain) for subdomain in range(layout.decomposition.count)]
        self.node = [node for node, _ in places]
        self.device = [machine.device_of(slot, slots) for _, slot in places]
        self.free: dict[tuple[int, tuple[str, str]], float] = {}
        self._known: dict[tuple[int, int, bool], tuple[list[Hop], float]] = {}

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
        """Let a message that is at its next hop cross it; when it is at the one after."""
        hop = message.hops[message.reached]
        key = self.node[message.sender if hop.at_home else message.receiver], hop.ends
        begin = max(now, self.free.get(key, 0.0))
        self.free[key] = through = begin + message.size / hop.bandwidth
        latency = 0.0 if message.pulled else hop.latency
        message.least = max(message.least, through) + latency
        message.reached += 1
        return begin + latency

    def way(self, sender: int, receiver: int) -> tuple[list[Hop], float]:
        """The hops from one subdomain to another, and the sum of their latencies."""
        same = self.node[sender] == self.node[receiver]
        key = self.device[sender], self.device[receiver], same
        if key not in self._known:
            hops = list(self._way(*key))
            self._known[key] = hops, sum(hop.latency for hop in hops)
        return self._known[key]

    def links(self, sender: int, receiver: int) -> list[Hop]:
        """The links that one rank's reads of another's memory cross: none on the same device, where they are
        bound by its memory."""
        return [] if self.device[sender] == self.device[receiver] else self.way(sender, receiver)[0]

    def _way(self, a: int, b: int, same_node: bool) -> Iterator[Hop]:
        machine, network = self.machine, self.machine.network
        if same_node and a == b:
            ends = (f"device{a}", f"device{a}")
            device = machine.device
            yield Hop(True, ends, device.messages or device.bandwidth / 2, device.latency)
        elif same_node:
            yield from self._links(True, machine.route(f"device{a}", f"device{b}"))
        else:
            out, into = machine.card(a), machine.card(b)
            yield from self._links(True, machine.route(f"device{a}", out))
            yield Hop(True, (out, "network"), network.bandwidth, network.latency + network.overhead)
            yield Hop(False, ("network", into), network.bandwidth, 0.0)
            yield from self._links(False, machine.route(into, f"device{b}"))

    def _links(self, at_home: bool, route: Route) -> Iterator[Hop]:
        for start, end, link in route:
            ends = (start, end) if link.duplex or start < end else (end, start)
            yield Hop(at_home, ends, link.bandwidth, link.latency)
