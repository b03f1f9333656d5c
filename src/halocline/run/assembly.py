"""Fields in chunks that do not depend on how the grid is cut: put together from all ranks; and read back."""

from __future__ import annotations

from collections.abc import Iterator
from operator import add
from typing import TYPE_CHECKING, Any

from halocline.archive.arrays import StoredArray
from halocline.lang.grid import Field
from halocline.plan.box import Box
from halocline.plan.chunks import ChunkGrid, Part, plan_chunks
from halocline.run.store import FieldStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

Index = tuple[int, ...]


def assembled(
    store: FieldStore, field: Field, grid: ChunkGrid, first: Index
) -> Iterator[tuple[Index, NDArray[Any]]]:
    """The chunks of a field that this rank puts together, as new arrays, each with the index of its first
    element in the array; all ranks call this, and go through all of them.

    Parameters
    ----------
    grid : ChunkGrid
        Of the array.
    first : tuple of int
        The point of the field that is the array's first element.
    """
    import numpy as np

    domain = store.domain
    assert domain.transfers is not None
    rank = domain.comm.rank
    plan = plan_chunks(domain.transfers.layout, rank, grid, field.points, first)
    views, offsets = store.views(field), domain.offsets()

    def there(part: Part) -> NDArray[Any]:
        """A part where this rank has it."""
        low = tuple(f - o for f, o in zip(first, offsets[part.local], strict=True))
        return views[part.local][_slices(part.box.shift(low))]

    made = {chunk: np.empty(grid.box(chunk).shape, field.dtype) for chunk in plan.chunks}

    def here(part: Part) -> NDArray[Any]:
        """A part where it is put together."""
        return made[part.chunk][_slices(part.box.shift(tuple(-l for l in grid.box(part.chunk).lo)))]

    sends = [(part.rank, np.ascontiguousarray(there(part))) for part in plan.own if part.rank != rank]
    awaited = [part for part in plan.parts if part.rank != rank]
    receives = [(part.rank, np.empty(part.box.shape, field.dtype)) for part in awaited]
    for part in plan.parts:
        if part.rank == rank:
            here(part)[...] = there(part)
    domain.comm.exchange(sends, receives)
    for part, (_, array) in zip(awaited, receives, strict=True):
        here(part)[...] = array
    for chunk in plan.chunks:
        yield grid.box(chunk).lo, made.pop(chunk)


def fetch(store: FieldStore, field: Field, array: StoredArray) -> None:
    """Set a field to an array of all its points, of which each rank reads its own.

    Raises
    ------
    InputError
        The array is damaged.
    """
    with store.writing(field) as pieces:
        for origin, view in pieces:
            view[...] = array.read(origin, tuple(map(add, origin, view.shape)))


def _slices(box: Box) -> tuple[slice, ...]:
    return tuple(map(slice, box.lo, box.hi))
