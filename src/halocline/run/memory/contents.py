"""Contents of fields over all ranks: gathered, hashed, checked for finite values, in chunks, at points."""

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
    """This rank's points of a field: a view, or, of several subdomains, a copy that cannot be written.

    Raises
    ------
    InputError
        The subdomains do not make up a box.
    """
    views = store.views(field)
    if len(views) == 1:
        return views[0]
    offsets = store.domain.offsets
    if not offsets:
        raise InputError(f"rank {store.domain.comm.rank} has no subdomain now: use gather({field.name!r})")
    low = tuple(map(min, zip(*offsets, strict=True)))
    pieces = [(tuple(map(sub, o, low)), v) for o, v in zip(offsets, views, strict=True)]
    high = map(max, zip(*(map(add, origin, view.shape) for origin, view in pieces), strict=True))
    whole = assembled_pieces(pieces, tuple(high), field.dtype)
    if whole.size != sum(view.size for view in views):
        raise InputError(
            f"the {len(views)} subdomains of rank {store.domain.comm.rank} do not make up a box: use "
            f"views({field.name!r}), or gather({field.name!r})"
        )
    whole.flags.writeable = False
    return whole


def gather(store: FieldStore, field: Field) -> NDArray[Any] | None:
    """The whole field as a new array on rank 0, None elsewhere; all ranks call this."""
    mine = [(origin, np.ascontiguousarray(view)) for origin, view in store.pieces(field)]
    pieces = store.domain.comm.gather(mine)
    if pieces is None:
        return None
    return assembled_pieces(chain.from_iterable(pieces), field.points, field.dtype)


def checksum(store: FieldStore, field: Field) -> str:
    """A hash of a field's bits in global order, the same for every decomposition: 32 hexadecimal digits. All
    ranks call this."""
    domain, points = store.domain, three(field.points, 1)
    mine = [
        storage.checksum(three(lo), three(hi, 1), three(domain.offsets[n]), points, domain.threads)
        for n, storage in enumerate(store.on_host(store.of(field)))
        for lo, hi in store.active(n, storage)
    ]
    words = [words for each in domain.comm.allgather(mine) for words in each]
    sums = [sum(column) % 2**64 for column in zip((0, 0), *words, strict=True)]
    return "".join(f"{word:016x}" for word in sums)


def first_nonfinite(store: FieldStore, fields: Sequence[Field]) -> tuple[int, tuple[int, ...], float] | None:
    """Return the first value of fields that is not finite, or None; all ranks call this.

    Returns
    -------
    tuple of int, tuple of int and float
        Number of the field, cell of the grid, and value.
    """
    found = store.domain.comm.allgather(_nonfinite(store, fields))
    return min((each for each in found if each is not None), default=None)


def check_finite(store: FieldStore, fields: Sequence[Field], when: str) -> None:
    """Raise for the first of these fields that holds a value which is not finite; all ranks call this."""
    worst = first_nonfinite(store, fields)
    if worst is not None:
        number, cell, value = worst
        error = InputError(
            f"field {fields[number].name!r} is {value} at cell {cell} {when}; all values must be finite"
        )
        error.place = fields[number].name, cell
        raise error


def _nonfinite(store: FieldStore, fields: Sequence[Field]) -> tuple[int, tuple[int, ...], float] | None:
    """This rank's first value that is not finite: number of the field, global cell, value."""
    domain = store.domain
    for number in _suspects(store, fields):
        found = []
        for n, storage in enumerate(store.on_host(store.of(fields[number]))):
            for lo, hi in store.active(n, storage):
                place = storage.first_nonfinite(three(lo), three(hi, 1), domain.threads)
                if place is not None:
                    local = place[3 - domain.grid.ndim :]
                    cell = tuple(map(add, domain.offsets[n], local))
                    found.append((number, cell, float(store.whole(storage)[local])))
        if found:
            return min(found)
    return None


def _suspects(store: FieldStore, fields: Sequence[Field]) -> Sequence[int]:
    """The numbers of the fields to check in memory of the host: of what lies on devices those that these have
    found to hold such a value, so that no other is fetched."""
    domain = store.domain
    if not domain.devices:
        return range(len(fields))
    finders = domain.finders()
    with device_errors("fields cannot be checked for finite values"):
        searches = []
        for n in range(len(domain.subdomains)):
            storages = [store.of(field)[n] for field in fields]
            boxes = [
                [(three(lo), three(hi, 1)) for lo, hi in store.active(n, storage)] for storage in storages
            ]
            searches.append(native().Search(finders[domain.device_of(n)], storages, boxes))
        found = [search.found() for search in searches]
    return [number for number in range(len(fields)) if any(each[number] for each in found)]


Index = tuple[int, ...]


def assembled(
    store: FieldStore, field: Field, grid: ChunkGrid, selection: Selection
) -> Iterator[tuple[Index, NDArray[Any]]]:
    """The chunks of a field that this rank puts together, as new arrays, each with the index of its first
    element in the array; all ranks call this, and go through all of them.

    Parameters
    ----------
    grid : ChunkGrid
        Of the array.
    selection : Selection
        The points of the field that the array has.
    """
    domain = store.domain
    assert domain.transfers is not None
    rank = domain.comm.rank
    layout = domain.transfers.layout
    cut = layout.decomposition
    own, awaited = plan_chunks(cut, domain.subdomains, grid, field.points, selection)
    ends = {part.holder for part in own} | {part.subdomain for part in awaited}
    homes = {n: layout.home(n) for n in ends} if layout.moved is None else domain.directory.find(ends)
    views = dict(zip(domain.subdomains, store.views(field), strict=True))
    offsets = dict(zip(domain.subdomains, domain.offsets, strict=True))

    def there(part: Part) -> NDArray[Any]:
        """A part where this rank has it."""
        low = selection.point(part.box.lo)
        high = selection.point(part.box.hi)
        ends = zip(low, high, offsets[part.subdomain], selection.stride, strict=True)
        return views[part.subdomain][tuple(slice(l - o, h - o, s) for l, h, o, s in ends)]

    receivers = [(homes[part.holder][0], part) for part in own]
    sends = [(to, np.ascontiguousarray(there(part))) for to, part in receivers if to != rank]
    arrived = {
        part: np.empty(part.box.shape, field.dtype) for part in awaited if part.subdomain not in offsets
    }
    domain.comm.exchange(sends, [(homes[part.subdomain][0], array) for part, array in arrived.items()])
    # one chunk after the other: its receiver may write it while the next one is assembled
    for chunk, parts in groupby(awaited, attrgetter("chunk")):
        box = grid.box(chunk)
        values = np.empty(box.shape, field.dtype)
        for part in parts:
            inside = part.box.shift(tuple(-l for l in box.lo))
            here = values[tuple(map(slice, inside.lo, inside.hi))]
            here[...] = there(part) if part.subdomain in offsets else arrived.pop(part)
        yield box.lo, values


def point_values(
    store: FieldStore, points: Mapping[str, tuple[Field, NDArray[np.int64]]]
) -> dict[str, NDArray[Any]] | None:
    """Return the values of fields at chosen points on the first rank, None on the others.

    All ranks call this. The values have the precision of their field. Points of inactive blocks are zero.

    Parameters
    ----------
    points : mapping of str to (Field, array of int (points, axes))
        Indices of points in the whole field, by a name for each choice.
    """
    parts = store.domain.comm.gather({name: _at_points(store, *chosen) for name, chosen in points.items()})
    if parts is None:
        return None
    whole = {name: np.zeros(len(indices), field.dtype) for name, (field, indices) in points.items()}
    for part in parts:
        for name, (numbers, values) in part.items():
            whole[name][numbers] = values
    return whole


def _at_points(
    store: FieldStore, field: Field, indices: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the numbers of the points that lie on this rank, and the values there."""
    numbers, local = [], []
    for offset, storage in zip(store.domain.offsets, store.of(field), strict=True):
        shape = np.array(storage.shape[3 - indices.shape[1] :])
        here = indices - np.array(offset)
        numbers.append(np.flatnonzero(((here >= 0) & (here < shape)).all(axis=1)))
        local.append(here[numbers[-1]])
    values = store.at(field, local)
    if not numbers:
        return np.zeros(0, np.int64), np.zeros(0, field.dtype)
    return np.concatenate(numbers), np.concatenate(values)
