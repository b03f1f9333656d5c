"""Balances of a run: subdomains move to other ranks, so that all ranks take equally long."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from halocline.plan.box import Box
from halocline.plan.redistribution import redistribution
from halocline.run.memory.redistribute import redistribute
from halocline.run.memory.store import FieldStore


@dataclass(frozen=True)
class Balance:
    """Result of a balance, the same on all ranks.

    Attributes
    ----------
    before, after : float
        Work of the rank with most, over the mean of the ranks that hold work: as measured, and as expected
        of the new shares.
    largest : float
        Work of the largest subdomain, over this mean of the new shares: no share can be smaller.
    moved, subdomains : int
        Numbers of subdomains that moved, and of all.
    bytes : int
        Bytes that were sent, of all ranks.
    seconds : float
        Time that the balance took on the slowest rank. The next run plans its steps anew, which is not part
        of it.
    """

    before: float
    after: float
    largest: float
    moved: int
    subdomains: int
    bytes: int
    seconds: float


def balance(
    store: FieldStore,
    weights: Mapping[int, float],
    active: int,
    release: Callable[[], None] = lambda: None,
) -> Balance:
    """Move subdomains so that ranks have equal shares of work; all ranks call this.

    Where no subdomain has any work, it moves them only to as many ranks as are to be active.

    Parameters
    ----------
    store : FieldStore
    weights : mapping of int to float
        Work of each subdomain of this rank.
    active : int
        Number of ranks that are to hold subdomains: the first ones, node by node.
    release : callable
        Frees engines, which hold the memory of subdomains, before any of these moves.

    Raises
    ------
    RunError
        A node has too little memory for its new share; nothing has moved then.
    """
    domain, comm, begun = store.domain, store.domain.comm, time.perf_counter()
    assert domain.transfers is not None
    layout, cut = domain.transfers.layout, domain.transfers.layout.decomposition
    own = sum(weights.values())
    _, total = comm.prefix(own)
    (before,) = comm.total([float(bool(weights))])
    stay = False
    if not total > 0.0:  # no work is known: subdomains count alike
        weights = dict.fromkeys(weights, 1.0)
        own, total, stay = float(len(weights)), float(cut.count), active == domain.active_ranks
    leaving: dict[int, int] = {}
    if not stay:
        new = domain.directory.assign(weights, layout.ranks_by_node[:active])
        leaving = {number: rank for number, rank in new.items() if rank != comm.rank}
    offers: dict[int, dict[int, float]] = {}
    for number, rank in leaving.items():
        offers.setdefault(rank, {})[number] = weights[number]
    offered = comm.sparse(offers)
    arriving = {number: rank for rank, each in offered.items() for number in each}
    held = {n: weight for n, weight in weights.items() if n not in leaving}
    held |= {n: weight for each in offered.values() for n, weight in each.items()}
    sent, (many,) = 0, comm.total([float(len(leaving))])
    if many:
        release()
        subdomains = sorted(held, key=domain.directory.place)
        sent = redistribute(store, redistribution(cut, subdomains, leaving, arriving))
    domain.active_ranks, domain.work = active, {}
    slowest, expected, largest, seconds = comm.greatest(
        [own, sum(held.values()), max(weights.values(), default=0.0), time.perf_counter() - begun]
    )
    (size,) = comm.total([float(sent)])
    return Balance(
        before=slowest * before / total,
        after=expected * active / total,
        largest=largest * active / total,
        moved=int(many),
        subdomains=cut.count,
        bytes=int(size),
        seconds=seconds,
    )


def active_cells(store: FieldStore) -> dict[int, float]:
    """Return the active cells of each subdomain of this rank."""
    domain, blocks = store.domain, store.blocks
    assert domain.decomposition is not None
    boxes = {number: domain.decomposition.box(number) for number in domain.subdomains}
    if blocks is None:
        return {number: float(box.size) for number, box in boxes.items()}
    pieces = {number: blocks.pieces(box.lo, box.hi) for number, box in boxes.items()}
    return {number: float(sum(Box(*piece).size for piece in each)) for number, each in pieces.items()}


def measured_work(store: FieldStore) -> dict[int, float]:
    """Return the work of each subdomain of this rank since the last balance.

    On the host it is the time of one thread, were the work shared evenly; on devices, whose kernels are not
    timed, the number of active cells.
    """
    domain = store.domain
    if domain.devices:
        return active_cells(store)
    return {number: domain.work.get(number, 0.0) / domain.threads for number in domain.subdomains}
