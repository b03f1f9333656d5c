"""Fields in chunks that do not depend on how the grid is cut: put together from all ranks; and read back."""

from __future__ import annotations

from collections.abc import Iterator
from operator import add
from typing import TYPE_CHECKING, Any

from halocline.archive.arrays import StoredArray
from halocline.lang.grid import Field
from halocline.plan.box import Box
from halocline.plan.chunks import ChunkGrid, Part, Selection, plan_chunks
from halocline.run.memory.store import FieldStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    import numpy as np

    domain = store.domain
    assert domain.transfers is not None
    rank = domain.comm.rank
    plan = plan_chunks(domain.transfers.layout, rank, grid, field.points, selection)
    views, offsets = store.views(field), domain.offsets()

    def there(part: Part) -> NDArray[Any]:
        """A part where this rank has it."""
        low = selection.point(part.box.lo)
        high = selection.point(part.box.hi)
        ends = zip(low, high, offsets[part.local], selection.stride, strict=True)
        return views[part.local][tuple(slice(l - o, h - o, s) for l, h, o, s in ends)]

    sends = [(part.rank, np.ascontiguousarray(there(part))) for part in plan.own if part.rank != rank]
    arrived = {part: np.empty(part.box.shape, field.dtype) for part in plan.parts if part.rank != rank}
    domain.comm.exchange(sends, [(part.rank, array) for part, array in arrived.items()])
    parts = iter(plan.parts)
    following = next(parts, None)
    for chunk in plan.chunks:  # one after the other: what takes them may write while the next is made
        box = grid.box(chunk)
        made = np.empty(box.shape, field.dtype)
        while following is not None and following.chunk == chunk:
            here = made[_slices(following.box.shift(tuple(-l for l in box.lo)))]
            here[...] = there(following) if following.rank == rank else arrived.pop(following)
            following = next(parts, None)
        yield box.lo, made


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
