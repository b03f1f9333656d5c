"""Links of all nodes of a machine, and the messages that pass through these links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, log2

from halocline.plan.layout import Layout
from halocline.plan.machine import Host, Machine, Route


@dataclass(frozen=True)
class Hop:
    """Resource on the route of a message: one direction of a link, a network card, or a rank that copies.

    Attributes
    ----------
    at_sender : bool
        True for the node of the sender, False for the node of the receiver.
    ends : (str, str)
        Names of the two ends of the link. Both are empty if the receiver copies.
    bandwidth : float
        Bytes per second.
    latency : float
        Latency in seconds.
    store_and_forward : bool
        True if a message continues to the next hop only after its last byte has passed.
    per_row : float
        Seconds per row of a message that is not packed.
    """

    at_sender: bool
    ends: tuple[str, str]
    bandwidth: float
    latency: float
    store_and_forward: bool = False
    per_row: float = 0.0


RECEIVER = ("", "")  # ends of a copy by the receiving rank


@dataclass(slots=True)
class Travel:
    """Message or copy in transit from one subdomain to another.

    `earliest_arrival` is the earliest time at which all bytes can have arrived. If `is_pulled` is True, the
    message occupies its receiver until this time, after the latency has passed. `rows` is the number of rows
    of an unpacked message.
    """

    sender: int
    receiver: int
    sweep: int
    number: int  # Message number at the receiver, or COPIED for a copy between devices of a rank.
    size: int
    hops: Sequence[Hop]
    begin: float
    earliest_arrival: float
    is_pulled: bool
    share: float = 1.0  # Fraction of the passes in which the message is sent.
    rows: int = 0
    is_serial: bool = False  # True if a rank sends its messages one after another.
    hops_passed: int = 0  # Number of hops that the message has passed.


COPIED = -1


class Routes:
    """Links of all nodes, and the time at which each link becomes free."""

    def __init__(self, machine: Machine, layout: Layout) -> None:
        self.machine, self.layout = machine, layout
        self.devices = frozenset(machine.devices)
        slots = layout.slots_per_node
        places = [layout.slot(subdomain) for subdomain in range(layout.decomposition.count)]
        self.node = [node for node, _ in places]
        self.device = [machine.device_of(slot, slots) for _, slot in places]
        self.rank = [layout.home(subdomain)[0] for subdomain in range(layout.decomposition.count)]
        self.free_at: dict[tuple[int, tuple[str, str]], float] = {}
        self._hops_by_devices: dict[tuple[int, int, bool, str], tuple[list[Hop], float]] = {}

    def tree_time(self, ranks: int, hop: float | None = None) -> float:
        """Return the time to send a number through a tree over all ranks and back, in seconds.

        Parameters
        ----------
        ranks : int
            Number of ranks.
        hop : float, optional
            Seconds from one rank of a node to another and back. The default follows from the links and the
            overhead.
        """
        inside = min(ranks, self.layout.ranks_per_node)
        nodes = -(-ranks // self.layout.ranks_per_node)
        network = self.machine.network
        if hop is None:
            link_latency = max((link.latency for link in self.machine.links), default=0.0)
            hop = 2 * (link_latency + network.overhead)
        return 2 * ceil(log2(nodes)) * (network.latency + 2 * network.overhead) + ceil(log2(inside)) * hop

    def cross(self, message: Travel, current_time: float) -> float:
        """Move a message through its next hop, and return its arrival time at the following hop."""
        hop = message.hops[message.hops_passed]
        if hop.ends == RECEIVER:
            key = self.rank[message.receiver], hop.ends
        else:
            key = self.node[message.sender if hop.at_sender else message.receiver], hop.ends
        begin = max(current_time, self.free_at.get(key, 0.0))
        duration = message.size / hop.bandwidth + message.share * message.rows * hop.per_row
        self.free_at[key] = end = begin + duration
        latency = 0.0 if message.is_pulled else message.share * hop.latency
        message.earliest_arrival = max(message.earliest_arrival, end) + latency
        message.hops_passed += 1
        return message.earliest_arrival if hop.store_and_forward else begin + latency

    def queue_kernel(
        self, subdomain: int, current_time: float, seconds: float, device: int | None = None
    ) -> tuple[float, float]:
        """Queue a kernel on the device of a subdomain, or on another device of its node.

        Return the start time and the end time of the kernel.
        """
        key = self._device_queue(subdomain, device)
        begin = max(current_time, self.free_at.get(key, 0.0))
        self.free_at[key] = end = begin + seconds
        return begin, end

    def idle_time(self, subdomains: Iterable[int], current_time: float) -> float:
        """Return the time at which the devices of the subdomains have completed all queued kernels."""
        return max(
            current_time, *(self.free_at.get(self._device_queue(subdomain), 0.0) for subdomain in subdomains)
        )

    def _device_queue(self, subdomain: int, device: int | None = None) -> tuple[int, tuple[str, str]]:
        number = self.device[subdomain] if device is None else device
        return self.node[subdomain], (f"device{number}", "kernels")

    def hops_between(self, sender: int, receiver: int, method: str = "") -> tuple[list[Hop], float]:
        """Return the hops from one subdomain to another by a transfer method, and their total latency."""
        is_same_node = self.node[sender] == self.node[receiver]
        key = self.device[sender], self.device[receiver], is_same_node, method
        if key not in self._hops_by_devices:
            hops = list(self._find_hops(*key))
            self._hops_by_devices[key] = hops, sum(hop.latency for hop in hops)
        return self._hops_by_devices[key]

    def hops_within_node(self, a: int, b: int) -> list[Hop]:
        """Return the links from one device of a node to another."""
        return list(self._links(True, self.machine.route(f"device{a}", f"device{b}")))

    def read_hops(self, sender: int, receiver: int) -> list[Hop]:
        """Return the links through which a rank reads the memory of another subdomain.

        The result is empty for subdomains on the same device, because the device memory limits these reads.
        """
        return [] if self.device[sender] == self.device[receiver] else self.hops_between(sender, receiver)[0]

    def _find_hops(self, a: int, b: int, same_node: bool, method: str) -> Iterator[Hop]:
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
            max_bandwidth = (aware and aware.within) or inf
            yield from self._links(True, machine.route(f"device{a}", f"device{b}"), max_bandwidth)
        else:
            max_bandwidth = (aware and aware.bandwidth) or inf
            sender_card, receiver_card = machine.card(a), machine.card(b)
            yield from self._links(True, machine.route(f"device{a}", sender_card), max_bandwidth)
            yield Hop(True, (sender_card, "network"), network.bandwidth, network.latency + network.overhead)
            yield Hop(False, ("network", receiver_card), network.bandwidth, 0.0)
            yield from self._links(False, machine.route(receiver_card, f"device{b}"), max_bandwidth)

    def _through_hosts(self, host: Host, a: int, b: int, same_node: bool) -> Iterator[Hop]:
        """Yield the hops of a message that is copied to the host, sent, and copied to the other device.

        Each stage begins when the previous one has ended (STAGED, Pearson et al. 2020, Section III.C).
        """
        machine, network = self.machine, self.machine.network
        sender_socket, receiver_socket = machine.socket(a), machine.socket(b)
        yield self._staged(host, True, machine.route(f"device{a}", sender_socket))
        if same_node:
            yield from self._links(
                True,
                machine.route(sender_socket, receiver_socket) if sender_socket != receiver_socket else (),
            )
            yield Hop(False, RECEIVER, host.copying, machine.device.latency, store_and_forward=True)
        else:
            sender_card, receiver_card = machine.card(a), machine.card(b)
            yield from self._links(True, machine.route(sender_socket, sender_card))
            yield Hop(True, (sender_card, "network"), network.bandwidth, network.latency + network.overhead)
            *inner_hops, last = (
                Hop(False, ("network", receiver_card), network.bandwidth, 0.0),
                *self._links(False, machine.route(receiver_card, receiver_socket)),
            )
            yield from inner_hops
            yield replace(last, store_and_forward=True)
        yield self._staged(host, False, machine.route(receiver_socket, f"device{b}"))

    def _staged(self, host: Host, at_sender: bool, route: Route) -> Hop:
        """Return the hop of a copy between a device and its host."""
        slowest = min(self._links(at_sender, route), key=lambda hop: hop.bandwidth)
        bandwidth = min(slowest.bandwidth, host.staging or inf)
        latency = host.latency + sum(link.latency for _, _, link in route)
        return replace(
            slowest, bandwidth=bandwidth, latency=latency, store_and_forward=True, per_row=host.per_row
        )

    def _links(self, at_sender: bool, route: Route, max_bandwidth: float = inf) -> Iterator[Hop]:
        """Yield the links of a route. The bandwidth of links at devices is at most `max_bandwidth`."""
        for start, end, link in route:
            ends = (start, end) if link.duplex or start < end else (end, start)
            bandwidth = min(link.bandwidth, max_bandwidth) if {start, end} & self.devices else link.bandwidth
            yield Hop(at_sender, ends, bandwidth, link.latency)
