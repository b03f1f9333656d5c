"""Balances of a run. A balance moves subdomains to other ranks, so that all ranks take the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from halocline.deprecation import accept_earlier_names
from halocline.plan.box import Box
from halocline.plan.redistribution import redistribution
from halocline.run.memory.redistribute import redistribute
from halocline.run.memory.store import FieldStore


@accept_earlier_names({"moved": "moved_count"})
@dataclass(frozen=True)
class Balance:
    """Result of a balance, equal on all ranks.

    Attributes
    ----------
    before, after : float
        Maximum work of a rank divided by the mean work of a rank, as measured before the balance and as
        expected after the balance. The mean includes only ranks that hold subdomains.
    largest : float
        Maximum work of a subdomain divided by the expected mean work of a rank. This ratio is a lower bound
        of `after`.
    moved_count : int
        Number of moved subdomains.
    subdomains : int
        Number of all subdomains.
    bytes : int
        Bytes that all ranks sent.
    seconds : float
        Duration of the balance on the slowest rank, in seconds. The time to plan the next run is not
        included.
    """

    before: float
    after: float
    largest: float
    moved_count: int
    subdomains: int
    bytes: int
    seconds: float


def balance(
    store: FieldStore,
    weights: Mapping[int, float],
    active: int,
    release: Callable[[], None] = lambda: None,
) -> Balance:
    """Move subdomains so that all active ranks have nearly equal work; collective.

    If no work was measured, subdomains move only if the number of active ranks changes.

    Parameters
    ----------
    store : FieldStore
        Fields of this rank.
    weights : mapping of int to float
        Work of each subdomain of this rank.
    active : int
        Number of active ranks after the balance. The first ranks, node by node, are active and hold
        subdomains.
    release : callable
        Function that frees engines before subdomains move, because engines keep the memory of subdomains.

    Raises
    ------
    RunError
        A node has too little memory for its new subdomains. In this case, no subdomain has moved.
    """
    domain, comm, start = store.domain, store.domain.comm, time.perf_counter()
    assert domain.transfers is not None
    layout, cut = domain.transfers.layout, domain.transfers.layout.decomposition
    rank_work = sum(weights.values())
    _, total = comm.prefix(rank_work)
    (before,) = comm.total([float(bool(weights))])
    is_unchanged = False
    if not total > 0.0:  # without measured work, all subdomains have equal weights
        weights = dict.fromkeys(weights, 1.0)
        rank_work, total, is_unchanged = float(len(weights)), float(cut.count), active == domain.active_ranks
    leaving: dict[int, int] = {}
    if not is_unchanged:
        new_ranks = domain.directory.assign(weights, layout.ranks_by_node[:active])
        leaving = {number: rank for number, rank in new_ranks.items() if rank != comm.rank}
    offers: dict[int, dict[int, float]] = {}
    for number, rank in leaving.items():
        offers.setdefault(rank, {})[number] = weights[number]
    received_offers = comm.sparse(offers)
    arriving = {number: rank for rank, offer in received_offers.items() for number in offer}
    new_weights = {n: weight for n, weight in weights.items() if n not in leaving}
    new_weights |= {n: weight for offer in received_offers.values() for n, weight in offer.items()}
    sent, (moved_count,) = 0, comm.total([float(len(leaving))])
    if moved_count:
        release()
        subdomains = sorted(new_weights, key=domain.directory.place)
        sent = redistribute(store, redistribution(cut, subdomains, leaving, arriving))
    domain.active_ranks, domain.work = active, {}
    slowest, expected, largest, seconds = comm.greatest(
        [
            rank_work,
            sum(new_weights.values()),
            max(weights.values(), default=0.0),
            time.perf_counter() - start,
        ]
    )
    (size,) = comm.total([float(sent)])
    return Balance(
        before=slowest * before / total,
        after=expected * active / total,
        largest=largest * active / total,
        moved_count=int(moved_count),
        subdomains=cut.count,
        bytes=int(size),
        seconds=seconds,
    )


def active_cells(store: FieldStore) -> dict[int, float]:
    """Return the number of active cells of each subdomain of this rank."""
    domain, blocks = store.domain, store.blocks
    assert domain.decomposition is not None
    boxes = {number: domain.decomposition.box(number) for number in domain.subdomains}
    if blocks is None:
        return {number: float(box.size) for number, box in boxes.items()}
    pieces = {number: blocks.pieces(box.lo, box.hi) for number, box in boxes.items()}
    return {
        number: float(sum(Box(*piece).size for piece in box_pieces)) for number, box_pieces in pieces.items()
    }


def measured_work(store: FieldStore) -> dict[int, float]:
    """Return the work of each subdomain of this rank since the last balance.

    On the host, the work of a subdomain is the time that all threads spent in its kernels, divided by the
    number of threads. On devices, the work is the number of active cells, because kernels are not timed.
    """
    domain = store.domain
    if domain.devices:
        return active_cells(store)
    return {number: domain.work.get(number, 0.0) / domain.threads for number in domain.subdomains}
