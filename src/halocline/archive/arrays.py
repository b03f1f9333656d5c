"""Arrays on disk in chunks: Zarr version 3, read and written by TensorStore."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline import forks
from halocline.archive.files import check_text
from halocline.errors import InputError, RunError

if TYPE_CHECKING:
    from numpy.typing import NDArray

GROUP = "zarr.json"  # the metadata of a group or array
# lossless; the shuffle of bytes lets Zstandard see that exponents hardly change
COMPRESSION = {"name": "blosc", "configuration": {
    "cname": "zstd", "clevel": 1, "shuffle": "shuffle", "blocksize": 0,
}}  # fmt: skip
COMPRESSIONS = ("zstd", "none")


def _tensorstore() -> Any:
    """Return the module of TensorStore, which is slow to import.

    Raises
    ------
    KeyboardInterrupt
        A signal has ended the import. The module itself raises ImportError then.
    """
    try:
        import tensorstore
    except ImportError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise
    return tensorstore


def context(threads: int, *, sync: bool = True) -> Any:
    """Return the threads that compress and write chunks, as many of each kind.

    Parameters
    ----------
    sync : bool
        Whether a chunk is on disk when its write is done, also if the machine fails.
    """
    tensorstore = _tensorstore()
    limits = {name: {"limit": threads} for name in ("data_copy_concurrency", "file_io_concurrency")}
    rest = {"cache_pool": {"total_bytes_limit": 0}, "file_io_sync": sync}
    return tensorstore.Context({**limits, **rest})


@dataclass(frozen=True)
class ArraySpec:
    """Description of an array that Halocline writes.

    Parameters
    ----------
    shape, chunk : tuple of int
    dtype : str
    dimensions : tuple of str
        Names of the axes.
    attributes : mapping
        For JSON.
    compression : {"zstd", "none"}
        Both are lossless. Every chunk carries a CRC-32C.
    """

    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    dtype: str
    dimensions: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    compression: str = "zstd"

    @property
    def row_size(self) -> int:
        """Numbers of one time, where the first axis grows."""
        return prod(self.shape[1:])

    @property
    def metadata(self) -> dict[str, Any]:
        """Content of the file `zarr.json` of Zarr."""
        import numpy as np

        codecs: list[dict[str, Any]] = [{"name": "bytes", "configuration": {"endian": "little"}}]
        if self.compression == "zstd":
            size = np.dtype(self.dtype).itemsize
            settings = {**COMPRESSION["configuration"], "typesize": size}  # type: ignore[dict-item]
            codecs.append({"name": COMPRESSION["name"], "configuration": settings})
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": self.dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(self.chunk)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": "NaN" if self.dtype.startswith("float") else 0,
            "codecs": [*codecs, {"name": "crc32c"}],
            "dimension_names": list(self.dimensions),
            "attributes": dict(self.attributes),
        }


def narrowed(values: NDArray[Any], dtype: str) -> tuple[NDArray[Any], int]:
    """Return values in another precision, and the number of finite values that became infinite."""
    import numpy as np

    values = np.asarray(values)
    if values.dtype == dtype:
        return values, 0
    with np.errstate(over="ignore"):
        converted = values.astype(dtype)
    infinite = np.isinf(converted)
    return converted, int(np.count_nonzero(np.isfinite(values[infinite]))) if infinite.any() else 0


def group_metadata(attributes: Mapping[str, Any], specs: Mapping[str, ArraySpec]) -> dict[str, Any]:
    """Return the content of `zarr.json` of a group, which repeats the metadata of its arrays.

    Parameters
    ----------
    attributes : mapping
        Attributes of the group, for JSON.
    specs : mapping of str to ArraySpec
        Arrays of the group, by name.
    """
    return {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": dict(attributes),
        "consolidated_metadata": {
            "kind": "inline",
            "must_understand": False,
            "metadata": {name: spec.metadata for name, spec in specs.items()},
        },
    }


class StoredArray:
    """An array on disk.

    Parameters
    ----------
    handle : tensorstore.TensorStore
    """

    def __init__(self, handle: Any, folder: Path) -> None:
        self._handle, self.folder = handle, folder

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each axis."""
        return tuple(self._handle.shape)

    def write(self, lo: Sequence[int], values: NDArray[Any]) -> Any:
        """Begin to write values, which must not change any more, from the element `lo` on.

        Returns
        -------
        future
            Its method `done` returns whether the write has ended. Its method `result` waits until the values
            are on disk, and raises ValueError or OSError where they cannot be written.
        """
        there = tuple(slice(l, l + n) for l, n in zip(lo, values.shape, strict=True))
        return self._handle[there].write(values, can_reference_source_data_indefinitely=True)

    def put(self, lo: Sequence[int], values: NDArray[Any]) -> None:
        """Write values from the element `lo` on, and wait until the write has ended.

        Raises
        ------
        RunError
            The values cannot be written.
        """
        try:
            self.write(lo, values).result()
        except (ValueError, OSError) as error:
            if "Error reading" in str(error):  # TensorStore reads a chunk first to keep its other elements
                raise RunError(
                    f"{self.folder} is damaged, and nothing was written to it: {_cause(error)}: restore the "
                    "file from a copy of the store, or choose another path"
                ) from None
            raise RunError(f"{self.folder} cannot be written: {why_not_written(error)}") from None

    def read(self, lo: Sequence[int], hi: Sequence[int]) -> NDArray[Any]:
        """Return the elements from the index `lo` up to `hi`.

        Raises
        ------
        InputError
            A chunk is damaged or cannot be read.
        """
        try:
            values: NDArray[Any] = self._handle[tuple(map(slice, lo, hi))].read().result()
        except ValueError as error:
            raise InputError(f"{self.folder} is damaged: {_cause(error)}") from None
        return values


def create(folder: Path, spec: ArraySpec, threads: Any = None) -> StoredArray:
    """Create an array without values; `threads` of `context` write to it.

    Raises
    ------
    RunError
        The folder cannot be written to.
    """
    return _opened(folder, threads, metadata=spec.metadata, create=True)


def create_all(
    folder: Path, specs: Mapping[str, ArraySpec], fixed: Mapping[str, tuple[ArraySpec, NDArray[Any]]]
) -> None:
    """Create the arrays of a store, which no reader sees before the metadata of the group is written.

    Parameters
    ----------
    folder : path
        Folder of the store.
    specs : mapping of str to ArraySpec
        Arrays that receive their values later.
    fixed : mapping of str to (ArraySpec, array)
        Arrays with their values, such as coordinates.

    Raises
    ------
    RunError
        An array cannot be written.
    """
    for name, spec in specs.items():
        create(folder / name, spec)
    for name, (spec, values) in fixed.items():
        create(folder / name, spec).put((0,) * values.ndim, values)


def attach(folder: Path, spec: ArraySpec, threads: Any = None) -> StoredArray:
    """Open an array for writing that exists, and whose description is known."""
    return _opened(folder, threads, metadata=spec.metadata, open=True, assume_metadata=True)


def read(folder: Path) -> StoredArray:
    """Open an array for reading.

    Raises
    ------
    InputError
        There is no array, or its metadata is damaged.
    """
    try:
        return _opened(folder, None, open=True, read=True)
    except RunError as error:
        raise InputError(str(error)) from None


def _opened(folder: Path, threads: Any, metadata: Mapping[str, Any] | None = None, **how: Any) -> StoredArray:
    tensorstore = _tensorstore()
    check_text(folder)
    forks.claim(forks.STORES)
    spec: dict[str, Any] = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{folder.resolve()}/"},
        "store_data_equal_to_fill_value": True,  # a missing chunk was lost
    }
    if metadata is not None:
        spec["metadata"] = metadata
    context = {} if threads is None else {"context": threads}
    try:
        return StoredArray(tensorstore.open(spec, **how, **context).result(), folder)
    except ValueError as error:
        done = "read" if metadata is None else "written"
        raise RunError(f"{folder} cannot be {done}: {why_not_written(error)}") from None


def _cause(error: Exception) -> str:
    """Return the message of an error of TensorStore, without the specification of the store."""
    text = re.sub(r" \[(tensorstore_spec|source locations)=.*", "", str(error), flags=re.DOTALL)
    return text.partition(": ")[2] or text


def why_not_written(error: Exception) -> str:
    """Return the cause of a failed write in words."""
    known = re.search(
        r"(No space left on device|Permission denied|Disk quota exceeded|Input/output error)", str(error)
    )
    return known[1] if known else _cause(error)
