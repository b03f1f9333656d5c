"""Messages between devices of different ranks of a node, without MPI: whether they can be, and their ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from halocline.native import native
from halocline.plan.rank import RankPlan
from halocline.run.ranks.communicator import Communicator

T = TypeVar("T")

# A message, the same at both ends: the subdomains that send and receive it, and its tag.
Key = tuple[int, int, int]
Ends = dict[Key, Any]  # native links

PROBE = 256  # bytes


def why_no_links(comm: Communicator, devices: Sequence[Any]) -> str:
    """Why the ranks of a node cannot see the memory of each other's devices; "" where they can on all nodes.
    All ranks call this: each copies a little out of every other one's memory, and compares."""
    own, mine = list(dict.fromkeys(devices)), ""
    if comm.node is None or comm.size == 1:
        return "there is one rank"
    if not all(device.shares for device in own):
        mine = f"{own[0].interface} devices share no memory between processes"
    shared, kept = [], []
    if not mine:
        try:
            for number, device in enumerate(own):
                buffer, event, queue = device.allocate(PROBE), device.shared_event(), device.queue()
                queue.upload(buffer, _pattern(comm.rank, number))
                device.record(event, queue)
                queue.finish()
                kept.append((buffer, event))
                shared.append((device.identity, device.share(buffer), device.share_event(event)))
        except (RuntimeError, MemoryError) as error:
            mine, shared = str(error), []
    for rank, theirs in comm.allgather_of_node((comm.rank, shared)):
        if mine or rank == comm.rank:
            continue
        try:
            for number, (identity, memory, event) in enumerate(theirs):
                for device in own:
                    mine = mine or _difference(device, identity, memory, event, rank, number)
        except (RuntimeError, MemoryError) as error:
            mine = str(error)
    # no rank frees memory that others still read
    reasons = [reason for reason in comm.allgather(mine) if reason]
    del kept
    return reasons[0] if reasons else ""


def _difference(device: Any, identity: str, memory: bytes, event: bytes, rank: int, number: int) -> str:
    """What is wrong with another rank's memory as a device here sees it; "" for nothing."""
    import numpy as np

    there = through(device, identity, lambda each: each.attach(memory, PROBE))
    own, queue = device.allocate(PROBE), device.queue()
    found = np.zeros(PROBE, np.uint8)
    queue.wait(device.attach_event(event))
    queue.copy(own, there)
    queue.download(own, found)
    queue.finish()
    if (found == _pattern(rank, number)).all():
        return ""
    return f"device {device.interface}:{device.index} sees other bytes than rank {rank} has in its memory"


def _pattern(rank: int, number: int) -> Any:
    import numpy as np

    return ((np.arange(PROBE) * 7 + rank * 31 + number * 101 + 1) % 256).astype(np.uint8)


def through(device: Any, identity: str, attach: Callable[[Any], T]) -> T:
    """What `attach` makes of the device with which `device` gets at memory that another process shares:
    itself, else the one that the memory lies on, where this process sees it.

    Raises
    ------
    RuntimeError
        With the driver's words.
    """
    try:
        return attach(device)
    except RuntimeError:
        for other in native().devices(device.interface):
            if other.identity == identity and other.index != device.index:
                return attach(other)
        raise


def ends_of_messages(comm: Communicator, plan: RankPlan, devices: Sequence[Any]) -> Ends:
    """Return the ends of the colocated messages of this rank, for one engine; all ranks call this."""
    code = native()
    wanted: dict[Key, tuple[Any, bool, int]] = {}
    for own, device in zip(plan.subdomains, devices, strict=True):
        for sweep in own.sweeps:
            sent = [((own.number, m.peer), m, False) for m in sweep.sends]
            received = [((m.peer, own.number), m, True) for m in sweep.receives]
            for ends, m, receives in sent + received:
                if m.method == "colocated":
                    wanted[*ends, m.tag] = device, receives, m.bytes
    links: dict[Key, Any] = {}
    own_ends: dict[Key, tuple[str, int, bytes]] = {}
    counters: Any = None
    lines = code.Link.LINES
    with comm.agreement("share memory of devices with other processes of the node"):
        counters = code.Counters(max(1, lines * len(wanted)))
        for n, (key, (device, receives, size)) in enumerate(wanted.items()):
            link = code.Link(device, receives, size, counters, n * lines)
            links[key] = link
            own_ends[key] = device.identity, n * lines, link.handle()
    everyone = comm.allgather_of_node((comm.rank, counters.handle(), own_ends))
    homes = {number: plan.layout.home(number)[0] for key in wanted for number in key[:2]}
    with comm.agreement("see memory of devices of other processes of the node"):
        ranks = {rank: (handle, theirs) for rank, handle, theirs in everyone}
        seen: dict[int, Any] = {}
        for key, link in links.items():
            device, receives, _ = wanted[key]
            rank = homes[key[0] if receives else key[1]]
            handle, theirs = ranks[rank]
            if rank not in seen:
                seen[rank] = code.Counters.attach(handle)
            identity, first, shared = theirs[key]
            attach = partial(link.attach, handle=shared, counters=seen[rank], first=first)
            through(device, identity, attach)
    return links
