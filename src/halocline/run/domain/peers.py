"""Processes of a node that read each other's memory: which subdomains they share, and how they signal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from halocline.native import native
from halocline.plan.transfer import Transfers
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
