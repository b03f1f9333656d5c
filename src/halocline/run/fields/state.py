"""What the future of a run depends on: fields and numbers, in a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from halocline.lang.grid import Field
from halocline.run.memory.store import FieldStore

if TYPE_CHECKING:
    from numpy.typing import NDArray


class State:
    """The fields of a store and the scalars of a run: with the same program and the same state, whatever
    follows is the same, bit for bit.

    Parameters
    ----------
    store : FieldStore
        Second buffers and halos in it are no part of the state.
    values : dict of str to float
        Of scalars: parameters, time, step, and what programs leave for the next step.
    """

    def __init__(self, store: FieldStore, values: dict[str, float]) -> None:
        self.store, self.values = store, values

    @property
    def fields(self) -> list[Field]:
        """All that have memory, those of schemes too."""
        return [f for f in self.store.domain.grid.fields.values() if f.name in self.store.storages]

    @property
    def memory_bytes(self) -> int:
        """Bytes of this rank's storages of these fields."""
        return sum(storage.bytes for f in self.fields for storage in self.store.storages[f.name])

    def write_to(self, file: IO[bytes], fields: Iterable[Field]) -> None:
        """Write this rank's share of some fields to a file that the same rank reads."""
        import numpy as np

        for f in fields:
            for _, view in self.store.pieces(f):
                for part in _parts(view):
                    file.write(np.ascontiguousarray(part).data)

    def read_from(self, file: IO[bytes], fields: Iterable[Field]) -> None:
        """Set these fields to what `write_to` left, bit for bit."""
        import numpy as np

        for f in fields:
            with self.store.writing(f) as pieces:
                for _, view in pieces:
                    for part in _parts(view):
                        read = np.frombuffer(file.read(part.nbytes), part.dtype)
                        part[...] = read.reshape(part.shape)


def _parts(view: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """An array in parts that are small beside it."""
    yield from view if view.ndim > 1 else (view,)
