"""What a store on disk holds: output, a checkpoint, or a folder of checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.archive import arrays
from halocline.archive.arrays import StoredArray
from halocline.archive.files import read_json
from halocline.archive.series import FACTS, STEP, TIME
from halocline.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class ArrayInfo:
    """An array of a store.

    Attributes
    ----------
    name : str
    dimensions : tuple of str
    shape : tuple of int
    dtype : str
    chunk : tuple of int
    attributes : dict
    """

    name: str
    dimensions: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    chunk: tuple[int, ...]
    attributes: dict[str, Any]

    @property
    def units(self) -> str:
        """Of its values; empty where they are not known."""
        return str(self.attributes.get("units", ""))

    @property
    def space(self) -> tuple[str, ...]:
        """Its dimensions without time."""
        return tuple(each for each in self.dimensions if each != TIME)


class Store:
    """A group of arrays on disk.

    Parameters
    ----------
    path : path

    Raises
    ------
    InputError
        There is no such group.

    Attributes
    ----------
    attributes : dict
    arrays : dict of str to ArrayInfo
        All of them, coordinates too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / arrays.GROUP).is_file():
            what = "there is nothing" if not path.exists() else "there is no Zarr store"
            raise InputError(f"{path}: {what}; expected the path of output or of a checkpoint")
        group = read_json(path / arrays.GROUP)
        if group.get("node_type") != "group":
            raise InputError(f"{path} is an array, not a store: give the path of {path.parent}")
        self.attributes: dict[str, Any] = group.get("attributes", {})
        known = group.get("consolidated_metadata", {}).get("metadata")
        if known is None:
            found = sorted(path.glob(f"*/{arrays.GROUP}"))
            known = {each.parent.name: read_json(each) for each in found}
        self.arrays = {name: _info(name, each) for name, each in known.items()}

    @property
    def facts(self) -> dict[str, Any]:
        """What Halocline says of it."""
        found: dict[str, Any] = self.attributes.get(FACTS, {})
        return found

    @property
    def variables(self) -> dict[str, ArrayInfo]:
        """The arrays that are no coordinates."""
        own = {TIME, STEP, *(d for each in self.arrays.values() for d in each.dimensions)}
        places = {n for n, each in self.arrays.items() if "axis" in each.attributes}
        return {name: each for name, each in self.arrays.items() if name not in own | places}

    @property
    def times(self) -> NDArray[np.float64] | None:
        """The simulated times; None for a store that has none."""
        return self._line(TIME)

    @property
    def steps(self) -> NDArray[np.int64] | None:
        """The steps of these times."""
        return self._line(STEP)

    def coordinates(self, dimension: str) -> NDArray[np.float64]:
        """Of the points along a dimension; their numbers where it has none."""
        import numpy as np

        line = self._line(dimension)
        if line is not None:
            return line
        count = next(
            s
            for each in self.arrays.values()
            for d, s in zip(each.dimensions, each.shape, strict=True)
            if d == dimension
        )
        return np.arange(count, dtype=np.float64)

    def open(self, name: str) -> StoredArray:
        """An array, to be read."""
        return arrays.read(self.path / name)

    def bytes(self, name: str) -> int:
        """Of an array on disk."""
        return sum(each.stat().st_size for each in (self.path / name).rglob("*") if each.is_file())

    def _line(self, name: str) -> NDArray[Any] | None:
        info = self.arrays.get(name)
        if info is None or len(info.shape) != 1:
            return None
        return self.open(name).read((0,), info.shape)


def _info(name: str, metadata: dict[str, Any]) -> ArrayInfo:
    shape = tuple(metadata["shape"])
    return ArrayInfo(
        name,
        tuple(metadata.get("dimension_names") or (f"axis{n}" for n in range(len(shape)))),
        shape,
        str(metadata["data_type"]),
        tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"]),
        dict(metadata.get("attributes", {})),
    )
