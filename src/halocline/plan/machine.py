"""Machine descriptions from TOML files: devices of a node, links between them, and the network.

A file names the parts of a node (devices, sockets, switches, network cards) and the links between pairs of
parts. Data take the widest route between two parts. The width of a route is the bandwidth of its narrowest
link. Of equally wide routes, data take the one with the fewest links.
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
from halocline.words import suggestion, validation_message


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Device(_Part):
    """Devices of a node, all of one kind.

    Attributes
    ----------
    kind : {"gpu", "cpu"}
        A CPU device is a socket.
    model : str
    count : int
        Number of devices per node. Links refer to the devices as device0, device1, ...
    bandwidth : float
        Bytes per second between the device and its memory.
    memory : float
        Size of the device memory in bytes.
    flops : float
        Peak float64 operations per second. The float32 peak is twice this rate.
    sustained : float
        Fraction of `flops` that compute-bound sweeps reach.
    cores : int, optional
        Cores of a processor. By default, each thread counts as a core.
    launch : float
        Seconds between consecutive kernels on an idle device.
    routes : bool
        True if a device may forward data between other parts.
    latency : float
        Latency in seconds between two ranks that share a device.
    messages : float, optional
        Bytes per second of messages between two ranks that share a device. By default, half of `bandwidth`,
        because a copy reads and writes.
    core_bandwidth : float, optional
        Maximum bytes per second between one core and memory; by default, `bandwidth`.
    cache : float
        Bytes of the cache that the cores of a processor share.
    cache_bandwidth : float, optional
        Bytes per second between one core and its caches. By default, fields in the cache are as slow as
        fields in memory.
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
        Pair of parts that each link joins.
    bandwidth : float
        Bytes per second of one link in one direction.
    latency : float
        Seconds that a message takes to cross the link.
    duplex : bool
        True if both directions have this bandwidth at the same time.
    """

    ends: tuple[tuple[str, str], ...] = Field(min_length=1)
    bandwidth: float = Field(gt=0, allow_inf_nan=False)
    latency: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    duplex: bool = True


Route = tuple[tuple[str, str, Link], ...]


class Network(_Part):
    """Network between nodes. Each node has network cards; the network itself has no bottleneck.

    Attributes
    ----------
    cards : list of str
        Parts of the node; each card has a link to another part.
    bandwidth : float
        Bytes per second of one card in one direction.
    latency : float
        Seconds from card to card.
    overhead : float
        Seconds that a rank spends on sending or receiving a message.
    """

    cards: tuple[str, ...] = Field(min_length=1)
    bandwidth: float = Field(gt=0, allow_inf_nan=False)
    latency: float = Field(ge=0, allow_inf_nan=False)
    overhead: float = Field(ge=0, allow_inf_nan=False)


class Host(_Part):
    """Host processors of a node of GPUs; messages of the method "mpi" pass through their memory.

    Attributes
    ----------
    sockets : list of str
        Parts of the node. Each device has its host buffers at the nearest socket.
    copying : float
        Bytes per second at which a rank copies from its own memory or from the memory of another process of
        the node.
    staging : float, optional
        Bytes per second of a copy between a device and its host, if slower than the links.
    latency : float
        Seconds of a copy of negligible size between a device and its host.
    per_row : float
        Seconds per row of cells in a copy of an unpacked message.
    """

    sockets: tuple[str, ...] = Field(min_length=1)
    copying: float = Field(gt=0, allow_inf_nan=False)
    staging: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    latency: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    per_row: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class Aware(_Part):
    """GPU-aware MPI, which reads messages from device memory: method "gpu_aware".

    Attributes
    ----------
    bandwidth : float, optional
        Bytes per second between one device and other nodes; by default, the bandwidth of the links.
    within : float, optional
        Bytes per second between one device and other devices of its node; by default, the bandwidth of the
        links.
    setup : float
        Seconds before each message.
    serial : bool
        True if the messages of a rank are sequential: a message starts when the previous message has arrived.
    """

    bandwidth: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    within: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    setup: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    serial: bool = False


class Throughput(_Part):
    """Speed of sweeps on a rank while a given number of ranks of a node are active.

    Attributes
    ----------
    ranks : int
        Number of active ranks.
    memory : float
        Upper limit of the bytes of all fields of a node; `inf` for fields that exceed every cache.
    bandwidth : float
        Bytes per second of one rank.
    per_flop, per_sum : float
        Additional seconds per operation, and per summand of a sum over the grid.
    """

    ranks: int = Field(ge=1)
    memory: float = Field(gt=0)
    bandwidth: float = Field(gt=0, allow_inf_nan=False)
    per_flop: float = Field(ge=0, allow_inf_nan=False)
    per_sum: float = Field(ge=0, allow_inf_nan=False)


class Measured(_Part):
    """Measured speeds of ranks with one thread each, used instead of estimates from the device.

    Attributes
    ----------
    begin : float
        Seconds of a sweep of negligible size.
    packing : float
        Bytes per second that a rank packs, unpacks or copies.
    copying : float
        Bytes per second that a rank copies from the memory of another rank.
    hop : float
        Seconds of a round trip of a reduction between two ranks of a node.
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
                raise ValueError(
                    f"two entries for {ranks} ranks and fields of up to {memory:g} bytes; expected one"
                )
        return self

    def pace(self, ranks: int, memory: float) -> Throughput:
        """Return the measured throughput for a number of ranks and a number of bytes.

        The first criterion is the smallest measured number of ranks that is at least `ranks`, or else the
        largest number. The second criterion is the smallest memory that is at least `memory`, or else the
        largest memory.
        """
        counts = {pace.ranks for pace in self.sweeps}
        count = min((c for c in counts if c >= ranks), default=max(counts))
        known = sorted((p for p in self.sweeps if p.ranks == count), key=lambda p: p.memory)
        return next((p for p in known if p.memory >= memory), known[-1])


class Machine(_Part):
    """Cluster of equal nodes.

    Attributes
    ----------
    name, title : str
    source : str
        Origin of the numbers.
    nodes : int
        Maximum number of nodes.
    device : Device
    links : tuple of Link
    network : Network
    host : Host, optional
        Host of a node of GPUs. Without a host, MPI sends messages from device to device.
    aware : Aware, optional
        Properties of GPU-aware MPI. By default, GPU-aware messages have the bandwidth of the links.
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
    def _check_connected(self) -> Machine:
        """Check that every device reaches every other device and a network card."""
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
        """Names of the devices of a node."""
        return tuple(f"device{n}" for n in range(self.device.count))

    @cached_property
    def _neighbours(self) -> dict[str, list[tuple[str, Link]]]:
        neighbours: dict[str, list[tuple[str, Link]]] = {}
        for link in self.links:
            for a, b in link.ends:
                neighbours.setdefault(a, []).append((b, link))
                neighbours.setdefault(b, []).append((a, link))
        return neighbours

    @cached_property
    def _routes(self) -> dict[str, dict[str, Route]]:
        sockets = () if self.host is None else self.host.sockets
        return {start: self._widest(start) for start in (*self.devices, *self.network.cards, *sockets)}

    def route(self, start: str, end: str) -> Route:
        """Return the links between two devices, cards or host sockets, each with its two ends.

        The result is empty if no route exists.
        """
        return self._routes[start].get(end, ())

    def _widest(self, start: str) -> dict[str, Route]:
        """Return the widest route from a part to every other part.

        The algorithm is Dijkstra's algorithm, with the key (width, -links) instead of the length.
        """
        best: dict[str, tuple[float, int]] = {start: (float("inf"), 0)}
        routes: dict[str, Route] = {start: ()}
        done: set[str] = set()
        while len(done) < len(best):
            part = max((end for end in best if end not in done), key=best.__getitem__)
            done.add(part)
            if part in self.devices and part != start and not self.device.routes:
                continue
            width, links = best[part]
            for neighbour, link in self._neighbours.get(part, ()):
                through = min(width, link.bandwidth), links - 1
                if neighbour not in done and through > best.get(neighbour, (0.0, 0)):
                    best[neighbour], routes[neighbour] = through, (*routes[part], (part, neighbour, link))
        return routes

    def bandwidth(self, a: int, b: int) -> float:
        """Return the bytes per second from device a to device b of a node while all devices send.

        A link between two parts that are not devices, such as two sockets, is shared. Its bandwidth is
        divided by the number of devices whose routes cross the link. From a device to itself, the result is
        the memory bandwidth.
        """
        if a == b:
            return self.device.bandwidth
        return min(
            link.bandwidth / len(self._senders.get((start, end), (a,)))
            for start, end, link in self.route(f"device{a}", f"device{b}")
        )

    @cached_property
    def _senders(self) -> dict[tuple[str, str], set[str]]:
        """Devices whose routes cross each link between parts that are not devices, by direction."""
        senders: dict[tuple[str, str], set[str]] = {}
        for a in self.devices:
            for b in self.devices:
                for start, end, link in self.route(a, b):
                    if start not in self.devices and end not in self.devices:
                        senders.setdefault((start, end), set()).add(a)
                        if not link.duplex:
                            senders.setdefault((end, start), set()).add(a)
        return senders

    def device_of(self, slot: int, slots: int) -> int:
        """Return the device of a slot of a node.

        With more slots than devices, neighbouring slots share a device.
        """
        return slot * self.device.count // max(slots, self.device.count)

    def distance(self, slots: int | None = None) -> list[list[float]]:
        """Return the distance in seconds per byte between the devices of a node, or between its slots.

        The function `halocline.plan.place` accepts the result.
        """
        count = self.device.count if slots is None else slots
        device = [self.device_of(slot, count) for slot in range(count)]
        return [[1.0 / self.bandwidth(a, b) for b in device] for a in device]

    def card(self, device: int) -> str:
        """Return the network card nearest to a device. Equally near cards are assigned to devices in turn."""
        return self._nearest(device, self.network.cards)

    def socket(self, device: int) -> str:
        """Return the socket of the host nearest to a device."""
        assert self.host is not None
        return self._nearest(device, self.host.sockets)

    def _nearest(self, device: int, parts: Iterable[str]) -> str:
        name = f"device{device}"
        routes = {part: self.route(name, part) for part in parts}
        least = min(len(route) for route in routes.values() if route)
        nearest = [part for part, route in routes.items() if len(route) == least]
        return nearest[device % len(nearest)]

    @property
    def injection(self) -> float:
        """Bytes per second that a node sends through all its cards."""
        return self.network.bandwidth * len(self.network.cards)


def known_machines() -> tuple[str, ...]:
    """Return the names of the machines that are part of Halocline."""
    folder = files("halocline.plan") / "machines"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def load_machine(name: str | Path) -> Machine:
    """Return a machine by its name or by the path of a TOML file.

    Raises
    ------
    InputError
        The machine or file does not exist, or an entry is invalid; the message names the entry.
    """
    text = str(name)
    if text in known_machines():
        content = (files("halocline.plan") / "machines" / f"{text}.toml").read_text()
        return parse_machine(content, text)
    path = Path(name)
    if not path.suffix:
        hint = suggestion(text, known_machines())
        raise InputError(
            f"machine {text!r} is unknown{hint}; known: {', '.join(known_machines())}, or the path of a TOML "
            "file"
        )
    try:
        content = path.read_text()
    except OSError as error:
        raise InputError(f"machine file {text!r} cannot be read ({error.strerror})") from None
    return parse_machine(content, text)


def parse_machine(content: str, name: str) -> Machine:
    """Return the machine in the text of a TOML file; errors contain the file name `name`."""
    try:
        return Machine.model_validate(tomllib.loads(content))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"machine file {name!r} is not TOML: {error}") from None
    except ValidationError as error:
        raise InputError(
            f"machine file {name!r}: {'; '.join(map(validation_message, error.errors()))}"
        ) from None
