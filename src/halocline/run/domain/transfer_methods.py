"""Which transfer methods may be taken between ranks here: as the user allows, and as the machine can."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from halocline.native import native
from halocline.plan.transfer import methods_without_ranks
from halocline.run.devices.gpu_aware import why_not_aware
from halocline.run.devices.links import why_no_links
from halocline.run.domain.execution import Execution
from halocline.run.ranks.communicator import Communicator

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
