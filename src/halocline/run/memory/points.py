"""Values of fields at single points, gathered from all ranks on the first one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from halocline.lang.grid import Field
from halocline.run.memory.store import FieldStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PointValues:
    """Reader of fields at chosen points: each rank reads its own, and the first one gathers them.

    All ranks construct it after the grid is decomposed, and all ranks call `gather`.

    Parameters
    ----------
    store : FieldStore
    points : mapping of str to (Field, array of int (points, axes))
        Indices of points in the whole field, by a name for each choice.
    """

    def __init__(self, store: FieldStore, points: Mapping[str, tuple[Field, NDArray[np.int64]]]) -> None:
        self.store = store
        self._fields = {name: field for name, (field, _) in points.items()}
        self._counts = {name: len(indices) for name, (_, indices) in points.items()}
        # local indices in each subdomain of this rank
        self._local: dict[str, list[NDArray[np.int64]]] = {}
        numbers: dict[str, NDArray[np.int64]] = {}
        for name, (field, indices) in points.items():
            numbers[name], self._local[name] = self._own(field, indices)
        self._numbers = store.domain.comm.gather(numbers)

    def _own(
        self, field: Field, indices: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
        """Return the numbers of the points on this rank, and their local indices in each subdomain."""
        import numpy as np

        numbers, local = [], []
        for n, storage in enumerate(self.store.of(field)):
            shape = np.array(storage.shape[3 - indices.shape[1] :])
            here = indices - np.array(self.store.domain.first(n))
            mine = np.flatnonzero(((here >= 0) & (here < shape)).all(axis=1))
            numbers.append(mine)
            local.append(here[mine])
        return np.concatenate(numbers), local

    def gather(self) -> dict[str, NDArray[Any]] | None:
        """Return the values at all points in the precision of their field on the first rank, None on the
        others; points of inactive blocks are zero."""
        import numpy as np

        mine = {
            name: np.concatenate(self.store.at(field, self._local[name]))
            for name, field in self._fields.items()
        }
        parts = self.store.domain.comm.gather(mine)
        if parts is None or self._numbers is None:
            return None
        whole = {name: np.zeros(count, self._fields[name].dtype) for name, count in self._counts.items()}
        for numbers, values in zip(self._numbers, parts, strict=True):
            for name, array in whole.items():
                array[numbers[name]] = values[name]
        return whole
