"""Reader of stores on disk: output, checkpoints, and stores of other programs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.archive import arrays
from halocline.archive.arrays import StoredArray
from halocline.archive.files import has_file, is_file, read_object
from halocline.archive.integrity import (
    GROWING,
    POINT,
    STEP,
    ArrayInfo,
    array_info,
    check_chunks,
    check_memory,
    damaged,
    open_array,
)
from halocline.errors import InputError
from halocline.lang.values import as_name

FACTS = "halocline"  # attribute of a group with the facts that Halocline records
KIND = "output"


def facts(path: Path) -> dict[str, Any]:
    """Return the facts that Halocline recorded of a store; empty for a store of another program.

    Raises
    ------
    InputError
        There is no store.
    """
    return _facts(read_object(path / arrays.GROUP).get("attributes"))


def _facts(attributes: Any) -> dict[str, Any]:
    known = attributes.get(FACTS) if isinstance(attributes, dict) else None
    return known if isinstance(known, dict) else {}


class Store:
    """Group of arrays on disk, for reading.

    The metadata is read once, so that a store that a run extends does not change for its reader.

    Parameters
    ----------
    path : path
    bare : bool
        Whether a folder of arrays without a group is accepted.

    Raises
    ------
    InputError
        There is no group, or its metadata is damaged.

    Attributes
    ----------
    attributes : dict
    arrays : dict of str to ArrayInfo
        All arrays, including coordinates.
    """

    def __init__(self, path: Path, *, bare: bool = False) -> None:
        self.path = path
        self._opened: dict[str, StoredArray] = {}
        self._checked: set[tuple[str, tuple[int, int] | None]] = set()  # arrays, and rows with all chunks
        group: Any = {}
        if has_file(path, arrays.GROUP):
            group = read_object(path / arrays.GROUP)
            if group.get("node_type") != "group":
                raise InputError(f"{path} is a single array; give the store that it belongs to")
        elif not bare:
            problem = "no such file or folder" if not path.exists() else "no Zarr store"
            inner_store = max((file.parent for file in path.glob(f"*/{arrays.GROUP}")), default=None)
            hint = "" if inner_store is None else f", such as {inner_store} in it"
            raise InputError(f"{path}: {problem}; expected the path of output or of a checkpoint{hint}")
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
            known = {name: read_object(file) for name, file in files.items()}
        else:
            file = self.path / arrays.GROUP
            inline = consolidated.get("metadata") if isinstance(consolidated, dict) else None
            if not isinstance(inline, dict) or not all(isinstance(item, dict) for item in inline.values()):
                raise damaged(file, "its consolidated metadata holds no objects")
            known = inline
            files = dict.fromkeys(known, file)
        return {
            name: array_info(files[name], name, metadata)
            for name, metadata in known.items()
            if metadata.get("node_type") != "group"
        }

    def _check_arrays(self) -> None:
        """Raise InputError where a store of Halocline lacks an array or two arrays differ in their points."""
        if not self.facts:
            return
        contents = self.facts.get("contents")
        parts = [contents.get(key) for key in ("arrays", "coordinates")] if isinstance(contents, dict) else []
        known = [part for part in (self._fields, *parts) if isinstance(part, dict)]
        # a new group has no arrays until its run creates them
        missing = {name for part in known for name in part} - {*self.arrays} if self.arrays else set()
        for info in self.arrays.values():
            missing |= {*str(info.attributes.get("coordinates", "")).split()} - {*self.arrays}
        if missing:
            raise damaged(self.path / arrays.GROUP, f"it lacks array {min(missing)!r}")
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
        """Arrays that are no coordinates."""
        return {name: info for name, info in self.arrays.items() if not self.is_coordinate(name)}

    def is_coordinate(self, name: str) -> bool:
        """Return whether there is an array of this name that holds coordinates of points or times."""
        info = self.arrays.get(name)
        if info is None or name in self._fields:  # a field of a checkpoint may have the name of an axis
            return False
        return name in GROWING or info.dimensions == (name,) or "axis" in info.attributes

    @property
    def results(self) -> list[str]:
        """Names of the variables, without the work arrays of a program such as those of its scheme."""
        return [name for name in self.variables if not self._fields.get(name, {}).get("work")]

    @property
    def _fields(self) -> dict[str, dict[str, Any]]:
        """Facts of the fields of a checkpoint."""
        fields = self.facts.get("fields")
        return fields if isinstance(fields, dict) else {}

    @property
    def axis(self) -> str | None:
        """Dimension that the store grows along, "time" or "step"; None for a store without one."""
        dimensions = {info.growing for info in self.arrays.values()}
        return next((dimension for dimension in GROWING if dimension in dimensions), None)

    @property
    def times(self) -> NDArray[np.float64] | None:
        """Simulated times, or steps; numbers from 0 on where the store has no such coordinates; None for a
        store without times."""
        line = None if self.axis is None else self._line(self.axis)
        if line is not None:
            return line.astype(np.float64)
        growing = [info for info in self.arrays.values() if info.is_timed]
        return self._numbers(growing[0], str(growing[0].growing)) if growing else None

    @property
    def steps(self) -> NDArray[np.int64] | None:
        """Steps of the times."""
        return self._line(STEP)

    def coordinates(self, dimension: str, info: ArrayInfo) -> NDArray[np.float64]:
        """Return the coordinates of an array along a dimension; numbers from 0 on where the store has none.

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
        """Raise InputError where the shape of coordinates is not that of an array along a dimension."""
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
            Number of the only time to read, whose chunks are checked; by default all chunks are checked.

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
            Number of the time, by default the last one. Arrays without times ignore it.
        lo, hi : sequence of int, optional
            Indices along the axes without time, from `lo` up to `hi`; by default all.

        Raises
        ------
        InputError
            There is no such time yet, or a chunk is missing or damaged.
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
        values: NDArray[Any] = self._read(info, (time, *lo), (time + 1, *hi), time)[0]
        return values

    def whole(self, name: str) -> NDArray[Any]:
        """Return all values of an array, at all times.

        Raises
        ------
        InputError
            A chunk is missing or damaged.
        """
        info = self.arrays[name]
        return self._read(info, (0,) * len(info.shape), info.shape)

    def bytes(self, name: str) -> int:
        """Return the size of an array on disk, in bytes."""
        return folder_bytes(self.path / name)

    def _read(
        self, info: ArrayInfo, lo: Sequence[int], hi: Sequence[int], time: int | None = None
    ) -> NDArray[Any]:
        array, folder = self.open(info.name, time), self.path / info.name
        shape = [h - l for l, h in zip(lo, hi, strict=True)]
        check_memory(folder, info.bytes(shape) + info.bytes(info.decoded), "the part to be read")
        missing = [] if self.facts else self._missing(info, lo, hi)
        values = array.read(lo, hi)
        for chunk, box in missing:
            if values.dtype.kind == "f" and np.isnan(values[box]).all():
                raise InputError(
                    f"{folder} is damaged: its chunk {chunk} is missing. "
                    "It was removed, or never written because all of its values were nan"
                )
        return values

    def _missing(
        self, info: ArrayInfo, lo: Sequence[int], hi: Sequence[int]
    ) -> list[tuple[str, tuple[slice, ...]]]:
        """Return the chunk files that another program did not store, with their boxes in the values.

        Such chunks read as the fill value of the array.
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
        """Return the numbers from 0 on, as coordinates of a dimension that has none.

        Raises
        ------
        InputError
            Halocline wrote the store with coordinates, and they are lost.
        """
        # where a field of a checkpoint has the name of an axis, the axis has no coordinates
        if self.facts and dimension != POINT and dimension not in self._fields:
            raise damaged(self.path / arrays.GROUP, f"it lacks the coordinates {dimension!r}")
        count = info.count(dimension)
        check_memory(self.path / info.name, 8 * count, "a line of coordinates")
        return np.arange(count, dtype=np.float64)

    def _line(self, name: str) -> NDArray[Any] | None:
        if not self.is_coordinate(name) or len(self.arrays[name].shape) != 1:
            return None
        return self.whole(name)


def array_at(path: Path) -> tuple[Store, ArrayInfo]:
    """Return the store and the description of an array by its path, such as "heat.zarr/T".

    Raises
    ------
    InputError
        There is no array, or its metadata is damaged.
    """
    if os.path.islink(path) and not is_file(path.parent / arrays.GROUP):
        path = path.resolve()  # the link lies in no store, but its target may
    file = path / arrays.GROUP
    if not is_file(file):  # stores have the names of fields, as Python has identifiers
        file = path.parent / as_name(path.name, "array name") / arrays.GROUP
        path = file.parent if is_file(file) else path
    if not is_file(file):
        known = ", ".join(sorted(each.parent.name for each in path.parent.glob(f"*/{arrays.GROUP}")))
        raise InputError(f"there is no array {path}" + (f"; {path.parent} has {known}" if known else ""))
    metadata = read_object(file)
    if metadata.get("node_type") == "group":
        known = ", ".join(sorted(each.parent.name for each in path.glob(f"*/{arrays.GROUP}")))
        raise InputError(f"{path} is a store; give the path of one of its arrays, {path}/NAME: {known}")
    store = Store(path.parent, bare=True)
    # a group whose metadata was consolidated before the array was added does not know it
    info = store.arrays.setdefault(path.name, array_info(file, path.name, metadata))
    return store, info


def folder_bytes(folder: Path) -> int:
    """Return the size of all files in a folder, in bytes, without files that a run removes meanwhile."""
    total = 0
    for inner, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(inner, name).stat().st_size
    return total
