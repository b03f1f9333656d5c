"""Descriptions of the arrays of a store, and checks that the files of an array match its description."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from halocline.archive import arrays
from halocline.archive.arrays import StoredArray
from halocline.archive.files import has_file, plain_files, read_object
from halocline.errors import InputError
from halocline.native import native

TIME, STEP = "time", "step"  # dimensions that arrays grow along; STEP where the program has no time
GROWING = (TIME, STEP)
POINT = "point"  # the dimension of values at single points
UNNAMED = "axis"  # start of the name of an axis without a name; a number follows
RESTORE = "restore the file from a copy of the store"
SMALL = 256 << 20  # largest read, in bytes, that needs no check of the available memory
TEXT = 200  # longest text of metadata in a message, in characters


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
        Start of the names of chunk files, and the separator of the numbers in them.
    metadata : mapping
        Content of its `zarr.json`.
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
        """Units of the values; empty where they are not known."""
        return str(self.attributes.get("units", ""))

    @property
    def space(self) -> tuple[str, ...]:
        """Dimensions without the one that grows."""
        return tuple(dimension for dimension in self.dimensions if dimension != self.growing)

    @property
    def growing(self) -> str | None:
        """Dimension that a run appends along, "time" or "step"; None for an array without one."""
        return next((dimension for dimension in GROWING if dimension in self.dimensions), None)

    @property
    def is_timed(self) -> bool:
        """True for an array with values at several times, or after several steps."""
        return self.growing is not None

    @property
    def times(self) -> int:
        """Number of times; 1 for an array that does not grow."""
        return 1 if self.growing is None else self.count(self.growing)

    @property
    def is_points(self) -> bool:
        """True for values at single points, which lie on no grid."""
        return self.space == (POINT,)

    def count(self, dimension: str) -> int:
        """Return the number of elements along a dimension."""
        return self.shape[self.dimensions.index(dimension)]

    def bytes(self, shape: Sequence[int]) -> int:
        """Return the memory that elements of a shape need, in bytes."""
        try:
            return prod(shape) * np.dtype(self.dtype).itemsize
        except (TypeError, ValueError):  # a type that NumPy does not have, and TensorStore reads or rejects
            return prod(shape) * 8

    @property
    def is_real(self) -> bool:
        """True for real numbers of a type that NumPy has."""
        return self.dtype == "bool" or self.dtype.rstrip("0123456789") in ("float", "int", "uint")

    @property
    def decoded(self) -> tuple[int, ...]:
        """Shape of the smallest part that can be read: a chunk, or an inner chunk of a shard."""
        for codec in self.metadata.get("codecs") or ():
            if isinstance(codec, dict) and codec.get("name") == "sharding_indexed":
                return _counts("inner chunk shape", codec["configuration"]["chunk_shape"], 1)
        return self.chunk

    def chunk_file(self, numbers: Sequence[int]) -> str:
        """Return the name of the file that holds a chunk, in the folder of the array."""
        prefix, separator = self.key
        return separator.join([*([prefix] if prefix else []), *map(str, numbers)]) or "0"


def array_info(file: Path, name: str, metadata: dict[str, Any]) -> ArrayInfo:
    """Return the description of an array from its metadata.

    Parameters
    ----------
    file : path
        File that holds the metadata; messages name it.

    Raises
    ------
    InputError
        The metadata is damaged, or the name leads out of the store.
    """
    location = PurePosixPath(name)
    if location.is_absolute() or ".." in location.parts or not location.parts:
        raise InputError(f"{file} names an array {name!r}: expected a name that stays in the store")
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
        info = ArrayInfo(
            name,
            tuple(f"{UNNAMED}{n}" if not axis_name else str(axis_name) for n, axis_name in enumerate(names)),
            shape,
            str(metadata["data_type"]),
            chunk,
            dict(metadata.get("attributes") or {}),
            (prefix, str(encoding.get("configuration", {}).get("separator", separator))),
            metadata,
        )
        _ = info.decoded
    except KeyError as error:
        raise damaged(file, f"array {name!r} has no {error}") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise damaged(file, f"array {name!r}: {error}") from None
    return info


def _counts(name: str, value: Any, minimum: int) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(n) is int and n >= minimum for n in value):
        raise ValueError(f"its {name} is {value!r}; expected numbers from {minimum} on")
    return tuple(value)


def damaged(file: Path, reason: str) -> InputError:
    """Return the error for a file that Halocline cannot interpret."""
    return InputError(f"{file} is damaged, or of a kind that Halocline does not read: {reason}")


def open_array(
    store: Path, info: ArrayInfo, *, complete: bool, rows: tuple[int, int] | None = None
) -> StoredArray:
    """Open an array of a store for reading.

    Parameters
    ----------
    store : path
    info : ArrayInfo
        The array as the group of the store describes it.
    complete : bool
        True for an array that Halocline wrote: every chunk is stored, and the group repeats all of its
        metadata. Other programs leave out chunks whose elements all have the fill value.
    rows : (int, int), optional
        Half-open range of times whose chunks are checked; by default all times.

    Raises
    ------
    InputError
        A file is missing or is a link. The metadata of the array differs from that of the group. A chunk
        needs more memory than is available.
    """
    folder = store / info.name
    file = folder / arrays.GROUP
    if not has_file(store, f"{info.name}/{arrays.GROUP}"):
        raise InputError(f"{store} is damaged: array {info.name!r} is not there any more ({file})")
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
    # the loop above compares the shape; other programs may change the keys of _FREE in the array alone
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


_OPTIONAL: dict[str, Any] = {"attributes": {}, "storage_transformers": []}  # keys that may be left out
_FREE = {"attributes", "dimension_names"}  # keys that may differ between an array and its group


def _contradiction(file: Path, store: Path, key: str, array_value: str, group_value: str) -> InputError:
    return InputError(
        f"{file} says {key} {array_value[:TEXT]}, but {store / arrays.GROUP} says {group_value[:TEXT]}: one "
        "of them is damaged, or a run is writing to the store; then read it again"
    )


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else "(" + ", ".join(map(str, value)) + ")"


def check_memory(folder: Path, size: int, part: str) -> None:
    """Raise InputError where a part of an array needs more memory than is available.

    Parameters
    ----------
    folder : path
        Folder of the array; the message names it.
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
            f"available: read a smaller part, or check the shape and the chunk shape in "
            f"{folder / arrays.GROUP}"
        )


def check_chunks(store: Path, info: ArrayInfo, rows: tuple[int, int] | None = None) -> None:
    """Raise InputError where the file of a chunk is missing, empty, a link or of another type.

    Parameters
    ----------
    rows : (int, int), optional
        Half-open range of times whose chunks are checked; by default all times.
    """
    folder, lo, hi = store / info.name, [0] * len(info.shape), list(info.shape)
    if rows is not None and info.growing is not None:
        axis = info.dimensions.index(info.growing)
        lo[axis], hi[axis] = rows
    ranges = [range(l // c, -(-h // c)) for l, h, c in zip(lo, hi, info.chunk, strict=True)]
    # one listing serves all chunks; for a single time, looking up its own chunks is faster
    sizes = {} if rows is not None and rows[1] - rows[0] == 1 else plain_files(folder)
    for numbers in _lattice(ranges):
        file = info.chunk_file(numbers)
        size = sizes.get(file)
        if size is None and not has_file(store, f"{info.name}/{file}"):
            raise _damaged_chunk(folder, info, numbers, hi, "missing")
        if (size if size is not None else (folder / file).stat().st_size) == 0:
            raise _damaged_chunk(folder, info, numbers, hi, "empty")


def _lattice(ranges: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """Yield the Cartesian product of ranges, without holding the ranges in memory."""
    if not ranges:
        yield ()
        return
    for first in ranges[0]:
        for rest in _lattice(ranges[1:]):
            yield (first, *rest)


def _damaged_chunk(
    folder: Path, info: ArrayInfo, numbers: Sequence[int], shape: Sequence[int], state: str
) -> InputError:
    """Return the error for a missing or empty chunk; its message names the times of the chunk."""
    rows = ""
    if info.growing is not None:
        axis = info.dimensions.index(info.growing)
        first = numbers[axis] * info.chunk[axis]
        last = min(first + info.chunk[axis], shape[axis]) - 1
        rows = f", with {info.growing} number {first}" + (f" to {last}" if last > first else "")
    return InputError(
        f"{folder} is damaged: its chunk {info.chunk_file(numbers)} is {state}{rows}: {RESTORE}"
    )
