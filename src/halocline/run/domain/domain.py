"""One rank's share of a grid: which subdomains it has, which devices, and how it exchanges with others."""

from __future__ import annotations

import functools
import logging
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from halocline.compile.schedule import Schedule
from halocline.errors import InputError
from halocline.lang.grid import Grid
from halocline.native import native
from halocline.plan.decompose import Decomposition
from halocline.plan.layout import MovedSubdomains
from halocline.plan.transfer import Transfers, methods_without_ranks, needs_ranks
from halocline.run.devices.devices import (
    OnDevice,
    devices_of_rank,
    finder,
    places_of,
    shared_bytes,
    sharers,
)
from halocline.run.devices.gpu_aware import why_not_aware
from halocline.run.devices.links import why_no_links
from halocline.run.devices.topology import DeviceLinks, device_links
from halocline.run.domain.directory import Directory
from halocline.run.domain.execution import Execution
from halocline.run.domain.trace import Timeline
from halocline.run.host.machine import share_of_cores
from halocline.run.host.process import affinity, check_stacks
from halocline.run.host.streams import say_once
from halocline.run.ranks.communicator import Communicator
from halocline.run.ranks.mpi import world

log = logging.getLogger("halocline")

CROWDED = 64  # threads of a node for each of its hardware threads; with more, a run makes almost no progress
# How often a thread that waits looks again at once, before it sleeps in between: native/src/threads/team.hpp.
SPINS = {"passive": 20, "usual": 1000, "active": 2**32 - 1}


@dataclass(frozen=True)
class SharedMemoryPeers:
    """Memory of the other processes of a node that a rank reads.

    Attributes
    ----------
    counters : native Counters or None
        The rank's own; None where it reads nothing of others.
    homes : mapping of int to (int, int)
        For each subdomain of another process whose memory it reads: the rank, and the local index there.
    signals : mapping of int to native Counters
        Of each of these ranks.
    """

    counters: Any = None
    homes: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    signals: Mapping[int, Any] = field(default_factory=dict)


def neighbours(cut: Decomposition, number: int) -> set[int]:
    """Return the subdomains around one, itself among them where it is its own neighbour."""
    around = (cut.neighbour(number, direction) for direction in product((-1, 0, 1), repeat=cut.ndim))
    return {peer for peer in around if peer is not None}


def shared_memory_peers(comm: Communicator, transfers: Transfers) -> SharedMemoryPeers | None:
    """Find the subdomains of other processes whose memory this rank reads; None where no two processes of a
    node share any. All ranks call this."""
    layout, cut = transfers.layout, transfers.layout.decomposition
    wide = layout.ranks_per_node > 1 or bool(layout.nodes_of_ranks)
    if "colocated" not in transfers.methods or comm.size == 1 or not wide:
        return None
    counters: Any = None
    with comm.agreement("share memory with other processes of the node"):
        counters = native().Counters(max(1, len(layout.owned(comm.rank))))
    signals = dict(comm.allgather_of_node((comm.rank, counters.handle())))
    found = {
        peer
        for own in layout.owned(comm.rank)
        for peer in neighbours(cut, own)
        if transfers.method(own, peer) == "colocated"
    }
    homes = {number: layout.home(number) for number in sorted(found)}
    attached = {}
    with comm.agreement("see the memory of other processes of the node"):
        attached = {
            rank: native().Counters.attach(signals[rank]) for rank in {rank for rank, _ in homes.values()}
        }
    return SharedMemoryPeers(counters, homes, attached)


def available_methods(
    comm: Communicator, how: Execution, devices: Sequence[Any] = ()
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the available transfer methods, and the reasons against the others; all ranks call this."""
    methods, reasons = how.allowed_methods, dict[str, str]()
    if comm.mpi is None:
        return methods_without_ranks(methods), reasons
    if devices:
        unavailable = _unavailable_on_devices(comm, methods, devices)
    else:
        unavailable = _unavailable_on_host(comm, methods, how)
    for method, why, is_news in unavailable:
        methods, reasons[method] = tuple(name for name in methods if name != method), why
        if comm.rank == 0 and (comm.size > 1 or not devices):
            report = log.warning if is_news or how.methods is not None else log.info
            report("transfer method %s is not taken%s: %s", method, " between devices" * bool(devices), why)
    return methods, reasons


def _unavailable_on_host(
    comm: Communicator, methods: Sequence[str], how: Execution
) -> Iterator[tuple[str, str, bool]]:
    """Yield the methods that are not available, each with the reason, and True for news to the user."""
    if "colocated" in methods and not _can_share(comm, how):
        yield "colocated", "processes cannot share memory here", False
    if "rma" in methods and comm.size > 1 and not comm.has_mailboxes:
        why = "MPI's one-sided communication has separate copies of memory here (not MPI_WIN_UNIFIED)"
        yield "rma", why, True


def _unavailable_on_devices(
    comm: Communicator, methods: Sequence[str], devices: Sequence[Any]
) -> Iterator[tuple[str, str, bool]]:
    """Yield the methods that are not available between devices; see `_unavailable_on_host`."""
    if "colocated" in methods and (why := why_no_links(comm, devices)):
        yield "colocated", why, all(device.shares for device in devices) and comm.ranks_of_node > 1
    if "gpu_aware" in methods:
        why, is_news = why_not_aware(comm, devices)
        if why:
            yield "gpu_aware", why, is_news


def _can_share(comm: Communicator, how: Execution) -> bool:
    """Return True where the processes of all nodes can read each other's memory, without loss to kernels.

    Kernels are slower where shared memory has no huge pages (docs/performance.md). A user who names the
    method gets it anyway.
    """
    mine = True
    try:
        counters = native().Counters(1)
        if how.methods is None:
            mine = native().shared_pages_are_huge()
    except (RuntimeError, MemoryError):
        mine, counters = False, None
    handles = comm.allgather_of_node(None if counters is None else counters.handle())
    try:
        for handle in handles:
            if handle is not None:
                native().Counters.attach(handle)
    except (RuntimeError, MemoryError) as error:
        log.info("no memory is shared with other processes of the node: %s", error)
        mine = False
    return all(comm.allgather(mine))  # also keeps the counters alive for the others


def default_threads(comm: Communicator) -> int:
    """Threads of one rank where the user names no number."""
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if given.isdigit() and int(given) > 0:
        return int(given)
    return share_of_cores(affinity(), _masks(comm))


def spins(threads: int, comm: Communicator) -> int:
    """Return the number of times that a waiting thread looks again at once.

    OMP_WAIT_POLICY decides. By default it is small where a node has more threads than cores, since a thread
    must leave its core to the one that it waits for.
    """
    policy = os.environ.get("OMP_WAIT_POLICY", "").lower()
    if policy in ("passive", "active"):
        return SPINS[policy]
    masks = _masks(comm)
    together = functools.reduce(operator.or_, masks)
    crowded = threads > affinity().bit_count() or threads * len(masks) > together.bit_count()
    return SPINS["passive" if crowded else "usual"]


def _masks(comm: Communicator) -> tuple[int, ...]:
    """The affinity of each rank of this node; taken to be this one's where they are not known."""
    return comm.masks or (affinity(),) * comm.ranks_of_node


class Domain:
    """One rank's share of a grid: its subdomains, where they are computed, and how they exchange.

    Parameters
    ----------
    grid : Grid
    comm : Communicator, optional
    how : Execution, optional

    Attributes
    ----------
    threads : int
        Of this rank.
    transfers : Transfers or None
        Which rank has which subdomains, and how these exchange; None until the first program is prepared.
    unavailable : mapping of str to str
        Transfer methods that are allowed and cannot be taken, each with the reason.
    peers : SharedMemoryPeers or None
        The processes of the node whose memory this rank reads; None where there are none, and until the
        first program is prepared.
    devices : tuple of native Device
        That this rank drives; none where it computes itself.
    sharers : mapping of native Device to int
        The ranks that use each of these.
    places : tuple of OnDevice
        The device of each subdomain of every rank, once the first program is prepared; none on the CPU.
    subdomains : tuple of int
        Numbers of the subdomains of this rank; none until the first program is prepared.
    offsets : list of tuple of int
        Global index of the first cell of each of these subdomains.
    device_links : DeviceLinks
        Between the devices of a node.
    active_ranks : int
        Number of ranks that hold subdomains.
    work : dict of int to float
        Seconds that threads spent in each subdomain of this rank since the last balance.
    shared_bytes : int
        That threads of a group can share on the devices of every rank.
    """

    def __init__(self, grid: Grid, comm: Communicator | None = None, how: Execution | None = None) -> None:
        self.grid, self.how = grid, how or Execution()
        machines = world() if comm is None else comm
        self.comm = machines.grouped(self.how.ranks_per_node)
        self.comm.check_same(
            "the device is", self.how.device, "all ranks need the same device= or HALOCLINE_DEVICE"
        )
        self.devices = devices_of_rank(self.how.devices, self.comm)
        self.device_links: DeviceLinks = device_links(self.devices, self.how.subdomains_per_rank, self.comm)
        self.shared_bytes = shared_bytes(self.devices)
        self.places: tuple[OnDevice, ...] = ()
        self.subdomains: tuple[int, ...] = ()
        self.offsets: list[tuple[int, ...]] = []
        self.sharers: Mapping[Any, int] = {}
        self._finders: dict[Any, Any] = {}
        self._directory: Directory | None = None
        self.work: dict[int, float] = {}
        self.active_ranks = self.how.ranks_active or self.comm.size
        self.check_active(self.active_ranks)
        self.threads = self.how.threads or default_threads(self.comm)
        self._notice(*self.how.ignored)
        if self.devices:
            self.sharers = sharers(self.devices, machines)
            # all ranks have the same kernels
            self.shared_bytes = min(self.comm.allgather(shared_bytes(self.devices)))
            self.threads = 1  # it looks after the devices
        with self.comm.agreement("check the stacks of threads"):
            check_stacks(self.threads)
        together, there = self.threads * self.comm.ranks_of_node, os.cpu_count() or 1
        with self.comm.agreement("count threads"):
            if together > CROWDED * there:
                raise InputError(
                    f"{together} threads on a node of {there} hardware threads would mostly wait for their "
                    f"turn; take {CROWDED * there} at most, of all ranks there together"
                )
        level = self.comm.thread_level
        if self.comm.rank == 0 and self.comm.size > 1 and self.threads > 1 and level != "multiple":
            who = "one thread at a time" if level == "serialized" else "the first thread alone"
            log.warning("MPI gives MPI_THREAD_%s: %s looks after messages", level.upper(), who)
        self.spins = spins(self.threads, self.comm)
        self.transfers: Transfers | None = None
        self.unavailable: Mapping[str, str] = {}
        self.peers: SharedMemoryPeers | None = None
        self.timeline = None if self.how.trace is None else Timeline(self.how.trace, self.threads)

    def untraced(self) -> Domain:
        """The same for runs that nobody asked for, such as those of a measurement: no trace, and nothing else
        is tried in them."""
        other = copy(self)
        other.timeline = None
        other.how = replace(self.how, overlap=self.how.overlap is not False)
        return other

    def adopt(self, schedule: Schedule) -> None:
        """Cut the grid for this schedule; all ranks call this."""
        comm = self.comm
        devices, distance = max(1, len(self.devices)), self.device_links.distance
        nodes = comm.ranks_per_node, comm.nodes_of_ranks
        layout = self.how.layout(schedule, self.grid, comm.size, *nodes, devices=devices, distance=distance)
        if comm.mpi is None:
            self._notice(needs_ranks(self.how.allowed_methods, layout.decomposition))
        methods, self.unavailable = available_methods(comm, self.how, self.devices)
        self._lay_out(Transfers(layout, methods, self.how.packing))
        if self.how.balance is not None and not self.can_balance:
            why = "no rank has several subdomains (subdomains_per_rank)"
            if self.active_ranks == 1:
                why = "one rank has all subdomains"
            self._notice(f"balance: ignored, since {why}")

    def _lay_out(self, transfers: Transfers) -> None:
        """Take the subdomains that this rank has in a layout; all ranks call this."""
        comm, layout = self.comm, transfers.layout
        self.transfers = transfers
        self.subdomains = layout.owned(comm.rank)
        self.offsets = [layout.decomposition.box(number).lo for number in self.subdomains]
        if self.devices:
            own = [self.device_of(n) for n in range(len(self.subdomains))]
            self.places = places_of(comm, self.subdomains, own)
        else:
            self.peers = shared_memory_peers(comm, transfers)

    # --- subdomains that move ---

    @property
    def can_balance(self) -> bool:
        """True where there are more subdomains than ranks that hold any, so that a balance can help."""
        return self.decomposition is not None and self.decomposition.count > self.active_ranks > 1

    def note_work(self, seconds: Sequence[float]) -> None:
        """Add the seconds that the threads of this rank spent in its subdomains, one number for each."""
        for number, spent in zip(self.subdomains, seconds, strict=True):
            self.work[number] = self.work.get(number, 0.0) + spent

    @property
    def directory(self) -> Directory:
        """The directory of the ranks of all subdomains, used once some have moved."""
        if self._directory is None:
            assert self.decomposition is not None
            self._directory = Directory(self.comm, self.decomposition)
        return self._directory

    def take_over(self, subdomains: tuple[int, ...]) -> None:
        """Make these the subdomains of this rank, after some have moved; all ranks call this."""
        assert self.transfers is not None
        layout, rank = self.transfers.layout, self.comm.rank
        self.directory.register(subdomains)
        around = {peer for own in subdomains for peer in neighbours(layout.decomposition, own)}
        homes = self.directory.find(around) | {n: (rank, local) for local, n in enumerate(subdomains)}
        moved = MovedSubdomains(rank, subdomains, homes)
        self._lay_out(replace(self.transfers, layout=replace(layout, moved=moved)))

    def check_active(self, ranks: int) -> None:
        """Raise InputError for a number of ranks that are to hold subdomains which cannot be."""
        if not 1 <= ranks <= self.comm.size:
            raise InputError(f"ranks_active is {ranks}; expected 1 to {self.comm.size}, the number of ranks")

    def _notice(self, *texts: str) -> None:
        """Tell the user, once, what is not as it was asked for."""
        for text in filter(None, texts if self.comm.rank == 0 else ()):
            say_once(text)

    def device_of(self, n: int, of: int | None = None) -> Any:
        """Return the device of the n-th subdomain of this rank, which has as many as now, or `of` them."""
        count = len(self.subdomains) if of is None else of
        return self.devices[n * len(self.devices) // count]

    @property
    def places_of_subdomains(self) -> tuple[str, ...]:
        """Name of each subdomain of this rank and its device; none on the CPU."""
        own = (place for place in self.places if place.rank == self.comm.rank)
        return tuple(f"subdomain {place.subdomain} on {place.device}" for place in own)

    def finders(self) -> Mapping[Any, Any]:
        """The code of each device that looks for what is not finite; all ranks call this."""
        if not self._finders:
            with self.comm.agreement("compile the search for values that are not finite"):
                self._finders.update((device, finder(device)) for device in dict.fromkeys(self.devices))
        return self._finders

    @property
    def decomposition(self) -> Decomposition | None:
        """How the grid is cut; None until the first program is prepared."""
        return None if self.transfers is None else self.transfers.layout.decomposition

    @property
    def parts(self) -> tuple[int, ...]:
        """Parts of the grid along each axis; none until the first program is prepared."""
        return () if self.decomposition is None else tuple(self.decomposition.parts)

    @property
    def nodes(self) -> int:
        """Number of nodes that the ranks are on; 1 until the first program is prepared."""
        return 1 if self.transfers is None else self.transfers.layout.nodes

    @property
    def cores_or_devices(self) -> int:
        """How many compute, of all ranks; a device that several ranks of a node share counts once."""
        if not self.places:
            return self.comm.size * self.threads
        assert self.transfers is not None
        node = self.transfers.layout.node
        return len({(node(each.rank), each.device, each.name) for each in self.places})
