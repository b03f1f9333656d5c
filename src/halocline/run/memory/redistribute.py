"""Redistribution of fields: subdomains move to other ranks, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
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
    """Move subdomains of all fields as planned; all ranks call this.

    The domain has the subdomains of `plan` afterwards, and engines made before are stale. Subdomains that
    stay keep their memory. No halo is valid until the next exchange.

    Returns
    -------
    int
        Bytes that this rank sent.

    Raises
    ------
    RunError
        A node has too little memory; nothing has moved then.
    """
    domain, comm = store.domain, store.domain.comm
    with comm.agreement("look for memory for subdomains that move"):
        points = {
            (name, piece): _points(piece.box, info, plan.target).size
            for piece in plan.receives
            for name, info in store.infos.items()
        }
        if not domain.devices:
            store.check_node(sum(n * ITEMSIZE[store.infos[name].dtype] for (name, _), n in points.items()))
    sent, made = 0, {}
    for name in store.storages:
        made[name], count = _moved(store, plan, name)
        sent += count
    store.storages = made
    store.generation += 1
    domain.have(plan.subdomains)
    store.share(list(made))
    return sent


def _moved(store: FieldStore, plan: Redistribution, name: str) -> tuple[list[Any], int]:
    """Return the storages of a field afterwards, and the bytes that this rank has sent."""
    domain, info, before = store.domain, store.infos[name], store.domain.subdomains
    old = dict(zip(before, store.storages[name], strict=True))
    new: dict[int, Any] = {}
    with domain.comm.agreement(f"make room for field {name!r} in subdomains that move"):
        for local, number in enumerate(plan.subdomains):
            device = domain.device_of(local, len(plan.subdomains)) if domain.devices else None
            if number in old and (device is None or device == domain.device_of(before.index(number))):
                new[number] = old[number]
                continue
            shape = _points(plan.target.box(number), info, plan.target).shape
            new[number] = store.new_storage(name, shape, device)
            if number in old:  # it goes to another device of this rank
                with store.written([new[number]]) as (fresh,):
                    store.whole(fresh)[...] = store.whole(store.on_host([old[number]])[0])
    sends = []
    for number, pieces in _by_subdomain(plan.sends, "source"):
        (there,) = store.on_host([old[number]])
        sends += [(piece.rank, _packed(store, there, piece, plan.source, number, info)) for piece in pieces]
    receives = [
        (piece.rank, np.empty(sum(box.size for box in _active(store, piece, plan.target, info)), info.dtype))
        for piece in plan.receives
    ]
    domain.comm.exchange(sends, receives)
    arrived = dict(zip(plan.receives, (array for _, array in receives), strict=True))
    for number, pieces in _by_subdomain(plan.receives, "target"):
        with store.written([new[number]]) as (there,):
            for piece in pieces:
                _unpack(store, there, arrived[piece], piece, plan.target, number, info)
    return [new[number] for number in plan.subdomains], sum(array.nbytes for _, array in sends)


def _by_subdomain(pieces: tuple[Piece, ...], end: str) -> Iterator[tuple[int, list[Piece]]]:
    """Yield the subdomains at one end of pieces, each with its pieces."""
    for number in dict.fromkeys(getattr(piece, end) for piece in pieces):
        yield number, [piece for piece in pieces if getattr(piece, end) == number]


def _points(box: Box, info: FieldInfo, cut: Decomposition) -> Box:
    """Return the points of a field in a box of cells: one more on an upper wall that they lie on."""
    ends = zip(box.hi, cut.shape, info.staggered, cut.periodic, strict=True)
    return Box(box.lo, tuple(h + (on and not wraps and h == n) for h, n, on, wraps in ends))


def _active(store: FieldStore, piece: Piece, cut: Decomposition, info: FieldInfo) -> list[Box]:
    """Return the points of a piece that are computed, in indices of the grid."""
    points = _points(piece.box, info, cut)
    if store.blocks is None:
        return [points]
    return [Box(lo, hi) for lo, hi in store.blocks.pieces(points.lo, points.hi)]


def _views(
    store: FieldStore, storage: Any, piece: Piece, cut: Decomposition, number: int, info: FieldInfo
) -> Iterator[NDArray[Any]]:
    """Yield views of the points of a piece in the storage of a subdomain."""
    first, whole = cut.box(number).lo, store.whole(storage)
    for box in _active(store, piece, cut, info):
        lo, hi = tuple(map(sub, box.lo, first)), tuple(map(sub, box.hi, first))
        yield whole[tuple(map(slice, lo, hi))]


def _packed(
    store: FieldStore, storage: Any, piece: Piece, cut: Decomposition, number: int, info: FieldInfo
) -> NDArray[Any]:
    """Return the points of a piece in one row."""
    views = [view.reshape(-1) for view in _views(store, storage, piece, cut, number, info)]
    return np.concatenate(views) if views else np.empty(0, info.dtype)


def _unpack(
    store: FieldStore,
    storage: Any,
    row: NDArray[Any],
    piece: Piece,
    cut: Decomposition,
    number: int,
    info: FieldInfo,
) -> None:
    """Write the points of a piece from one row."""
    at = 0
    for view in _views(store, storage, piece, cut, number, info):
        view[...] = row[at : at + view.size].reshape(view.shape)
        at += prod(view.shape)
