"""Part of a grid on one rank: subdomains, devices, and exchange with other ranks."""

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
from halocline.run.devices.gpu_aware import not_aware_reason
from halocline.run.devices.links import no_links_reason
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

CROWDED = 64  # maximum number of threads per hardware thread; more threads would make almost no progress
# Number of times that a waiting thread polls before it sleeps between polls; see native/src/threads/team.hpp.
SPINS = {"passive": 20, "usual": 1000, "active": 2**32 - 1}


@dataclass(frozen=True)
class SharedMemoryPeers:
    """Subdomains of other processes of the node, from whose memory a rank reads.

    Attributes
    ----------
    counters : native Counters or None
        Counters of this rank, which other processes map; None if no memory is shared.
    homes : mapping of int to (int, int)
        Rank and local index of each subdomain in another process that this rank reads.
    signals : mapping of int to native Counters
        Counters of the ranks in `homes`.
    """

    counters: Any = None
    homes: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    signals: Mapping[int, Any] = field(default_factory=dict)


def neighbours(cut: Decomposition, number: int) -> set[int]:
    """Return the subdomain with the given index and all its neighbours, as a set of indices."""
    peers = (cut.neighbour(number, direction) for direction in product((-1, 0, 1), repeat=cut.ndim))
    return {peer for peer in peers if peer is not None}


def shared_memory_peers(comm: Communicator, transfers: Transfers) -> SharedMemoryPeers | None:
    """Map the memory that this rank reads from other processes of its node; collective.

    The result is None if no processes of a node share memory.
    """
    layout, cut = transfers.layout, transfers.layout.decomposition
    has_node_peers = layout.ranks_per_node > 1 or bool(layout.nodes_of_ranks)
    if "colocated" not in transfers.methods or comm.size == 1 or not has_node_peers:
        return None
    counters: Any = None
    with comm.agreement("share memory with other processes of the node"):
        counters = native().Counters(max(1, len(layout.subdomains_of(comm.rank))))
    signals = dict(comm.allgather_of_node((comm.rank, counters.handle())))
    shared = {
        peer
        for subdomain in layout.subdomains_of(comm.rank)
        for peer in neighbours(cut, subdomain)
        if transfers.method(subdomain, peer) == "colocated"
    }
    homes = {number: layout.home(number) for number in sorted(shared)}
    attached = {}
    with comm.agreement("map the memory of other processes of the node"):
        attached = {
            rank: native().Counters.attach(signals[rank]) for rank in {rank for rank, _ in homes.values()}
        }
    return SharedMemoryPeers(counters, homes, attached)


def available_methods(
    comm: Communicator, execution: Execution, devices: Sequence[Any] = ()
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the available transfer methods, and the reasons against the unavailable methods; collective."""
    methods, reasons = execution.allowed_methods, dict[str, str]()
    if comm.mpi is None:
        return methods_without_ranks(methods), reasons
    if devices:
        unavailable = _unavailable_on_devices(comm, methods, devices)
    else:
        unavailable = _unavailable_on_host(comm, methods, execution)
    for method, reason, needs_warning in unavailable:
        methods, reasons[method] = tuple(name for name in methods if name != method), reason
        if comm.rank == 0 and (comm.size > 1 or not devices):
            report = log.warning if needs_warning or execution.methods is not None else log.info
            report("transfer method %s is not used%s: %s", method, " between devices" * bool(devices), reason)
    return methods, reasons


def _unavailable_on_host(
    comm: Communicator, methods: Sequence[str], execution: Execution
) -> Iterator[tuple[str, str, bool]]:
    """Yield the methods that are unavailable on the host.

    Each item contains the method, the reason, and True if the user must be warned.
    """
    if "colocated" in methods and not _can_share(comm, execution):
        yield "colocated", "processes cannot share memory here", False
    if "rma" in methods and comm.size > 1 and not comm.has_mailboxes:
        reason = "MPI's one-sided communication has separate copies of memory here (not MPI_WIN_UNIFIED)"
        yield "rma", reason, True


def _unavailable_on_devices(
    comm: Communicator, methods: Sequence[str], devices: Sequence[Any]
) -> Iterator[tuple[str, str, bool]]:
    """Yield the methods that are unavailable between devices; see `_unavailable_on_host`."""
    if "colocated" in methods and (reason := no_links_reason(comm, devices)):
        yield "colocated", reason, all(device.shares for device in devices) and comm.ranks_of_node > 1
    if "gpu_aware" in methods:
        reason, needs_warning = not_aware_reason(comm, devices)
        if reason:
            yield "gpu_aware", reason, needs_warning


def _can_share(comm: Communicator, execution: Execution) -> bool:
    """Return True if the processes of each node can share memory, and this does not slow kernels; collective.

    Kernels are slower if shared memory has no huge pages (docs/performance.md). Huge pages are not required
    if the user specifies the transfer methods.
    """
    can_share = True
    try:
        counters = native().Counters(1)
        if execution.methods is None:
            can_share = native().shared_pages_are_huge()
    except (RuntimeError, MemoryError):
        can_share, counters = False, None
    handles = comm.allgather_of_node(None if counters is None else counters.handle())
    try:
        for handle in handles:
            if handle is not None:
                native().Counters.attach(handle)
    except (RuntimeError, MemoryError) as error:
        log.info("no memory is shared with other processes of the node: %s", error)
        can_share = False
    return all(comm.allgather(can_share))  # also keeps the counters until other ranks have attached them


def default_threads(comm: Communicator) -> int:
    """Return the number of threads per rank if the user specifies none."""
    thread_text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if thread_text.isdigit() and int(thread_text) > 0:
        return int(thread_text)
    return share_of_cores(affinity(), _masks(comm))


def spins(threads: int, comm: Communicator) -> int:
    """Return the number of times that a waiting thread polls before it sleeps between polls.

    OMP_WAIT_POLICY determines the number. Without this variable, the number is small if a node has more
    threads than hardware threads. A waiting thread must then release its hardware thread.
    """
    policy = os.environ.get("OMP_WAIT_POLICY", "").lower()
    if policy in ("passive", "active"):
        return SPINS[policy]
    masks = _masks(comm)
    node_mask = functools.reduce(operator.or_, masks)
    is_crowded = threads > affinity().bit_count() or threads * len(masks) > node_mask.bit_count()
    return SPINS["passive" if is_crowded else "usual"]


def _masks(comm: Communicator) -> tuple[int, ...]:
    """Return the affinity masks of the ranks of this node; if unknown, the mask of this rank, repeated."""
    return comm.masks or (affinity(),) * comm.ranks_of_node


class Domain:
    """Part of a grid on one rank: subdomains, devices, and exchange with other ranks.

    Parameters
    ----------
    grid : Grid
        Grid of the problem.
    comm : Communicator, optional
        Ranks that compute the problem. Default: all ranks.
    execution : Execution, optional
        Options of the run.

    Attributes
    ----------
    threads : int
        Number of threads of this rank.
    transfers : Transfers or None
        Layout of subdomains on ranks, and transfer methods; None until the first program is prepared.
    unavailable : mapping of str to str
        Reason why a transfer method is unavailable, for each method that is allowed but unavailable.
    peers : SharedMemoryPeers or None
        Memory that this rank reads from other processes of the node. None if no memory is shared, and until
        the first program is prepared.
    devices : tuple of native Device
        Devices of this rank; empty on the CPU.
    sharers : mapping of native Device to int
        Number of ranks that use each device.
    places : tuple of OnDevice
        Device of each subdomain of every rank; empty until the first program is prepared, and on the CPU.
    subdomains : tuple of int
        Global indices of the subdomains of this rank; empty until the first program is prepared.
    offsets : list of tuple of int
        Global index of the first cell of each subdomain of this rank.
    device_links : DeviceLinks
        Links between the devices of a node.
    active_ranks : int
        Number of ranks that hold subdomains.
    work : dict of int to float
        Seconds that threads spent in each subdomain of this rank since the last balance.
    shared_bytes : int
        Maximum shared memory per thread block that the devices of all ranks provide, in bytes.
    """

    def __init__(
        self, grid: Grid, comm: Communicator | None = None, execution: Execution | None = None
    ) -> None:
        self.grid, self.execution = grid, execution or Execution()
        machines = world() if comm is None else comm
        self.comm = machines.grouped(self.execution.ranks_per_node)
        self.comm.check_same(
            "the device is", self.execution.device, "all ranks need the same device= or HALOCLINE_DEVICE"
        )
        self.devices = devices_of_rank(self.execution.devices, self.comm)
        self.device_links = DeviceLinks()
        self.shared_bytes = shared_bytes(self.execution.devices.interface, self.devices)
        self.places: tuple[OnDevice, ...] = ()
        self.subdomains: tuple[int, ...] = ()
        self.offsets: list[tuple[int, ...]] = []
        self.sharers: Mapping[Any, int] = {}
        self._finders: dict[Any, Any] = {}
        self._directory: Directory | None = None
        self.work: dict[int, float] = {}
        self.active_ranks = self.execution.ranks_active or self.comm.size
        self.check_active(self.active_ranks)
        self.threads = self.execution.threads or default_threads(self.comm)
        self._notice(*self.execution.ignored_options)
        if self.devices:
            self.device_links = device_links(self.devices, self.execution.subdomains_per_rank, self.comm)
            self.sharers = sharers(self.devices, machines)
            # The kernels are the same on all ranks, so the smallest value of all ranks applies.
            self.shared_bytes = min(self.comm.allgather(self.shared_bytes))
            self.threads = 1  # this thread controls the devices
        with self.comm.agreement("check the stacks of threads"):
            check_stacks(self.threads)
        total, available = self.threads * self.comm.ranks_of_node, os.cpu_count() or 1
        with self.comm.agreement("count threads"):
            if total > CROWDED * available:
                raise InputError(
                    f"{total} threads on a node of {available} hardware threads are too many. Use at most "
                    f"{CROWDED * available}, counted over all ranks of the node."
                )
        level = self.comm.thread_level
        if self.comm.rank == 0 and self.comm.size > 1 and self.threads > 1 and level != "multiple":
            sender = "one thread at a time" if level == "serialized" else "the first thread alone"
            log.warning("MPI provides MPI_THREAD_%s only: %s handles messages", level.upper(), sender)
        self.spins = spins(self.threads, self.comm)
        self.transfers: Transfers | None = None
        self.unavailable: Mapping[str, str] = {}
        self.peers: SharedMemoryPeers | None = None
        self.timeline = None if self.execution.trace is None else Timeline(self.execution.trace, self.threads)

    def without_trace(self) -> Domain:
        """Return a copy without trace and without overlap trials, for internal runs such as measurements."""
        internal = copy(self)
        internal.timeline = None
        internal.execution = replace(self.execution, overlap=self.execution.overlap is not False)
        return internal

    def decompose(self, schedule: Schedule) -> None:
        """Decompose the grid as the traffic of a schedule requires; collective."""
        comm = self.comm
        devices, distance = max(1, len(self.devices)), self.device_links.distance
        nodes = comm.ranks_per_node, comm.nodes_of_ranks
        layout = self.execution.layout(
            schedule, self.grid, comm.size, *nodes, devices=devices, distance=distance
        )
        if comm.mpi is None:
            self._notice(needs_ranks(self.execution.allowed_methods, layout.decomposition))
        methods, self.unavailable = available_methods(comm, self.execution, self.devices)
        self._lay_out(Transfers(layout, methods, self.execution.packing))
        if self.execution.balance is not None and not self.can_balance:
            reason = "no rank has several subdomains (subdomains_per_rank)"
            if self.active_ranks == 1:
                reason = "one rank has all subdomains"
            self._notice(f"balance: ignored, since {reason}")

    def _lay_out(self, transfers: Transfers) -> None:
        """Set the subdomains of this rank from a layout; collective."""
        comm, layout = self.comm, transfers.layout
        self.transfers = transfers
        self.subdomains = layout.subdomains_of(comm.rank)
        self.offsets = [layout.decomposition.box(number).lo for number in self.subdomains]
        if self.devices:
            subdomain_devices = [self.device_of(n) for n in range(len(self.subdomains))]
            self.places = places_of(comm, self.subdomains, subdomain_devices)
        else:
            self.peers = shared_memory_peers(comm, transfers)

    # --- subdomains that move ---

    @property
    def can_balance(self) -> bool:
        """True if several ranks are active, and there are more subdomains than active ranks."""
        return self.decomposition is not None and self.decomposition.count > self.active_ranks > 1

    def add_work(self, seconds: Sequence[float]) -> None:
        """Add the seconds that the threads of this rank spent in each of its subdomains."""
        for number, spent in zip(self.subdomains, seconds, strict=True):
            self.work[number] = self.work.get(number, 0.0) + spent

    @property
    def directory(self) -> Directory:
        """Directory that finds the rank of each subdomain after subdomains have moved."""
        if self._directory is None:
            assert self.decomposition is not None
            self._directory = Directory(self.comm, self.decomposition)
        return self._directory

    def set_subdomains(self, subdomains: tuple[int, ...]) -> None:
        """Set the subdomains of this rank after a redistribution of subdomains; collective."""
        assert self.transfers is not None
        layout, rank = self.transfers.layout, self.comm.rank
        self.directory.register(subdomains)
        surrounding = {peer for number in subdomains for peer in neighbours(layout.decomposition, number)}
        homes = self.directory.find(surrounding) | {n: (rank, local) for local, n in enumerate(subdomains)}
        moved_subdomains = MovedSubdomains(rank, subdomains, homes)
        self._lay_out(replace(self.transfers, layout=replace(layout, moved_subdomains=moved_subdomains)))

    def check_active(self, ranks: int) -> None:
        """Raise InputError if the number of ranks that hold subdomains is invalid."""
        if not 1 <= ranks <= self.comm.size:
            raise InputError(f"ranks_active is {ranks}; expected 1 to {self.comm.size}, the number of ranks")

    def _notice(self, *texts: str) -> None:
        """Log each notice about options without effect, once per process."""
        for text in filter(None, texts if self.comm.rank == 0 else ()):
            say_once(text)

    def device_of(self, n: int, subdomain_count: int | None = None) -> Any:
        """Return the device of the n-th subdomain of this rank.

        `subdomain_count` is the number of subdomains of the rank, by default the current number.
        """
        count = len(self.subdomains) if subdomain_count is None else subdomain_count
        return self.devices[n * len(self.devices) // count]

    @property
    def places_of_subdomains(self) -> tuple[str, ...]:
        """Names of the subdomains of this rank, such as "subdomain 3 on cuda:0"; empty on the CPU."""
        rank_places = (place for place in self.places if place.rank == self.comm.rank)
        return tuple(f"subdomain {place.subdomain} on {place.device}" for place in rank_places)

    def finders(self) -> Mapping[Any, Any]:
        """Return the modules whose kernels find non-finite values, by device; collective."""
        if not self._finders:
            with self.comm.agreement("compile the search for values that are not finite"):
                self._finders.update((device, finder(device)) for device in dict.fromkeys(self.devices))
        return self._finders

    @property
    def decomposition(self) -> Decomposition | None:
        """Decomposition of the grid; None until the first program is prepared."""
        return None if self.transfers is None else self.transfers.layout.decomposition

    @property
    def parts(self) -> tuple[int, ...]:
        """Number of parts of the grid along each axis; empty until the first program is prepared."""
        return () if self.decomposition is None else tuple(self.decomposition.parts)

    @property
    def nodes(self) -> int:
        """Number of nodes that the run uses; 1 until the first program is prepared."""
        return 1 if self.transfers is None else self.transfers.layout.nodes

    @property
    def cores_or_devices(self) -> int:
        """Number of cores or devices that all ranks use. A device that several ranks share counts once."""
        if not self.places:
            return self.comm.size * self.threads
        assert self.transfers is not None
        node = self.transfers.layout.node
        return len({(node(place.rank), place.device, place.name) for place in self.places})
