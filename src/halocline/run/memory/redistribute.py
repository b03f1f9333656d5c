"""Redistribution of subdomains, whose fields move to other ranks."""

from __future__ import annotations

from collections.abc import Iterator
from operator import sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.compile.schedule import FieldInfo
from halocline.lang.dtype import ITEMSIZE
from halocline.plan.box import Box
from halocline.plan.decompose import Decomposition
from halocline.plan.redistribution import Piece, Redistribution
from halocline.run.memory.store import FieldStore


def redistribute(store: FieldStore, plan: Redistribution) -> int:
    """Move subdomains with all their fields as `plan` determines; collective.

    Afterwards, this rank has the subdomains of `plan`, and existing engines are invalid. Subdomains that do
    not move keep their memory. All halos are invalid until the next exchange.

    Returns
    -------
    int
        Bytes that this rank sent.

    Raises
    ------
    RunError
        A node has too little memory. In this case, no subdomain has moved.
    """
    domain, comm, decomposition = store.domain, store.domain.comm, store.domain.decomposition
    assert decomposition is not None
    arriving = sum(
        _points(piece.box, info, decomposition).size * ITEMSIZE[info.dtype]
        for piece in plan.receives
        for info in store.infos.values()
    )
    required = store.of_node(arriving)
    with comm.agreement("check the memory for moved subdomains"):
        store.check_node(required)
    sent, storages = 0, {}
    for name in store.storages:
        storages[name], count = _move_field(store, plan, decomposition, name)
        sent += count
    store.storages = storages
    store.generation += 1
    domain.set_subdomains(plan.subdomains)
    store.share(list(storages))
    return sent


def _move_field(
    store: FieldStore, plan: Redistribution, cut: Decomposition, name: str
) -> tuple[list[Any], int]:
    """Move a field, and return its new storages on this rank and the bytes that this rank sent."""
    domain, info, before = store.domain, store.infos[name], store.domain.subdomains
    old_storages = dict(zip(before, store.storages[name], strict=True))
    new_storages: dict[int, Any] = {}
    sends: list[tuple[int, NDArray[Any]]] = []
    receives: list[tuple[int, NDArray[Any]]] = []
    with domain.comm.agreement(f"allocate field {name!r} in moved subdomains"):
        for local, number in enumerate(plan.subdomains):
            device = domain.device_of(local, len(plan.subdomains)) if domain.devices else None
            if number in old_storages and (
                device is None or device == domain.device_of(before.index(number))
            ):
                new_storages[number] = old_storages[number]
                continue
            new_storages[number] = store.new_storage(name, _points(cut.box(number), info, cut).shape, device)
            if number in old_storages:  # the subdomain moves to another device of this rank
                with store.host_access([new_storages[number]]) as (target,):
                    store.interior(target)[...] = store.interior(store.on_host([old_storages[number]])[0])
        for piece in plan.sends:
            (on_host,) = store.on_host([old_storages[piece.subdomain]])
            views = [view.reshape(-1) for view in _views(store, on_host, piece, cut, info)]
            sends.append((piece.rank, np.concatenate(views) if views else np.empty(0, info.dtype)))
        for piece in plan.receives:
            size = sum(box.size for box in _active_boxes(store, piece, cut, info))
            receives.append((piece.rank, np.empty(size, info.dtype)))
    domain.comm.exchange(sends, receives)
    for piece, (_, row) in zip(plan.receives, receives, strict=True):
        with store.host_access([new_storages[piece.subdomain]]) as (on_host,):
            position = 0
            for view in _views(store, on_host, piece, cut, info):
                view[...] = row[position : position + view.size].reshape(view.shape)
                position += view.size
    return [new_storages[number] for number in plan.subdomains], sum(row.nbytes for _, row in sends)


def _points(box: Box, info: FieldInfo, cut: Decomposition) -> Box:
    """Return the box of the points of a field in a box of cells, including points on an upper wall."""
    ends = zip(box.hi, cut.shape, info.staggered, cut.periodic, strict=True)
    return Box(
        box.lo, tuple(h + (staggered and not periodic and h == n) for h, n, staggered, periodic in ends)
    )


def _active_boxes(store: FieldStore, piece: Piece, cut: Decomposition, info: FieldInfo) -> list[Box]:
    """Return those points of a piece that lie in active blocks, as boxes of global indices."""
    points = _points(piece.box, info, cut)
    if store.blocks is None:
        return [points]
    return [Box(lo, hi) for lo, hi in store.blocks.pieces(points.lo, points.hi)]


def _views(
    store: FieldStore, storage: Any, piece: Piece, cut: Decomposition, info: FieldInfo
) -> Iterator[NDArray[Any]]:
    """Yield views of the points of a piece that lie in active blocks. `storage` belongs to its subdomain."""
    first, points = cut.box(piece.subdomain).lo, store.interior(storage)
    for box in _active_boxes(store, piece, cut, info):
        lo, hi = tuple(map(sub, box.lo, first)), tuple(map(sub, box.hi, first))
        yield points[tuple(map(slice, lo, hi))]
