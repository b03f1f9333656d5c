"""Operations on fields of all ranks: gathering, checksums, checks for finite values, chunks and points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import add, attrgetter, sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.lang.grid import Field
from halocline.native import native
from halocline.plan.box import three
from halocline.plan.chunks import ChunkGrid, Part, Selection, plan_chunks
from halocline.run.devices.devices import device_errors
from halocline.run.memory.store import FieldStore, assembled_pieces


def view(store: FieldStore, field: Field) -> NDArray[Any]:
    """Return the points of a field on this rank.

    If the rank has one subdomain, the result is a view of its memory. For several subdomains, the result is a
    read-only copy.

    Raises
    ------
    InputError
        The subdomains of this rank do not form a box.
    """
    views = store.views(field)
    if len(views) == 1:
        return views[0]
    offsets = store.domain.offsets
    if not offsets:
        raise InputError(
            f"rank {store.domain.comm.rank} has no subdomain at present. Use gather({field.name!r})"
        )
    low = tuple(map(min, zip(*offsets, strict=True)))
    pieces = [(tuple(map(sub, o, low)), v) for o, v in zip(offsets, views, strict=True)]
    high = map(max, zip(*(map(add, origin, view.shape) for origin, view in pieces), strict=True))
    assembled_view = assembled_pieces(pieces, tuple(high), field.dtype)
    if assembled_view.size != sum(view.size for view in views):
        raise InputError(
            f"the {len(views)} subdomains of rank {store.domain.comm.rank} do not form a box. Use "
            f"views({field.name!r}), or gather({field.name!r})"
        )
    assembled_view.flags.writeable = False
    return assembled_view


def gather(store: FieldStore, field: Field) -> NDArray[Any] | None:
    """Return the whole field as a new array on rank 0, and None on other ranks; collective."""
    rank_pieces = [(origin, np.ascontiguousarray(view)) for origin, view in store.pieces(field)]
    pieces = store.domain.comm.gather(rank_pieces)
    if pieces is None:
        return None
    return assembled_pieces(chain.from_iterable(pieces), field.points, field.dtype)


def checksum(store: FieldStore, field: Field) -> str:
    """Return a hash of the bits of a field in global order; collective.

    The hash has 32 hexadecimal digits and is equal for all decompositions.
    """
    domain, points = store.domain, three(field.points, 1)
    rank_sums = [
        storage.checksum(three(lo), three(hi, 1), three(domain.offsets[n]), points, domain.threads)
        for n, storage in enumerate(store.on_host(store.of(field)))
        for lo, hi in store.active(n, storage)
    ]
    words = [words for piece_sums in domain.comm.allgather(rank_sums) for words in piece_sums]
    sums = [sum(column) % 2**64 for column in zip((0, 0), *words, strict=True)]
    return "".join(f"{word:016x}" for word in sums)


def first_nonfinite(store: FieldStore, fields: Sequence[Field]) -> tuple[int, tuple[int, ...], float] | None:
    """Return the first non-finite value in the given fields, or None; collective.

    Returns
    -------
    tuple of int, tuple of int and float
        Index of the field in `fields`, global index of the point, and value.
    """
    results = store.domain.comm.allgather(_nonfinite(store, fields))
    return min((result for result in results if result is not None), default=None)


def check_finite(store: FieldStore, fields: Sequence[Field], when: str) -> None:
    """Raise InputError for the first field with a non-finite value; collective."""
    result = first_nonfinite(store, fields)
    if result is not None:
        number, cell, value = result
        error = InputError(
            f"field {fields[number].name!r} is {value} at cell {cell} {when}; all values must be finite"
        )
        error.place = fields[number].name, cell
        raise error


def _nonfinite(store: FieldStore, fields: Sequence[Field]) -> tuple[int, tuple[int, ...], float] | None:
    """Return the first non-finite value on this rank in the form of `first_nonfinite`, or None."""
    domain = store.domain
    for number in _suspects(store, fields):
        candidates = []
        for n, storage in enumerate(store.on_host(store.of(fields[number]))):
            for lo, hi in store.active(n, storage):
                place = storage.first_nonfinite(three(lo), three(hi, 1), domain.threads)
                if place is not None:
                    local = place[3 - domain.grid.ndim :]
                    cell = tuple(map(add, domain.offsets[n], local))
                    candidates.append((number, cell, float(store.interior(storage)[local])))
        if candidates:
            return min(candidates)
    return None


def _suspects(store: FieldStore, fields: Sequence[Field]) -> Sequence[int]:
    """Return the indices of the fields that may contain non-finite values.

    On devices, a search on the device determines these fields, so that only these fields are copied to the
    host. On the host, the result contains all fields.
    """
    domain = store.domain
    if not domain.devices:
        return range(len(fields))
    store.await_other_libraries()
    finders = domain.finders()
    with device_errors("fields cannot be checked for finite values"):
        searches = []
        for n in range(len(domain.subdomains)):
            storages = [store.of(field)[n] for field in fields]
            boxes = [
                [(three(lo), three(hi, 1)) for lo, hi in store.active(n, storage)] for storage in storages
            ]
            searches.append(native().Search(finders[domain.device_of(n)], storages, boxes))
        results = [search.has_nonfinite() for search in searches]
    return [number for number in range(len(fields)) if any(result[number] for result in results)]


Index = tuple[int, ...]


def assembled(
    store: FieldStore, field: Field, grid: ChunkGrid, selection: Selection
) -> Iterator[tuple[Index, NDArray[Any]]]:
    """Yield the chunks of a field that this rank assembles; collective.

    Each item contains the index of the first element of the chunk in the stored array, and the chunk as a new
    array. Each rank must iterate over all of its chunks.

    Parameters
    ----------
    store : FieldStore
        Fields of this rank.
    field : Field
        Field to assemble.
    grid : ChunkGrid
        Chunks of the stored array.
    selection : Selection
        Points of the field that the stored array contains.
    """
    domain = store.domain
    assert domain.transfers is not None
    rank = domain.comm.rank
    layout = domain.transfers.layout
    decomposition = layout.decomposition
    outgoing, incoming = plan_chunks(decomposition, domain.subdomains, grid, field.points, selection)
    ends = {part.holder for part in outgoing} | {part.subdomain for part in incoming}
    homes = (
        {n: layout.home(n) for n in ends} if layout.moved_subdomains is None else domain.directory.find(ends)
    )
    views = dict(zip(domain.subdomains, store.views(field), strict=True))
    offsets = dict(zip(domain.subdomains, domain.offsets, strict=True))

    def local_part(part: Part) -> NDArray[Any]:
        """Return a view of a part of the field. The part belongs to a subdomain of this rank."""
        low = selection.point(part.box.lo)
        high = selection.point(part.box.hi)
        ends = zip(low, high, offsets[part.subdomain], selection.stride, strict=True)
        return views[part.subdomain][tuple(slice(l - o, h - o, s) for l, h, o, s in ends)]

    receivers = [(homes[part.holder][0], part) for part in outgoing]
    sends = [(to, np.ascontiguousarray(local_part(part))) for to, part in receivers if to != rank]
    received = {
        part: np.empty(part.box.shape, field.dtype) for part in incoming if part.subdomain not in offsets
    }
    domain.comm.exchange(sends, [(homes[part.subdomain][0], array) for part, array in received.items()])
    # Yield one chunk at a time, so that the caller can write a chunk while the next chunk is assembled.
    for chunk, parts in groupby(incoming, attrgetter("chunk")):
        box = grid.box(chunk)
        values = np.empty(box.shape, field.dtype)
        for part in parts:
            inside = part.box.shift(tuple(-l for l in box.lo))
            target = values[tuple(map(slice, inside.lo, inside.hi))]
            target[...] = local_part(part) if part.subdomain in offsets else received.pop(part)
        yield box.lo, values


def point_values(
    store: FieldStore, points: Mapping[str, tuple[Field, NDArray[np.int64]]]
) -> dict[str, NDArray[Any]] | None:
    """Return the values of fields at chosen points on the first rank, and None on other ranks; collective.

    The values have the precision of the field. Values in inactive blocks are zero.

    Parameters
    ----------
    store : FieldStore
        Fields of this rank.
    points : mapping of str to (Field, array of int (points, axes))
        Field and global indices of the chosen points, by an arbitrary name. The result has the same names.
    """
    parts = store.domain.comm.gather({name: _at_points(store, *chosen) for name, chosen in points.items()})
    if parts is None:
        return None
    result = {name: np.zeros(len(indices), field.dtype) for name, (field, indices) in points.items()}
    for part in parts:
        for name, (numbers, values) in part.items():
            result[name][numbers] = values
    return result


def _at_points(
    store: FieldStore, field: Field, indices: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the row numbers of those `indices` that lie on this rank, and the values at these points."""
    numbers, local = [], []
    for offset, storage in zip(store.domain.offsets, store.of(field), strict=True):
        shape = np.array(storage.shape[3 - indices.shape[1] :])
        local_indices = indices - np.array(offset)
        numbers.append(np.flatnonzero(((local_indices >= 0) & (local_indices < shape)).all(axis=1)))
        local.append(local_indices[numbers[-1]])
    values = store.at(field, local)
    if not numbers:
        return np.zeros(0, np.int64), np.zeros(0, field.dtype)
    return np.concatenate(numbers), np.concatenate(values)
