"""Arrays on disk in chunks: Zarr version 3, read and written by TensorStore, also in the background."""

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
        import numpy as np  # a process that only names its ranks imports this module too

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

    @property
    def chunk(self) -> tuple[int, ...]:
        """Number of elements of a chunk along each axis."""
        return tuple(self._handle.chunk_layout.read_chunk.shape)

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
    return _opened(folder, None, open=True, read=True)


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
        kind, done = (InputError, "read") if metadata is None else (RunError, "written")
        raise kind(f"{folder} cannot be {done}: {why_not_written(error)}") from None


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


BUFFERS = 256 << 20  # bytes of chunks that wait to be written, at most


@dataclass(frozen=True)
class Writing:
    """Cost of writing in a run.

    Attributes
    ----------
    bytes : int
        Bytes of the chunks of this rank before compression.
    seconds : float
        Time in which the run assembled chunks or waited, instead of computing.
    waited : float
        Part of this time in which the run waited for room in buffers or for the disk.
    """

    bytes: int = 0
    seconds: float = 0.0
    waited: float = 0.0

    def __add__(self, other: Writing) -> Writing:
        return Writing(self.bytes + other.bytes, self.seconds + other.seconds, self.waited + other.waited)


class Writer:
    """Writer of chunks that lets the run go on; a chunk that exceeds the room for waiting chunks waits.

    Parameters
    ----------
    attach : callable (path, ArraySpec) -> array
        Opens an array that exists, such as `halocline.archive.arrays.attach`. The method `write` of the
        array returns a future, as that of `halocline.archive.arrays.StoredArray` does.
    room : float
        Bytes of chunks that may wait.

    Attributes
    ----------
    waited : float
        Seconds that the run has waited for room, or for the end.
    written : int
        Bytes of the chunks that the writer has taken.
    failure : RunError or None
        First error of a chunk; the writer ignores chunks that follow.
    """

    def __init__(self, attach: Callable[[Path, ArraySpec], Any], room: float = BUFFERS) -> None:
        self.attach, self.room = attach, room
        self.waited, self.written = 0.0, 0
        self._pending: deque[tuple[int, int, Any, Any]] = deque()  # bytes, index, future and array of a chunk
        self._held = 0  # bytes of these chunks
        self.failure: RunError | None = None
        self._first_lost: int | None = None  # index of the first chunk that could not be written

    def write(self, array: Any, lo: tuple[int, ...], values: NDArray[Any]) -> None:
        """Write values, which must not change any more, from an element of an array on.

        The method raises no error, since other ranks wait for this one between two writes: `finish` does.
        """
        if self.failure is not None:
            return
        self._await_done()
        while self._pending and self._held + values.nbytes > self.room:
            self._await_one()
        began = perf_counter()
        future = array.write(lo, values)  # an array of I/O ranks waits for room of its own
        self.waited += perf_counter() - began
        self._pending.append((values.nbytes, lo[0], future, array))
        self._held += values.nbytes
        self.written += values.nbytes

    @property
    def done(self) -> bool:
        """True where all chunks are on disk, or have failed."""
        return all(future.done() for _, _, future, _ in self._pending)

    @property
    def first_open(self) -> int | None:
        """Index along the first axis of the first chunk that is not on disk; None where all are."""
        self._await_done()  # a chunk that could not be written is done too
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
        """Take the results of the chunks up to the first one that is being written."""
        while self._pending and self._pending[0][2].done():
            self._await_one()

    def _await_one(self) -> None:
        size, index, future, array = self._pending.popleft()
        self._held -= size
        began = perf_counter()
        try:
            future.result()
        except (ValueError, OSError) as error:
            if self.failure is None:  # chunks are awaited in the order in which they were given
                self._first_lost = index
                self.failure = RunError(f"{array.folder} cannot be written: {why_not_written(error)}")
        finally:
            self.waited += perf_counter() - began
