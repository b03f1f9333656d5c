"""Transfer methods that ranks can use here, and processes of a node that read each other's memory."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from halocline.native import native
from halocline.plan.transfer import Transfers, methods_without_ranks
from halocline.run.devices.gpu_aware import why_not_aware
from halocline.run.devices.links import why_no_links
from halocline.run.domain.execution import Execution
from halocline.run.ranks.communicator import Communicator


@dataclass(frozen=True)
class SharedMemoryPeers:
    """What a rank reads of the other processes of its node.

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


def shared_memory_peers(comm: Communicator, transfers: Transfers) -> SharedMemoryPeers | None:
    """Find the subdomains of other processes whose memory this rank reads; None where no two processes of a
    node share any. All ranks call this."""
    layout, cut = transfers.layout, transfers.layout.decomposition
    wide = layout.ranks_per_node > 1 or bool(layout.nodes_of_ranks)
    if "colocated" not in transfers.methods or comm.size == 1 or not wide:
        return None
    counters: Any = None
    with comm.agreement("share memory with other processes of the node"):
        counters = native().Counters(layout.subdomains_per_rank)
    signals = dict(comm.allgather_of_node((comm.rank, counters.handle())))
    found = {
        peer
        for own in layout.owned(comm.rank)
        for direction in product((-1, 0, 1), repeat=len(cut.shape))
        if (peer := cut.neighbour(own, direction)) is not None and transfers.method(own, peer) == "colocated"
    }
    homes = {number: layout.home(number) for number in sorted(found)}
    attached = {}
    with comm.agreement("see the memory of other processes of the node"):
        attached = {
            rank: native().Counters.attach(signals[rank]) for rank in {rank for rank, _ in homes.values()}
        }
    return SharedMemoryPeers(counters, homes, attached)


log = logging.getLogger("halocline")


def host_methods(comm: Communicator, how: Execution) -> tuple[str, ...]:
    """The transfer methods that may be taken where fields lie in memory of the host; all ranks call this."""
    methods = how.allowed_methods
    if comm.mpi is None:
        methods = methods_without_ranks(methods)
    if "colocated" in methods and not _can_share(comm, how):
        methods = tuple(method for method in methods if method != "colocated")
        if how.methods is not None and comm.rank == 0:
            log.warning("transfer method colocated is not taken: processes cannot share memory here")
    if "rma" in methods and comm.size > 1 and not native().has_mailboxes(comm.handle):
        methods = tuple(method for method in methods if method != "rma")
        if comm.rank == 0:
            log.warning(
                "transfer method rma is not taken: MPI's one-sided communication has separate copies of "
                "memory here (not MPI_WIN_UNIFIED)"
            )
    return methods


def device_methods(comm: Communicator, how: Execution, devices: Sequence[Any]) -> tuple[str, ...]:
    """The transfer methods that may be taken between devices; all ranks call this."""
    methods = how.allowed_methods
    if comm.mpi is None:
        return methods_without_ranks(methods)

    def without(method: str, why: str, news: bool) -> tuple[str, ...]:
        """All but this one; says so where that is news, or where the user asked for it."""
        if comm.rank == 0 and comm.size > 1:
            report = log.warning if news or how.methods is not None else log.info
            report("transfer method %s is not taken between devices: %s", method, why)
        return tuple(name for name in methods if name != method)

    if "colocated" in methods and (why := why_no_links(native(), comm, devices)):
        news = all(device.shares for device in devices) and comm.ranks_of_node > 1
        methods = without("colocated", why, news)
    if "gpu_aware" in methods:
        why, news = why_not_aware(native(), comm, devices)
        if why:
            methods = without("gpu_aware", why, news)
    return methods


def _can_share(comm: Communicator, how: Execution) -> bool:
    """Whether the processes of all nodes can read each other's memory, without loss to kernels: these are
    slower where shared memory has no huge pages (docs/performance.md). A user who asks for it gets it."""
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
