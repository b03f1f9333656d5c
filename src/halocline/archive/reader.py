"""What a store on disk holds: output, a checkpoint, or a store of another program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from halocline.archive import arrays
from halocline.archive.arrays import StoredArray
from halocline.archive.files import is_file, read_object
from halocline.archive.series import FACTS, STEP, TIME
from halocline.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GROWING = (TIME, STEP)  # dimensions that a run adds to
POINT = "point"  # the dimension of values at single points
UNNAMED = "axis"  # and a number: the name of an axis that has none


@dataclass(frozen=True)
class ArrayInfo:
    """An array of a store.

    Attributes
    ----------
    name : str
    dimensions : tuple of str
        The names of its axes; "axis0", "axis1", ... where it gives none.
    shape : tuple of int
    dtype : str
    chunk : tuple of int
    attributes : dict
    key : (str, str)
        How the files of chunks are named: what comes first, and what stands between the numbers.
    """

    name: str
    dimensions: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    chunk: tuple[int, ...]
    attributes: dict[str, Any]
    key: tuple[str, str]

    @property
    def units(self) -> str:
        """Of its values; empty where they are not known."""
        return str(self.attributes.get("units", ""))

    @property
    def space(self) -> tuple[str, ...]:
        """Its dimensions without the one that grows."""
        return tuple(each for each in self.dimensions if each != self.growing)

    @property
    def growing(self) -> str | None:
        """The dimension that a run adds to, "time" or "step"; None where it has none."""
        return next((each for each in GROWING if each in self.dimensions), None)

    @property
    def is_timed(self) -> bool:
        """Whether it has values at several times, or after several steps."""
        return self.growing is not None

    @property
    def times(self) -> int:
        """At how many; 1 for an array that has no such axis."""
        return 1 if self.growing is None else self.count(self.growing)

    @property
    def is_points(self) -> bool:
        """Whether it holds values at single points, and not on a grid."""
        return self.space == (POINT,)

    def count(self, dimension: str) -> int:
        """How many elements it has along a dimension."""
        return self.shape[self.dimensions.index(dimension)]

    def chunk_file(self, numbers: Sequence[int]) -> str:
        """The name of the file that holds a chunk, in the folder of the array."""
        first, between = self.key
        return between.join([*([first] if first else []), *map(str, numbers)]) or "0"


class Store:
    """A group of arrays on disk. What it says of itself is read once, so that a store that grows meanwhile
    does not change in between.

    Parameters
    ----------
    path : path
    bare : bool
        Whether a folder will do that holds arrays and is no group.

    Raises
    ------
    InputError
        There is no such group, or its metadata is damaged.

    Attributes
    ----------
    attributes : dict
    arrays : dict of str to ArrayInfo
        All of them, coordinates too.
    """

    def __init__(self, path: Path, *, bare: bool = False) -> None:
        self.path = path
        self._opened: dict[str, StoredArray] = {}
        group: Any = {}
        if is_file(path / arrays.GROUP):
            group = read_object(path / arrays.GROUP)
            if group.get("node_type") != "group":
                raise InputError(f"{path} is a single array; give the store that it belongs to")
        elif not bare:
            what = "no such file or folder" if not path.exists() else "no Zarr store"
            raise InputError(f"{path}: {what}; expected the path of output or of a checkpoint")
        attributes = group.get("attributes") or {}
        if not isinstance(attributes, dict):
            raise _damaged(path / arrays.GROUP, f"its attributes are {attributes!r}; expected an object")
        self.attributes: dict[str, Any] = attributes
        self.arrays = self._arrays(group.get("consolidated_metadata"))

    def _arrays(self, consolidated: Any) -> dict[str, ArrayInfo]:
        if consolidated is None:
            files = {each.parent.name: each for each in sorted(self.path.glob(f"*/{arrays.GROUP}"))}
            known = {name: read_object(file) for name, file in files.items()}
        else:
            file = self.path / arrays.GROUP
            found = consolidated.get("metadata") if isinstance(consolidated, dict) else None
            if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
                raise _damaged(file, "its consolidated metadata holds no objects")
            known = found
            files = dict.fromkeys(known, file)
        return {
            name: _info(files[name], name, each)
            for name, each in known.items()
            if each.get("node_type") != "group"
        }

    @property
    def facts(self) -> dict[str, Any]:
        """What Halocline says of it."""
        found = self.attributes.get(FACTS)
        return found if isinstance(found, dict) else {}

    @property
    def variables(self) -> dict[str, ArrayInfo]:
        """The arrays that are no coordinates."""
        return {name: each for name, each in self.arrays.items() if not self.is_coordinate(name)}

    def is_coordinate(self, name: str) -> bool:
        """Whether an array of that name is there and says where points are, or when."""
        info = self.arrays.get(name)
        if info is None or name in self._fields:  # a field of a checkpoint may have the name of an axis
            return False
        return name in GROWING or info.dimensions == (name,) or "axis" in info.attributes

    @property
    def results(self) -> list[str]:
        """The variables but those that a program keeps for itself, such as work arrays of its scheme."""
        return [name for name in self.variables if not self._fields.get(name, {}).get("work")]

    @property
    def _fields(self) -> dict[str, dict[str, Any]]:
        """What a checkpoint says of its fields."""
        found = self.facts.get("fields")
        return found if isinstance(found, dict) else {}

    @property
    def axis(self) -> str | None:
        """What it grows with, "time" or "step"; None for a store that has no such axis."""
        found = {info.growing for info in self.arrays.values()}
        return next((each for each in GROWING if each in found), None)

    @property
    def times(self) -> NDArray[np.float64] | None:
        """The simulated times, or steps; their numbers where the store does not say them; None for a
        store that has none."""
        import numpy as np

        line = None if self.axis is None else self._line(self.axis)
        if line is not None:
            return line.astype(np.float64)
        counts = [each.times for each in self.arrays.values() if each.is_timed]
        return np.arange(counts[0], dtype=np.float64) if counts else None

    @property
    def steps(self) -> NDArray[np.int64] | None:
        """The steps of these times."""
        return self._line(STEP)

    def coordinates(self, dimension: str, info: ArrayInfo) -> NDArray[np.float64]:
        """Of the points of an array along a dimension; their numbers where the store has none.

        Raises
        ------
        InputError
            There are not as many as points, or they are damaged.
        """
        import numpy as np

        line, count = self._line(dimension), info.count(dimension)
        if line is None:
            return np.arange(count, dtype=np.float64)
        if len(line) != count:
            raise InputError(
                f"{self.path} is damaged: array {info.name!r} has {count} points along {dimension}, which "
                f"has {len(line)} coordinates"
            )
        return line

    def open(self, name: str) -> StoredArray:
        """An array, to be read.

        Raises
        ------
        InputError
            It is not there, or is not what the store says of it.
        """
        if name not in self._opened:
            info, folder = self.arrays[name], self.path / name
            file = folder / arrays.GROUP
            if not is_file(file):
                raise InputError(f"{self.path} is damaged: array {name!r} is not there any more ({file})")
            own = _info(file, name, read_object(file))
            grown = own.dimensions[:1] == (own.growing,) and own.shape[:1] > info.shape[:1]
            shape = (info.shape[0], *own.shape[1:]) if grown else own.shape
            for what, there, said in (
                ("dimensions", own.dimensions, info.dimensions),
                ("shape", shape, info.shape),
                ("type", own.dtype, info.dtype),
                ("chunks", own.chunk, info.chunk),
            ):
                if there != said:
                    raise InputError(
                        f"{file} says {what} {_text(there)}, but {self.path / arrays.GROUP} says "
                        f"{_text(said)}: one of them is damaged, or a run is writing to the store; then read "
                        "it again"
                    )
            try:
                self._opened[name] = arrays.read(folder)
            except InputError as error:
                raise _damaged(file, str(error).removeprefix(f"{folder} cannot be read: ")) from None
        return self._opened[name]

    def read(
        self,
        name: str,
        time: int | None = None,
        lo: Sequence[int] | None = None,
        hi: Sequence[int] | None = None,
    ) -> NDArray[Any]:
        """Values of an array at one time.

        Parameters
        ----------
        name : str
        time : int, optional
            The number of the time, by default of the last. It makes no difference to arrays without times.
        lo, hi : sequence of int, optional
            Those from the indices `lo` up to `hi` along the axes without time; by default all.

        Raises
        ------
        InputError
            There is no such time yet; or a chunk is missing or damaged.
        """
        info = self.arrays[name]
        if not info.is_timed:
            return self._read(info, lo or (0,) * len(info.shape), info.shape if hi is None else hi)
        if info.dimensions[0] != info.growing:
            raise InputError(
                f"{self.path / name} has axes {', '.join(info.dimensions)}; expected {info.growing} as the "
                "first"
            )
        count, *space = info.shape
        if time is None:
            time = count - 1
        if not 0 <= time < count:
            raise InputError(
                f"{self.path / name} has {count or 'no'} times yet; number {max(time, 0)}, counted from "
                "0, is asked for: read it again when the run has written more"
            )
        lo, hi = lo or (0,) * len(space), space if hi is None else hi
        found: NDArray[Any] = self._read(info, (time, *lo), (time + 1, *hi))[0]
        return found

    def whole(self, name: str) -> NDArray[Any]:
        """All values of an array, at all times.

        Raises
        ------
        InputError
            A chunk is missing or damaged.
        """
        info = self.arrays[name]
        return self._read(info, (0,) * len(info.shape), info.shape)

    def bytes(self, name: str) -> int:
        """Of an array on disk."""
        return folder_bytes(self.path / name)

    def _read(self, info: ArrayInfo, lo: Sequence[int], hi: Sequence[int]) -> NDArray[Any]:
        import numpy as np

        values = self.open(info.name).read(lo, hi)
        # a chunk that is not there reads as the value that the array is filled with: NaN, where Halocline
        # wrote it
        if values.dtype.kind == "f" and np.isnan(values).any():
            self._check_chunks(info, lo, hi, values)
        return values

    def _check_chunks(
        self, info: ArrayInfo, lo: Sequence[int], hi: Sequence[int], values: NDArray[Any]
    ) -> None:
        import numpy as np

        sides = list(zip(lo, hi, info.chunk, strict=True))
        for numbers in product(*(range(l // c, -(-h // c)) for l, h, c in sides)):
            # where the chunk lies in the values
            box = tuple(
                slice(max(n * c, l) - l, min((n + 1) * c, h) - l)
                for n, (l, h, c) in zip(numbers, sides, strict=True)
            )
            file = self.path / info.name / info.chunk_file(numbers)
            if not file.exists() and np.isnan(values[box]).all():
                raise InputError(
                    f"{self.path / info.name} is damaged: its chunk {info.chunk_file(numbers)} is missing. "
                    "It was removed, or never written because all of its values were nan"
                )

    def _line(self, name: str) -> NDArray[Any] | None:
        if not self.is_coordinate(name) or len(self.arrays[name].shape) != 1:
            return None
        return self.whole(name)


def array_at(path: Path) -> tuple[Store, ArrayInfo]:
    """An array by its path, such as "heat.zarr/T", and the store that it belongs to.

    Raises
    ------
    InputError
        There is no array, or it is damaged.
    """
    file = path / arrays.GROUP
    if not is_file(file):
        known = ", ".join(sorted(each.parent.name for each in path.parent.glob(f"*/{arrays.GROUP}")))
        raise InputError(f"there is no array {path}" + (f"; {path.parent} has {known}" if known else ""))
    metadata = read_object(file)
    if metadata.get("node_type") == "group":
        known = ", ".join(sorted(each.parent.name for each in path.glob(f"*/{arrays.GROUP}")))
        raise InputError(f"{path} is a store; give the path of one of its arrays, {path}/NAME: {known}")
    store = Store(path.parent, bare=True)
    # a group whose metadata was consolidated before the array was added does not know it
    info = store.arrays.setdefault(path.name, _info(file, path.name, metadata))
    return store, info


def folder_bytes(folder: Path) -> int:
    """The size of all files in a folder; a run may be adding and removing some."""
    total = 0
    for each in folder.rglob("*"):
        try:
            total += each.stat().st_size if each.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def _info(file: Path, name: str, metadata: dict[str, Any]) -> ArrayInfo:
    """What the metadata of an array says, which stands in this file."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts or not place.parts:
        raise InputError(f"{file} names an array {name!r}: expected a name that stays in the store")
    try:
        shape = _counts("shape", metadata["shape"], 0)
        chunk = _counts("chunk shape", metadata["chunk_grid"]["configuration"]["chunk_shape"], 1)
        names = metadata.get("dimension_names") or [None] * len(shape)
        if not len(shape) == len(chunk) == len(names):
            raise ValueError(
                f"it has {len(shape)} axes, {len(names)} names of axes and chunks of {len(chunk)}"
            )
        encoding = metadata.get("chunk_key_encoding") or {"name": "default"}
        first, between = ("", ".") if encoding["name"] == "v2" else ("c", "/")
        return ArrayInfo(
            name,
            tuple(f"{UNNAMED}{n}" if not each else str(each) for n, each in enumerate(names)),
            shape,
            str(metadata["data_type"]),
            chunk,
            dict(metadata.get("attributes") or {}),
            (first, str(encoding.get("configuration", {}).get("separator", between))),
        )
    except KeyError as error:
        raise _damaged(file, f"array {name!r} has no {error}") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise _damaged(file, f"array {name!r}: {error}") from None


def _counts(what: str, value: Any, least: int) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(n) is int and n >= least for n in value):
        raise ValueError(f"its {what} is {value!r}; expected numbers from {least} on")
    return tuple(value)


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else "(" + ", ".join(map(str, value)) + ")"


def _damaged(file: Path, why: str) -> InputError:
    return InputError(f"{file} is damaged, or of a kind that Halocline does not read: {why}")
