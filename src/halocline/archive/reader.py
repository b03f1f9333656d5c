"""Reader for stores and their arrays; it reports damage before a caller receives any value."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.archive import arrays
from halocline.archive.arrays import StoredArray
from halocline.archive.files import has_file, is_file, plain_files, read_object
from halocline.errors import InputError
from halocline.lang.values import as_name
from halocline.native import native

FACTS = "halocline"  # attribute of a group with the facts that Halocline records
KIND = "output"
TIME, STEP = "time", "step"  # dimensions along which arrays grow; STEP if the program has no time
GROWING = (TIME, STEP)
POINT = "point"  # dimension of values at single points
UNNAMED = "axis"  # prefix of the names that Halocline gives to unnamed axes; a number follows
RESTORE = "Restore the file from a copy of the store"
SMALL = 256 << 20  # maximum size of a read without a check of the available memory, in bytes
TEXT = 200  # maximum length of a metadata text in a message, in characters


@dataclass(frozen=True)
class ArrayInfo:
    """Description of an array of a store.

    Attributes
    ----------
    name : str
    dimensions : tuple of str
        Names of the axes; "axis0", "axis1", ... for axes without a name.
    shape : tuple of int
    dtype : str
    chunk : tuple of int
    attributes : dict
    key : (str, str)
        Prefix of the names of chunk files, and separator of the numbers in these names.
    metadata : mapping
        Content of the file `zarr.json` of the array.
    """

    name: str
    dimensions: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    chunk: tuple[int, ...]
    attributes: dict[str, Any]
    key: tuple[str, str]
    metadata: Mapping[str, Any] = field(repr=False)

    @property
    def units(self) -> str:
        """Units of the values; empty if unknown."""
        return str(self.attributes.get("units", ""))

    @property
    def space(self) -> tuple[str, ...]:
        """Dimensions except the growing dimension."""
        return tuple(dimension for dimension in self.dimensions if dimension != self.growing)

    @property
    def growing(self) -> str | None:
        """Dimension along which a run extends the array, "time" or "step"; None if the array is fixed."""
        return next((dimension for dimension in GROWING if dimension in self.dimensions), None)

    @property
    def is_timed(self) -> bool:
        """True for an array with values at several times, or after several steps."""
        return self.growing is not None

    @property
    def times(self) -> int:
        """Number of output times; 1 for an array that does not grow."""
        return 1 if self.growing is None else self.count(self.growing)

    @property
    def is_points(self) -> bool:
        """True for values at single points, which do not form a grid."""
        return self.space == (POINT,)

    def count(self, dimension: str) -> int:
        """Return the number of elements along a dimension."""
        return self.shape[self.dimensions.index(dimension)]

    def bytes(self, shape: Sequence[int]) -> int:
        """Return the memory of an array part with the given shape, in bytes."""
        try:
            return prod(shape) * np.dtype(self.dtype).itemsize
        except (TypeError, ValueError):  # not a NumPy type; TensorStore reads or rejects it
            return prod(shape) * 8

    @property
    def is_real(self) -> bool:
        """True for real numbers of a NumPy type."""
        return self.dtype == "bool" or self.dtype.rstrip("0123456789") in ("float", "int", "uint")

    @property
    def decoded(self) -> tuple[int, ...]:
        """Shape of the smallest part that can be read: a chunk, or an inner chunk of a shard."""
        for codec in self.metadata.get("codecs") or ():
            if isinstance(codec, dict) and codec.get("name") == "sharding_indexed":
                return _counts("inner chunk shape", codec["configuration"]["chunk_shape"], 1)
        return self.chunk

    def chunk_file(self, numbers: Sequence[int]) -> str:
        """Return the name of the file of a chunk in the folder of the array."""
        prefix, separator = self.key
        return separator.join([*([prefix] if prefix else []), *map(str, numbers)]) or "0"


def array_info(file: Path, name: str, metadata: dict[str, Any]) -> ArrayInfo:
    """Return the description of an array from its metadata.

    Parameters
    ----------
    file : path
        File with the metadata, for messages.

    Raises
    ------
    InputError
        The metadata is damaged, or the name is a path to a folder outside the store.
    """
    location = PurePosixPath(name)
    if location.is_absolute() or ".." in location.parts or not location.parts:
        raise InputError(f"{file} names an array {name!r}; expected the name of an array inside the store")
    try:
        shape = _counts("shape", metadata["shape"], 0)
        chunk = _counts("chunk shape", metadata["chunk_grid"]["configuration"]["chunk_shape"], 1)
        names = metadata.get("dimension_names") or [None] * len(shape)
        if not len(shape) == len(chunk) == len(names):
            raise ValueError(
                f"it has {len(shape)} axes, {len(names)} axis names and chunks of {len(chunk)} axes"
            )
        encoding = metadata.get("chunk_key_encoding") or {"name": "default"}
        prefix, separator = ("", ".") if encoding["name"] == "v2" else ("c", "/")
        key = prefix, str(encoding.get("configuration", {}).get("separator", separator))
        axes = tuple(str(axis) if axis else f"{UNNAMED}{n}" for n, axis in enumerate(names))
        dtype, attributes = str(metadata["data_type"]), dict(metadata.get("attributes") or {})
        info = ArrayInfo(name, axes, shape, dtype, chunk, attributes, key, metadata)
        _ = info.decoded
    except KeyError as error:
        raise damaged(file, f"array {name!r} has no {error}") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise damaged(file, f"array {name!r}: {error}") from None
    return info


def _counts(name: str, value: Any, minimum: int) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(n) is int and n >= minimum for n in value):
        raise ValueError(f"its {name} is {value!r}; expected integers of at least {minimum}")
    return tuple(value)


def damaged(file: Path, reason: str) -> InputError:
    """Return the error for a file that Halocline cannot interpret."""
    return InputError(f"{file} is damaged or has a format that Halocline does not read: {reason}")


def open_array(
    store: Path, info: ArrayInfo, *, complete: bool, rows: tuple[int, int] | None = None
) -> StoredArray:
    """Open an array of a store for reading.

    Parameters
    ----------
    store : path
    info : ArrayInfo
        Description of the array in the group metadata.
    complete : bool
        True for an array that Halocline wrote: every chunk is stored, and the group repeats all metadata of
        the array. Other programs do not write chunks whose elements all have the fill value.
    rows : (int, int), optional
        Half-open range of the time indices whose chunks are checked; by default all times.

    Raises
    ------
    InputError
        A file is missing or is a link. The metadata of the array differs from that of the group. A chunk
        needs more memory than is available.
    """
    folder = store / info.name
    file = folder / arrays.GROUP
    if not has_file(store, f"{info.name}/{arrays.GROUP}"):
        raise InputError(f"{store} is damaged: array {info.name!r} no longer exists ({file})")
    disk_info = array_info(file, info.name, read_object(file))
    has_grown = disk_info.dimensions[:1] == (disk_info.growing,) and disk_info.shape[:1] > info.shape[:1]
    shape = (info.shape[0], *disk_info.shape[1:]) if has_grown else disk_info.shape
    for key, array_value, group_value in (
        ("dimensions", disk_info.dimensions, info.dimensions),
        ("shape", shape, info.shape),
        ("type", disk_info.dtype, info.dtype),
        ("chunks", disk_info.chunk, info.chunk),
    ):
        if array_value != group_value:
            raise _contradiction(file, store, key, _text(array_value), _text(group_value))
    check_memory(folder, info.bytes(disk_info.decoded), "a chunk")
    try:
        array = arrays.read(folder)
    except InputError as error:
        raise damaged(file, str(error).removeprefix(f"{folder} cannot be read: ")) from None
    # the loop above compares the shapes; other programs may change the keys in _FREE only in the array file
    mismatch = difference(disk_info.metadata, info.metadata, {"shape"} if complete else {"shape", *_FREE})
    if mismatch is not None:
        raise _contradiction(file, store, *mismatch)
    if complete:
        check_chunks(store, info, rows)
    return array


def difference(
    one: Mapping[str, Any], other: Mapping[str, Any], ignored: Collection[str] = ()
) -> tuple[str, str, str] | None:
    """Return the first differing key of the metadata of two arrays, and both values; None if they agree."""
    one, other = {**_OPTIONAL, **one}, {**_OPTIONAL, **other}
    for key in sorted({*one, *other} - {*ignored}):
        texts = [json.dumps(metadata.get(key), sort_keys=True) for metadata in (one, other)]
        if texts[0] != texts[1]:
            return key, texts[0], texts[1]
    return None


_OPTIONAL: dict[str, Any] = {"attributes": {}, "storage_transformers": []}  # keys that may be missing
_FREE = {"attributes", "dimension_names"}  # keys that may differ between an array and its group


def _contradiction(file: Path, store: Path, key: str, array_value: str, group_value: str) -> InputError:
    return InputError(
        f"{file} has {key} {array_value[:TEXT]}, but {store / arrays.GROUP} has {group_value[:TEXT]}. One of "
        "the files is damaged, or a run is writing to the store. In the latter case, read the store again."
    )


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else "(" + ", ".join(map(str, value)) + ")"


def check_memory(folder: Path, size: int, part: str) -> None:
    """Raise InputError if a part of an array needs more memory than is available.

    Parameters
    ----------
    folder : path
        Folder of the array, for the message.
    size : int
        Memory of the part, in bytes.
    part : str
        Noun phrase that names the part, such as "a chunk".
    """
    if size <= SMALL:
        return
    available = min(native().available_memory(), native().available_to_process())
    if size > available:
        raise InputError(
            f"{folder}: {part} needs {size / 1e9:,.1f} GB of memory, but {available / 1e9:,.1f} GB are "
            "available. Read a smaller part, or check the shape and the chunk shape in "
            f"{folder / arrays.GROUP}"
        )


def check_chunks(store: Path, info: ArrayInfo, rows: tuple[int, int] | None = None) -> None:
    """Raise InputError if the file of a chunk is missing, empty, a link or of another type.

    Parameters
    ----------
    rows : (int, int), optional
        Half-open range of the time indices whose chunks are checked; by default all times.
    """
    folder, lo, hi = store / info.name, [0] * len(info.shape), list(info.shape)
    if rows is not None and info.growing is not None:
        axis = info.dimensions.index(info.growing)
        lo[axis], hi[axis] = rows
    ranges = [range(l // c, -(-h // c)) for l, h, c in zip(lo, hi, info.chunk, strict=True)]
    # one directory listing is enough for all chunks; for a single time, separate lookups are faster
    sizes = {} if rows is not None and rows[1] - rows[0] == 1 else plain_files(folder)
    for numbers in _lattice(ranges):
        file = info.chunk_file(numbers)
        size = sizes.get(file)
        if size is None and not has_file(store, f"{info.name}/{file}"):
            raise _damaged_chunk(folder, info, numbers, hi, "missing")
        if (size if size is not None else (folder / file).stat().st_size) == 0:
            raise _damaged_chunk(folder, info, numbers, hi, "empty")


def _lattice(ranges: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """Yield the Cartesian product of ranges, without a copy of the ranges in memory."""
    if not ranges:
        yield ()
        return
    for first in ranges[0]:
        for later_numbers in _lattice(ranges[1:]):
            yield (first, *later_numbers)


def _damaged_chunk(
    folder: Path, info: ArrayInfo, numbers: Sequence[int], shape: Sequence[int], state: str
) -> InputError:
    """Return the error for a missing or empty chunk; its message names the times of the chunk."""
    rows = ""
    if info.growing is not None:
        axis = info.dimensions.index(info.growing)
        first = numbers[axis] * info.chunk[axis]
        last = min(first + info.chunk[axis], shape[axis]) - 1
        rows = f" ({info.growing} index {first}" + (f" to {last})" if last > first else ")")
    return InputError(
        f"{folder} is damaged: its chunk {info.chunk_file(numbers)} is {state}{rows}. {RESTORE}"
    )


def facts(path: Path) -> dict[str, Any]:
    """Return the facts that Halocline recorded about a store; empty for a store of another program.

    Raises
    ------
    InputError
        The store does not exist.
    """
    return _facts(read_object(path / arrays.GROUP).get("attributes"))


def _facts(attributes: Any) -> dict[str, Any]:
    recorded_facts = attributes.get(FACTS) if isinstance(attributes, dict) else None
    return recorded_facts if isinstance(recorded_facts, dict) else {}


class Store:
    """Group of arrays on disk, for reading.

    The constructor reads the metadata once. Later extensions of the store by a run are therefore not visible.

    Parameters
    ----------
    path : path
    bare : bool
        True if a folder of arrays without a group is accepted.

    Raises
    ------
    InputError
        The group does not exist, or its metadata is damaged.

    Attributes
    ----------
    attributes : dict
    arrays : dict of str to ArrayInfo
        All arrays, including coordinates.
    """

    def __init__(self, path: Path, *, bare: bool = False) -> None:
        self.path = path
        self._opened: dict[str, StoredArray] = {}
        self._checked: set[tuple[str, tuple[int, int] | None]] = set()  # arrays and their checked rows
        group: Any = {}
        if has_file(path, arrays.GROUP):
            group = read_object(path / arrays.GROUP)
            if group.get("node_type") != "group":
                raise InputError(f"{path} is a single array; expected the path of its store")
        elif not bare:
            problem = "no such file or folder" if not path.exists() else "no Zarr store"
            inner_store = max((file.parent for file in path.glob(f"*/{arrays.GROUP}")), default=None)
            hint = "" if inner_store is None else f", such as {inner_store}"
            raise InputError(f"{path}: {problem}; expected the path of an output store or a checkpoint{hint}")
        attributes = group.get("attributes") or {}
        if not isinstance(attributes, dict):
            raise damaged(path / arrays.GROUP, f"its attributes are {attributes!r}; expected an object")
        self.attributes: dict[str, Any] = attributes
        self.arrays = self._arrays(group.get("consolidated_metadata"))
        self._check_arrays()

    def _arrays(self, consolidated: Any) -> dict[str, ArrayInfo]:
        if consolidated is None and self.facts.get("kind") == KIND:
            raise damaged(self.path / arrays.GROUP, "it has no consolidated metadata")
        if consolidated is None:
            files = {file.parent.name: file for file in sorted(self.path.glob(f"*/{arrays.GROUP}"))}
            files = {name: file for name, file in files.items() if is_file(file)}
            metadata_by_name = {name: read_object(file) for name, file in files.items()}
        else:
            file = self.path / arrays.GROUP
            inline = consolidated.get("metadata") if isinstance(consolidated, dict) else None
            if not isinstance(inline, dict) or not all(isinstance(item, dict) for item in inline.values()):
                raise damaged(file, "its consolidated metadata contains entries that are not objects")
            metadata_by_name = inline
            files = dict.fromkeys(metadata_by_name, file)
        return {
            name: array_info(files[name], name, metadata)
            for name, metadata in metadata_by_name.items()
            if metadata.get("node_type") != "group"
        }

    def _check_arrays(self) -> None:
        """Raise InputError if a Halocline store lacks an array, or if sizes along a dimension differ."""
        if not self.facts:
            return
        contents = self.facts.get("contents")
        parts = [contents.get(key) for key in ("arrays", "coordinates")] if isinstance(contents, dict) else []
        facts_by_name = [part for part in (self._fields, *parts) if isinstance(part, dict)]
        # a new group has no arrays until its run creates them
        missing_arrays = (
            {name for part in facts_by_name for name in part} - {*self.arrays} if self.arrays else set()
        )
        for info in self.arrays.values():
            missing_arrays |= {*str(info.attributes.get("coordinates", "")).split()} - {*self.arrays}
        if missing_arrays:
            raise damaged(self.path / arrays.GROUP, f"it lacks array {min(missing_arrays)!r}")
        first_array: dict[str, ArrayInfo] = {}
        for info in self.arrays.values():
            for dimension in info.dimensions:
                other = first_array.setdefault(dimension, info)
                if self.is_coordinate(dimension):
                    self._check_count(info, dimension, self.arrays[dimension].shape)
                elif other.count(dimension) != info.count(dimension):
                    raise damaged(
                        self.path / arrays.GROUP,
                        f"array {info.name!r} has {info.count(dimension)} points along {dimension}, and "
                        f"{other.name!r} has {other.count(dimension)}",
                    )

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that Halocline recorded; empty for a store of another program."""
        return _facts(self.attributes)

    @property
    def variables(self) -> dict[str, ArrayInfo]:
        """Arrays other than coordinates."""
        return {name: info for name, info in self.arrays.items() if not self.is_coordinate(name)}

    def is_coordinate(self, name: str) -> bool:
        """Return whether the array of this name exists and contains coordinates of points or times."""
        info = self.arrays.get(name)
        if info is None or name in self._fields:  # a field of a checkpoint may have the name of an axis
            return False
        return name in GROWING or info.dimensions == (name,) or "axis" in info.attributes

    @property
    def results(self) -> list[str]:
        """Names of the variables, except work arrays of the program, such as the arrays of its scheme."""
        return [name for name in self.variables if not self._fields.get(name, {}).get("work")]

    @property
    def _fields(self) -> dict[str, dict[str, Any]]:
        """Facts of the fields of a checkpoint."""
        fields = self.facts.get("fields")
        return fields if isinstance(fields, dict) else {}

    @property
    def axis(self) -> str | None:
        """Dimension along which the store grows, "time" or "step"; None for a store that does not grow."""
        dimensions = {info.growing for info in self.arrays.values()}
        return next((dimension for dimension in GROWING if dimension in dimensions), None)

    @property
    def times(self) -> NDArray[np.float64] | None:
        """Simulated times or steps; None for a store without times.

        If the store has no such coordinates, the values are 0, 1, 2 and so on.
        """
        line = None if self.axis is None else self._line(self.axis)
        if line is not None:
            return line.astype(np.float64)
        growing = [info for info in self.arrays.values() if info.is_timed]
        return self._numbers(growing[0], str(growing[0].growing)) if growing else None

    @property
    def steps(self) -> NDArray[np.int64] | None:
        """Step at each output time; None for a store without steps."""
        return self._line(STEP)

    def coordinates(self, dimension: str, info: ArrayInfo) -> NDArray[np.float64]:
        """Return the coordinates of an array along a dimension; 0, 1, 2 and so on if the store has none.

        Raises
        ------
        InputError
            The numbers of coordinates and points differ, or the coordinates are damaged.
        """
        line = self._line(dimension)
        if line is None:
            return self._numbers(info, dimension)
        self._check_count(info, dimension, line.shape)
        return line

    def _check_count(self, info: ArrayInfo, dimension: str, shape: tuple[int, ...]) -> None:
        """Raise InputError if coordinates and array have different numbers of points along a dimension."""
        if shape != (info.count(dimension),):
            raise InputError(
                f"{self.path} is damaged: array {info.name!r} has {info.count(dimension)} points along "
                f"{dimension}, which has {' x '.join(map(str, shape))} coordinates"
            )

    def open(self, name: str, time: int | None = None) -> StoredArray:
        """Open an array for reading.

        Parameters
        ----------
        name : str
        time : int, optional
            Index of the time to read. The method then checks only the chunks of this time. By default, it
            checks all chunks.

        Raises
        ------
        InputError
            The array is missing or incomplete, or its metadata differs from that of the store.
        """
        info, is_complete = self.arrays[name], bool(self.facts)
        rows = None if time is None or not info.is_timed else (time, time + 1)
        if name not in self._opened:
            self._opened[name] = open_array(self.path, info, complete=is_complete, rows=rows)
        elif is_complete and self._checked.isdisjoint({(name, None), (name, rows)}):
            check_chunks(self.path, info, rows)
        self._checked.add((name, rows))
        return self._opened[name]

    def read(
        self,
        name: str,
        time: int | None = None,
        lo: Sequence[int] | None = None,
        hi: Sequence[int] | None = None,
    ) -> NDArray[Any]:
        """Return the values of an array at one time.

        Parameters
        ----------
        name : str
        time : int, optional
            Index of the time; by default the last time. For arrays without times, this argument has no
            effect.
        lo, hi : sequence of int, optional
            Half-open range of indices along each axis except time; by default all indices.

        Raises
        ------
        InputError
            The time does not exist yet, or a chunk is missing or damaged.
        """
        info = self.arrays[name]
        if not info.is_timed:
            return self._read(info, lo or (0,) * len(info.shape), info.shape if hi is None else hi)
        if info.dimensions[0] != info.growing:
            raise InputError(
                f"{self.path / name} has axes {', '.join(info.dimensions)}; expected {info.growing} as the "
                "first axis"
            )
        count, *space = info.shape
        if time is None:
            time = count - 1
        if not 0 <= time < count:
            raise InputError(
                f"{self.path / name} contains {count} output times so far. Index {max(time, 0)} does not "
                "exist yet. Read the array again later."
            )
        lo, hi = lo or (0,) * len(space), space if hi is None else hi
        values: NDArray[Any] = self._read(info, (time, *lo), (time + 1, *hi), time)[0]
        return values

    def read_all(self, name: str) -> NDArray[Any]:
        """Return all values of an array, at all times.

        Raises
        ------
        InputError
            A chunk is missing or damaged.
        """
        info = self.arrays[name]
        return self._read(info, (0,) * len(info.shape), info.shape)

    def _read(
        self, info: ArrayInfo, lo: Sequence[int], hi: Sequence[int], time: int | None = None
    ) -> NDArray[Any]:
        array, folder = self.open(info.name, time), self.path / info.name
        shape = [h - l for l, h in zip(lo, hi, strict=True)]
        check_memory(folder, info.bytes(shape) + info.bytes(info.decoded), "the part to be read")
        missing_chunks = [] if self.facts else self._missing(info, lo, hi)
        values = array.read(lo, hi)
        for chunk, box in missing_chunks:
            if values.dtype.kind == "f" and np.isnan(values[box]).all():
                raise InputError(
                    f"{folder} is damaged: its chunk {chunk} is missing. "
                    "The file was removed, or it was not written because all of its values are nan"
                )
        return values

    def _missing(
        self, info: ArrayInfo, lo: Sequence[int], hi: Sequence[int]
    ) -> list[tuple[str, tuple[slice, ...]]]:
        """Return the names of missing chunk files, each with the index range of its chunk in the values.

        Other programs do not write chunks that contain only the fill value. A read returns the fill value for
        these chunks.
        """
        sides, missing_chunks = list(zip(lo, hi, info.chunk, strict=True)), []
        for numbers in product(*(range(l // c, -(-h // c)) for l, h, c in sides)):
            if not has_file(self.path / info.name, file := info.chunk_file(numbers)):
                box = tuple(
                    slice(max(n * c, l) - l, min((n + 1) * c, h) - l)
                    for n, (l, h, c) in zip(numbers, sides, strict=True)
                )
                missing_chunks.append((file, box))
        return missing_chunks

    def _numbers(self, info: ArrayInfo, dimension: str) -> NDArray[np.float64]:
        """Return 0, 1, 2 and so on as the coordinates of a dimension without coordinates.

        Raises
        ------
        InputError
            Halocline wrote the store with coordinates, but these coordinates are lost.
        """
        # if a field of a checkpoint has the name of an axis, the axis has no coordinates
        if self.facts and dimension != POINT and dimension not in self._fields:
            raise damaged(self.path / arrays.GROUP, f"it lacks the coordinates {dimension!r}")
        count = info.count(dimension)
        check_memory(self.path / info.name, 8 * count, "a line of coordinates")
        return np.arange(count, dtype=np.float64)

    def _line(self, name: str) -> NDArray[Any] | None:
        if not self.is_coordinate(name) or len(self.arrays[name].shape) != 1:
            return None
        return self.read_all(name)


def array_at(path: Path) -> tuple[Store, ArrayInfo]:
    """Return the store and the description of an array by its path, such as "heat.zarr/T".

    Raises
    ------
    InputError
        The array does not exist, or its metadata is damaged.
    """
    if os.path.islink(path) and not is_file(path.parent / arrays.GROUP):
        path = path.resolve()  # the link is not in a store, but its target may be in one
    file = path / arrays.GROUP
    if not is_file(file):  # names in a store are normalized like Python identifiers
        file = path.parent / as_name(path.name, "array name") / arrays.GROUP
        path = file.parent if is_file(file) else path
    if not is_file(file):
        array_names = ", ".join(sorted(inner.parent.name for inner in path.parent.glob(f"*/{arrays.GROUP}")))
        raise InputError(
            f"there is no array {path}" + (f"; {path.parent} contains {array_names}" if array_names else "")
        )
    metadata = read_object(file)
    if metadata.get("node_type") == "group":
        array_names = ", ".join(sorted(inner.parent.name for inner in path.glob(f"*/{arrays.GROUP}")))
        raise InputError(
            f"{path} is a store; expected the path of one of its arrays, {path}/NAME: {array_names}"
        )
    store = Store(path.parent, bare=True)
    # the consolidated metadata of a group lacks an array that was added later
    info = store.arrays.setdefault(path.name, array_info(file, path.name, metadata))
    return store, info


def folder_bytes(folder: Path) -> int:
    """Return the total size of the files in a folder, in bytes.

    Files that a run removes during the call do not count.
    """
    total = 0
    for inner, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(inner, name).stat().st_size
    return total
