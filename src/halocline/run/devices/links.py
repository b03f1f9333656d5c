"""Checks and set-up of messages without MPI, between devices that different ranks of a node use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from halocline.native import native
from halocline.plan.rank import RankPlan
from halocline.run.ranks.communicator import Communicator

T = TypeVar("T")

# Identifier of a message, equal at both ends: sending subdomain, receiving subdomain and tag.
Key = tuple[int, int, int]
Ends = dict[Key, Any]  # native end of each message on this rank

PROBE = 256  # bytes


def no_links_reason(comm: Communicator, devices: Sequence[Any]) -> str:
    """Return the reason why ranks of a node cannot access device memory of other ranks; collective.

    The reason is "" if all ranks have this access. As a test, each rank copies a few bytes from the device
    memory of every other rank of its node, and checks these bytes.
    """
    rank_devices, failure = list(dict.fromkeys(devices)), ""
    if comm.node is None or comm.size == 1:
        return "there is one rank"
    if not all(device.shares for device in rank_devices):
        failure = f"{rank_devices[0].interface} devices cannot share memory between processes"
    shared, references = [], []
    if not failure:
        try:
            for number, device in enumerate(rank_devices):
                buffer, event, queue = device.allocate(PROBE), device.shared_event(), device.queue()
                queue.upload(buffer, _pattern(comm.rank, number))
                device.record(event, queue)
                queue.finish()
                references.append((buffer, event))
                shared.append((device.identity, device.share(buffer), device.share_event(event)))
        except (RuntimeError, MemoryError) as error:
            failure, shared = str(error), []
    for rank, handles in comm.allgather_of_node((comm.rank, shared)):
        if failure or rank == comm.rank:
            continue
        try:
            for number, (identity, memory, event) in enumerate(handles):
                for device in rank_devices:
                    failure = failure or _difference(device, identity, memory, event, rank, number)
        except (RuntimeError, MemoryError) as error:
            failure = str(error)
    # No rank frees memory that other ranks still read.
    reasons = [reason for reason in comm.allgather(failure) if reason]
    del references
    return reasons[0] if reasons else ""


def _difference(device: Any, identity: str, memory: bytes, event: bytes, rank: int, number: int) -> str:
    """Return an error text if a device reads wrong bytes from the memory of another rank, else ""."""
    import numpy as np

    remote = through(device, identity, lambda candidate: candidate.attach(memory, PROBE))
    buffer, queue = device.allocate(PROBE), device.queue()
    content = np.zeros(PROBE, np.uint8)
    queue.wait(device.attach_event(event))
    queue.copy(buffer, remote)
    queue.download(buffer, content)
    queue.finish()
    if (content == _pattern(rank, number)).all():
        return ""
    return f"device {device.interface}:{device.index} reads other bytes than rank {rank} has in its memory"


def _pattern(rank: int, number: int) -> Any:
    import numpy as np

    return ((np.arange(PROBE) * 7 + rank * 31 + number * 101 + 1) % 256).astype(np.uint8)


def through(device: Any, identity: str, attach: Callable[[Any], T]) -> T:
    """Map memory of another process by `attach`, with a device that can access it, and return the result.

    `attach` is first called with `device`. If this call fails, `attach` is called with the device that
    contains the memory, if this device is visible to this process.

    Parameters
    ----------
    device : native Device
        Preferred device.
    identity : str
        Identity of the device that contains the memory.
    attach : callable
        Function that maps the memory. Its argument is the device that accesses the memory.

    Raises
    ------
    RuntimeError
        The driver reports an error for each of these devices.
    """
    try:
        return attach(device)
    except RuntimeError:
        for candidate in native().devices(device.interface):
            if candidate.identity == identity and candidate.index != device.index:
                return attach(candidate)
        raise


def ends_of_messages(comm: Communicator, plan: RankPlan, devices: Sequence[Any]) -> Ends:
    """Set up the colocated messages of one engine, and return their ends on this rank; collective."""
    code = native()
    messages: dict[Key, tuple[Any, bool, int]] = {}
    for subdomain, device in zip(plan.subdomains, devices, strict=True):
        for sweep in subdomain.sweeps:
            outgoing = [((subdomain.number, m.peer), m, False) for m in sweep.sends]
            incoming = [((m.peer, subdomain.number), m, True) for m in sweep.receives]
            for ends, m, receives in outgoing + incoming:
                if m.method == "colocated":
                    messages[*ends, m.tag] = device, receives, m.bytes
    links: dict[Key, Any] = {}
    local_ends: dict[Key, tuple[str, int, bytes]] = {}
    counters: Any = None
    lines = code.Link.LINES
    with comm.agreement("share device memory with other processes of the node"):
        counters = code.Counters(max(1, lines * len(messages)))
        for n, (key, (device, receives, size)) in enumerate(messages.items()):
            link = code.Link(device, receives, size, counters, n * lines)
            links[key] = link
            local_ends[key] = device.identity, n * lines, link.handle()
    node_ends = comm.allgather_of_node((comm.rank, counters.handle(), local_ends))
    homes = {number: plan.layout.home(number)[0] for key in messages for number in key[:2]}
    with comm.agreement("map device memory of other processes of the node"):
        ranks = {rank: (handle, remote_ends) for rank, handle, remote_ends in node_ends}
        remote_counters: dict[int, Any] = {}
        for key, link in links.items():
            device, receives, _ = messages[key]
            rank = homes[key[0] if receives else key[1]]
            handle, remote_ends = ranks[rank]
            if rank not in remote_counters:
                remote_counters[rank] = code.Counters.attach(handle)
            identity, first, shared = remote_ends[key]
            attach = partial(link.attach, handle=shared, counters=remote_counters[rank], first=first)
            through(device, identity, attach)
    return links
