"""Chunked arrays on disk in Zarr version 3, with TensorStore for reads and for writes in the background."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from halocline import forks
from halocline.archive.files import check_text
from halocline.errors import InputError, RunError

if TYPE_CHECKING:
    from numpy.typing import NDArray

GROUP = "zarr.json"  # name of the metadata file of a group or array
# lossless; the byte shuffle places the exponents of all numbers next to each other, and Zstandard compresses
# these similar bytes well
COMPRESSION = {"name": "blosc", "configuration": {
    "cname": "zstd", "clevel": 1, "shuffle": "shuffle", "blocksize": 0,
}}  # fmt: skip
COMPRESSIONS = ("zstd", "none")


def _tensorstore() -> Any:
    """Import TensorStore on first use, because the import is slow, and return the module.

    Raises
    ------
    KeyboardInterrupt
        A signal ended the import. The module itself raises ImportError in this case.
    """
    try:
        import tensorstore
    except ImportError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise
    return tensorstore


def context(threads: int, *, sync: bool = True) -> Any:
    """Return a TensorStore context with threads that compress chunks and threads that write them.

    Parameters
    ----------
    threads : int
        Number of threads of each kind.
    sync : bool
        True if a completed write survives a machine failure.
    """
    tensorstore = _tensorstore()
    limits = {name: {"limit": threads} for name in ("data_copy_concurrency", "file_io_concurrency")}
    settings = {"cache_pool": {"total_bytes_limit": 0}, "file_io_sync": sync}
    return tensorstore.Context({**limits, **settings})


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
        Attributes in JSON form.
    compression : {"zstd", "none"}
        Compression of the chunks. Both choices are lossless. Every chunk has a CRC-32C checksum.
    """

    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    dtype: str
    dimensions: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    compression: str = "zstd"

    @property
    def row_size(self) -> int:
        """Number of elements at each output time, for an array whose first axis is time."""
        return prod(self.shape[1:])

    @property
    def metadata(self) -> dict[str, Any]:
        """Content of the file `zarr.json`."""
        import numpy as np  # imported on use, because processes without arrays import this module too

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
    """Return the content of the file `zarr.json` of a group.

    This file repeats the metadata of all arrays of the group.

    Parameters
    ----------
    attributes : mapping
        Attributes of the group in JSON form.
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
    """Array on disk.

    Parameters
    ----------
    handle : tensorstore.TensorStore
    folder : path
        Folder of the array, for messages.
    """

    def __init__(self, handle: Any, folder: Path) -> None:
        self._handle, self.folder = handle, folder

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each axis."""
        return tuple(self._handle.shape)

    @property
    def chunk(self) -> tuple[int, ...]:
        """Number of elements of a chunk along each axis."""
        return tuple(self._handle.chunk_layout.read_chunk.shape)

    def write(self, lo: Sequence[int], values: NDArray[Any]) -> Any:
        """Begin to write values at the element `lo`, and return a future.

        The caller must not change the values after this call.

        Returns
        -------
        future
            Handle of the write. Its method `done` returns whether the write has ended. Its method `result`
            waits until the values are on disk, and raises ValueError or OSError if the write fails.
        """
        region = tuple(slice(l, l + n) for l, n in zip(lo, values.shape, strict=True))
        return self._handle[region].write(values, can_reference_source_data_indefinitely=True)

    def put(self, lo: Sequence[int], values: NDArray[Any]) -> None:
        """Write values at the element `lo`, and wait until the write has ended.

        Raises
        ------
        RunError
            The values cannot be written.
        """
        try:
            self.write(lo, values).result()
        except (ValueError, OSError) as error:
            if "Error reading" in str(error):  # TensorStore first reads the other elements of the chunk
                raise RunError(
                    f"{self.folder} is damaged ({_cause(error)}), so nothing was written to it. Restore the "
                    "file from a copy of the store, or choose another path."
                ) from None
            raise RunError(f"{self.folder} cannot be written: {why_not_written(error)}") from None

    def read(self, lo: Sequence[int], hi: Sequence[int]) -> NDArray[Any]:
        """Return the elements in the half-open range of indices from `lo` to `hi`.

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
    """Create an array without values.

    Parameters
    ----------
    folder : path
    spec : ArraySpec
    threads : tensorstore.Context, optional
        Threads that write to the array; see `context`.

    Raises
    ------
    RunError
        The folder cannot be written to.
    """
    return _opened(folder, threads, metadata=spec.metadata, create=True)


def create_all(
    folder: Path, specs: Mapping[str, ArraySpec], fixed: Mapping[str, tuple[ArraySpec, NDArray[Any]]]
) -> None:
    """Create the arrays of a store. Readers find the arrays only after the group metadata is written.

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
    """Open an existing array, whose description is known, for writing."""
    return _opened(folder, threads, metadata=spec.metadata, open=True, assume_metadata=True)


def read(folder: Path) -> StoredArray:
    """Open an array for reading.

    Raises
    ------
    InputError
        The array does not exist, or its metadata is damaged.
    """
    return _opened(folder, None, open=True, read=True)


def _opened(
    folder: Path, threads: Any, metadata: Mapping[str, Any] | None = None, **open_options: Any
) -> StoredArray:
    tensorstore = _tensorstore()
    check_text(folder)
    forks.claim(forks.STORES)
    spec: dict[str, Any] = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{folder.resolve()}/"},
        "store_data_equal_to_fill_value": True,  # every chunk is stored, so a missing chunk is an error
    }
    if metadata is not None:
        spec["metadata"] = metadata
    context = {} if threads is None else {"context": threads}
    try:
        return StoredArray(tensorstore.open(spec, **open_options, **context).result(), folder)
    except ValueError as error:
        kind, action = (InputError, "read") if metadata is None else (RunError, "written")
        raise kind(f"{folder} cannot be {action}: {why_not_written(error)}") from None


def _cause(error: Exception) -> str:
    """Return the message of an error of TensorStore, without the specification of the store."""
    text = re.sub(r" \[(tensorstore_spec|source locations)=.*", "", str(error), flags=re.DOTALL)
    return text.partition(": ")[2] or text


def why_not_written(error: Exception) -> str:
    """Return the cause of a failed write in words."""
    match = re.search(
        r"(No space left on device|Permission denied|Disk quota exceeded|Input/output error)", str(error)
    )
    return match[1] if match else _cause(error)


BUFFERS = 256 << 20  # maximum total size of the chunks that wait to be written, in bytes


@dataclass(frozen=True)
class WritingCost:
    """Cost of writing in a run.

    Attributes
    ----------
    bytes : int
        Size of the chunks of this rank before compression, in bytes.
    seconds : float
        Time in which the run assembled chunks or waited instead of computing, in seconds.
    waited : float
        Part of `seconds` in which the run waited for free buffers or for the disk.
    """

    bytes: int = 0
    seconds: float = 0.0
    waited: float = 0.0

    def __add__(self, other: WritingCost) -> WritingCost:
        return WritingCost(self.bytes + other.bytes, self.seconds + other.seconds, self.waited + other.waited)


class Writer:
    """Background writer for the chunks of a run, with a limit on the total size of the waiting chunks.

    Parameters
    ----------
    attach : callable (path, ArraySpec) -> array
        Function that opens an existing array, such as `halocline.archive.arrays.attach`. The method `write`
        of the array returns a future, like `halocline.archive.arrays.StoredArray.write`.
    max_pending_bytes : float
        Maximum total size of the waiting chunks, in bytes. A call of `write` waits until its chunk fits into
        this limit, or until no other chunk waits.

    Attributes
    ----------
    waited : float
        Time in which the run waited for free buffers or for the end of all writes, in seconds.
    written : int
        Size of the chunks that the writer accepted, in bytes.
    failure : RunError or None
        First error of a chunk. After an error the writer ignores further chunks.
    """

    def __init__(self, attach: Callable[[Path, ArraySpec], Any], max_pending_bytes: float = BUFFERS) -> None:
        self.attach, self.max_pending_bytes = attach, max_pending_bytes
        self.waited, self.written = 0.0, 0
        self._pending: deque[tuple[int, int, Any, Any]] = deque()  # size, first index, future and array
        self._pending_size = 0  # size of the pending chunks, in bytes
        self.failure: RunError | None = None
        self._first_lost: int | None = None  # index of the first chunk that could not be written

    def write(self, array: Any, lo: tuple[int, ...], values: NDArray[Any]) -> None:
        """Begin to write values at the element `lo` of an array.

        The caller must not change the values after this call. The method raises no error, because other ranks
        may wait for this rank at this point. The method `finish` raises the error instead.
        """
        if self.failure is not None:
            return
        self._await_done()
        while self._pending and self._pending_size + values.nbytes > self.max_pending_bytes:
            self._await_one()
        began = perf_counter()
        future = array.write(lo, values)  # may wait, because arrays on I/O ranks have a separate buffer limit
        self.waited += perf_counter() - began
        self._pending.append((values.nbytes, lo[0], future, array))
        self._pending_size += values.nbytes
        self.written += values.nbytes

    @property
    def done(self) -> bool:
        """True if the writes of all chunks have ended, successfully or with an error."""
        return all(future.done() for _, _, future, _ in self._pending)

    @property
    def first_open(self) -> int | None:
        """Index along the first axis of the first chunk that is not on disk; None if all are on disk."""
        self._await_done()  # a failed write counts as ended
        if self._first_lost is not None:
            return self._first_lost
        return self._pending[0][1] if self._pending else None

    def finish(self) -> None:
        """Wait until all chunks are on disk.

        Raises
        ------
        RunError
            A chunk could not be written.
        """
        while self._pending:
            self._await_one()
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def _await_done(self) -> None:
        """Process the results of completed writes, up to the first incomplete write."""
        while self._pending and self._pending[0][2].done():
            self._await_one()

    def _await_one(self) -> None:
        size, index, future, array = self._pending.popleft()
        self._pending_size -= size
        began = perf_counter()
        try:
            future.result()
        except (ValueError, OSError) as error:
            if self.failure is None:  # chunks are processed in the order of their writes
                self._first_lost = index
                self.failure = RunError(f"{array.folder} cannot be written: {why_not_written(error)}")
        finally:
            self.waited += perf_counter() - began
