"""Machines as data: the devices of a node, the links between them, and the network, from TOML files.

A file names the parts of a node (devices, sockets, switches, network cards) and the links between pairs of
them. What goes from one part to another takes the widest route: of all chains of links the one whose
narrowest link carries most, and of equally wide ones the shortest.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from halocline.errors import InputError
from halocline.words import invalid, near


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Device(_Part):
    """The devices of a node, all of one kind.

    Attributes
    ----------
    kind : {"gpu", "cpu"}
        A CPU device is a socket.
    model : str
    count : int
        In one node; they are called device0, device1, ... in links.
    bandwidth : float
        Bytes a second between the device and its own memory.
    memory : float
        Bytes.
    flops : float
        Operations of float64 a second, at most; twice as many of float32.
    sustained : float
        Share of `flops` that sweeps reach where arithmetic is the limit.
    cores : int, optional
        Cores of a processor. Without it threads are not told from cores.
    launch : float
        Seconds from one kernel to the next on an idle device.
    routes : bool
        Whether what others send may pass through a device.
    latency : float
        Seconds from one rank to another that share a device.
    messages : float, optional
        Bytes a second of messages between two such ranks; half of `bandwidth`, to read and to write, where
        not given.
    core_bandwidth : float, optional
        Bytes a second between one core and memory, at most; as much as the device has where not given.
    cache : float
        Bytes of the cache that the cores of a processor share.
    cache_bandwidth : float, optional
        Bytes a second between one core and its caches. Without it fields in a cache are as far as memory.
    """

    kind: Literal["gpu", "cpu"]
    model: str
    count: int = Field(ge=1)
    bandwidth: float = Field(gt=0, allow_inf_nan=False)
    memory: float = Field(gt=0, allow_inf_nan=False)
    flops: float = Field(gt=0, allow_inf_nan=False)
    sustained: float = Field(default=1.0, gt=0, le=1)
    cores: int | None = Field(default=None, ge=1)
    launch: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    routes: bool = False
    latency: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    messages: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    core_bandwidth: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    cache: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    cache_bandwidth: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class Link(_Part):
    """Links of one kind.

    Attributes
    ----------
    ends : list of (str, str)
        The parts that each joins.
    bandwidth : float
        Bytes a second of one of them in one direction.
    latency : float
        Seconds that a message takes to cross it.
    duplex : bool
        Whether both directions have that bandwidth at once.
    """

    ends: tuple[tuple[str, str], ...] = Field(min_length=1)
    bandwidth: float = Field(gt=0, allow_inf_nan=False)
    latency: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    duplex: bool = True


Route = tuple[tuple[str, str, Link], ...]


class Network(_Part):
    """What joins nodes: a network without bottlenecks of its own, reached through the node's cards.

    Attributes
    ----------
    cards : list of str
        Parts of the node; each has a link to the rest.
    bandwidth : float
        Bytes a second of one card in one direction.
    latency : float
        Seconds from card to card.
    overhead : float
        Seconds that sending or receiving a message takes on a rank.
    """

    cards: tuple[str, ...] = Field(min_length=1)
    bandwidth: float = Field(gt=0, allow_inf_nan=False)
    latency: float = Field(ge=0, allow_inf_nan=False)
    overhead: float = Field(ge=0, allow_inf_nan=False)


class Host(_Part):
    """Processors of a node of GPUs: messages by the method "mpi" go through their memory.

    Attributes
    ----------
    sockets : list of str
        Parts of the node; each device has its buffers at the nearest one.
    copying : float
        Bytes a second that a rank copies out of the memory of another process of its node, or of its own.
    staging : float, optional
        Bytes a second of a copy between a device and its host, where it is slower than the links.
    latency : float
        Seconds of such a copy of next to nothing.
    per_row : float
        Seconds of each row of cells in a copy of a message that is not packed.
    """

    sockets: tuple[str, ...] = Field(min_length=1)
    copying: float = Field(gt=0, allow_inf_nan=False)
    staging: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    latency: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    per_row: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class Aware(_Part):
    """MPI that takes messages out of the memory of devices: method "gpu_aware".

    Attributes
    ----------
    bandwidth : float, optional
        Bytes a second between one device and other nodes; as much as the links have where not given.
    within : float, optional
        Bytes a second of one device to and from others of its node, likewise.
    setup : float
        Seconds before each message.
    serial : bool
        Whether the messages of a rank follow one another: each begins when the one before has arrived.
    """

    bandwidth: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    within: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    setup: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    serial: bool = False


class Throughput(_Part):
    """How fast sweeps are on a rank while this number of ranks of a node are at work at once.

    Attributes
    ----------
    ranks : int
    memory : float
        Bytes of the fields of a node up to which this holds; `inf` for all that exceed a cache.
    bandwidth : float
        Bytes a second of one rank.
    per_flop, per_sum : float
        Seconds that an operation, and a summand of a sum over the grid, take beside the bytes.
    """

    ranks: int = Field(ge=1)
    memory: float = Field(gt=0)
    bandwidth: float = Field(gt=0, allow_inf_nan=False)
    per_flop: float = Field(ge=0, allow_inf_nan=False)
    per_sum: float = Field(ge=0, allow_inf_nan=False)


class Measured(_Part):
    """What was measured of ranks of one thread, in the place of what follows from the devices.

    Attributes
    ----------
    begin : float
        Seconds of a sweep over next to nothing.
    packing : float
        Bytes a second that a rank packs, unpacks or copies.
    copying : float
        Bytes a second that it copies out of another rank's memory.
    hop : float
        Seconds that a reduction takes from one rank of a node to another and back.
    sweeps : tuple of Throughput
    """

    begin: float = Field(ge=0, allow_inf_nan=False)
    packing: float = Field(gt=0, allow_inf_nan=False)
    copying: float = Field(gt=0, allow_inf_nan=False)
    hop: float = Field(ge=0, allow_inf_nan=False)
    sweeps: tuple[Throughput, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Measured:
        known = [(pace.ranks, pace.memory) for pace in self.sweeps]
        for ranks, memory in known:
            if known.count((ranks, memory)) > 1:
                raise ValueError(f"two paces of {ranks} ranks with up to {memory:g} bytes; expected one")
        return self

    def pace(self, ranks: int, memory: float) -> Throughput:
        """Of the fewest ranks measured that are not fewer, else of the most; and of the least memory that
        holds so much, else of the most."""
        counts = {pace.ranks for pace in self.sweeps}
        count = min((c for c in counts if c >= ranks), default=max(counts))
        known = sorted((p for p in self.sweeps if p.ranks == count), key=lambda p: p.memory)
        return next((p for p in known if p.memory >= memory), known[-1])


class Machine(_Part):
    """A cluster of equal nodes.

    Attributes
    ----------
    name, title : str
    source : str
        Where the numbers are from.
    nodes : int
        How many there are, at most.
    device : Device
    links : tuple of Link
    network : Network
    host : Host, optional
        Of a node of GPUs. Without it messages by MPI go from device to device.
    aware : Aware, optional
        Where MPI takes messages out of the memory of devices. Without it such messages follow the links.
    measured : Measured, optional
    """

    name: str
    title: str
    source: str
    nodes: int = Field(ge=1)
    device: Device
    links: tuple[Link, ...] = ()
    network: Network
    host: Host | None = None
    aware: Aware | None = None
    measured: Measured | None = None

    @model_validator(mode="after")
    def _joined(self) -> Machine:
        """Every device reaches every other and a network card."""
        parts = {end for link in self.links for pair in link.ends for end in pair}
        for name in (*self.devices, *self.network.cards):
            if name not in parts and len(self.devices) + len(self.network.cards) > 1:
                raise ValueError(f"no link joins {name!r} to the rest of the node")
        for a in self.devices:
            for b in self.devices:
                if a != b and not self.route(a, b):
                    raise ValueError(f"no links lead from {a!r} to {b!r}")
            if not any(self.route(a, card) for card in self.network.cards):
                raise ValueError(f"no links lead from {a!r} to a network card")
            if self.host is not None and not any(self.route(a, socket) for socket in self.host.sockets):
                raise ValueError(f"no links lead from {a!r} to a socket of the host")
        return self

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of a node's devices."""
        return tuple(f"device{n}" for n in range(self.device.count))

    @cached_property
    def _neighbours(self) -> dict[str, list[tuple[str, Link]]]:
        found: dict[str, list[tuple[str, Link]]] = {}
        for link in self.links:
            for a, b in link.ends:
                found.setdefault(a, []).append((b, link))
                found.setdefault(b, []).append((a, link))
        return found

    @cached_property
    def _routes(self) -> dict[str, dict[str, Route]]:
        sockets = () if self.host is None else self.host.sockets
        return {start: self._widest(start) for start in (*self.devices, *self.network.cards, *sockets)}

    def route(self, start: str, end: str) -> Route:
        """Return the links between two devices, cards or sockets of the host, each with its two ends; empty
        without links."""
        return self._routes[start].get(end, ())

    def _widest(self, start: str) -> dict[str, Route]:
        """The widest route from a part to every other: Dijkstra's algorithm with (width, -links) in the place
        of length."""
        best: dict[str, tuple[float, int]] = {start: (float("inf"), 0)}
        routes: dict[str, Route] = {start: ()}
        done: set[str] = set()
        while len(done) < len(best):
            here = max((part for part in best if part not in done), key=best.__getitem__)
            done.add(here)
            if here in self.devices and here != start and not self.device.routes:
                continue
            width, links = best[here]
            for there, link in self._neighbours.get(here, ()):
                through = min(width, link.bandwidth), links - 1
                if there not in done and through > best.get(there, (0.0, 0)):
                    best[there], routes[there] = through, (*routes[here], (here, there, link))
        return routes

    def bandwidth(self, a: int, b: int) -> float:
        """Bytes a second from device a of a node to device b where all devices send at once.

        A link between two parts that are no devices is shared by those whose routes lead over it. Of a device
        to itself: its memory's.
        """
        if a == b:
            return self.device.bandwidth
        return min(
            link.bandwidth / len(self._senders.get((start, end), (a,)))
            for start, end, link in self.route(f"device{a}", f"device{b}")
        )

    @cached_property
    def _senders(self) -> dict[tuple[str, str], set[str]]:
        """The devices whose routes lead over each link between other parts, by its direction."""
        found: dict[tuple[str, str], set[str]] = {}
        for a in self.devices:
            for b in self.devices:
                for start, end, link in self.route(a, b):
                    if start not in self.devices and end not in self.devices:
                        found.setdefault((start, end), set()).add(a)
                        if not link.duplex:
                            found.setdefault((end, start), set()).add(a)
        return found

    def device_of(self, slot: int, slots: int) -> int:
        """The device of one of the subdomains of a node: neighbours share one where there are more."""
        return slot * self.device.count // max(slots, self.device.count)

    def distance(self, slots: int | None = None) -> list[list[float]]:
        """Seconds per byte between the devices of a node, or between the subdomains on them, as
        `halocline.plan.place` takes them."""
        count = self.device.count if slots is None else slots
        device = [self.device_of(slot, count) for slot in range(count)]
        return [[1.0 / self.bandwidth(a, b) for b in device] for a in device]

    def card(self, device: int) -> str:
        """The network card that a device is nearest to; devices that are equally near take turns."""
        return self._nearest(device, self.network.cards)

    def socket(self, device: int) -> str:
        """Return the socket of the host that a device is nearest to."""
        assert self.host is not None
        return self._nearest(device, self.host.sockets)

    def _nearest(self, device: int, parts: Iterable[str]) -> str:
        name = f"device{device}"
        routes = {part: self.route(name, part) for part in parts}
        least = min(len(route) for route in routes.values() if route)
        near = [part for part, route in routes.items() if len(route) == least]
        return near[device % len(near)]

    @property
    def injection(self) -> float:
        """Bytes a second that leave a node over all its cards."""
        return self.network.bandwidth * len(self.network.cards)


def known_machines() -> tuple[str, ...]:
    """The names of the machines that come with Halocline."""
    folder = files("halocline.plan") / "machines"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def load_machine(name: str | Path) -> Machine:
    """A machine by the name of one that comes with Halocline, or the path of a TOML file.

    Raises
    ------
    InputError
        There is no such machine or file, or it says something that cannot be: names the entry.
    """
    text = str(name)
    if text in known_machines():
        content = (files("halocline.plan") / "machines" / f"{text}.toml").read_text()
        return parse_machine(content, text)
    path = Path(name)
    if not path.suffix:
        hint = near(text, known_machines())
        raise InputError(
            f"machine {text!r} is unknown{hint}; known: {', '.join(known_machines())}, or the path of a TOML "
            "file"
        )
    try:
        content = path.read_text()
    except OSError as error:
        raise InputError(f"machine file {text!r} cannot be read ({error.strerror})") from None
    return parse_machine(content, text)


def parse_machine(content: str, where: str) -> Machine:
    """A machine from the text of a TOML file; `where` is named in errors."""
    try:
        return Machine.model_validate(tomllib.loads(content))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"machine file {where!r} is not TOML: {error}") from None
    except ValidationError as error:
        raise InputError(f"machine file {where!r}: {'; '.join(map(invalid, error.errors()))}") from None
