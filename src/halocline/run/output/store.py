"""Stores of a run: arrays of field points that all ranks write together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from numpy.typing import NDArray

from halocline.archive.arrays import ArraySpec, Writer, WritingCost, attach, context, narrowed
from halocline.archive.files import FolderLock
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.grid import Field, Grid
from halocline.plan.chunks import ChunkGrid, chunk_shape
from halocline.run.fields.regions import FieldPoints, axis_attributes, dimensions
from halocline.run.memory.contents import assembled
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.io_ranks import IORanks, RemoteWrite


@dataclass(frozen=True)
class Part:
    """Array of a store that contains points of one field.

    Attributes
    ----------
    field : Field
        Field that contains the values at the time of writing.
    points : FieldPoints
        Points of the array.
    spec : ArraySpec
        Description of the array with zero rows.
    """

    field: Field
    points: FieldPoints
    spec: ArraySpec

    @classmethod
    def of(
        cls,
        field: Field,
        points: FieldPoints,
        growing: Sequence[str] = (),
        *,
        dtype: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        compression: str = "zstd",
    ) -> Part:
        """Return the array of the selected points, in chunks that do not depend on the number of ranks.

        Parameters
        ----------
        growing : sequence of str
            Time dimension of the array, which precedes the spatial dimensions. Empty for an array without
            a time dimension.
        dtype : str, optional
            Type of the values on disk; by default that of the field.
        """
        dtype, names = dtype or field.dtype, dimensions(field.staggered)
        shape = (0,) * len(growing) + points.shape
        chunk = (1,) * len(growing) + chunk_shape(points.shape, ITEMSIZE[dtype])
        axes = (*growing, *(names[axis] for axis in points.axes))
        facts = {**(attributes or {}), **points.at}
        return cls(field, points, ArraySpec(shape, chunk, dtype, axes, facts, compression))

    @property
    def lines(self) -> dict[str, tuple[int, NDArray[Any]]]:
        """Axis and coordinates of each dimension."""
        names = dimensions(self.field.staggered)
        axes = zip(self.points.axes, self.points.coordinates, strict=True)
        return {names[axis]: (axis, line) for axis, line in axes}


def coordinate(
    grid: Grid, axis: int, line: NDArray[Any], dimension: str, attributes: Mapping[str, Any] | None = None
) -> tuple[ArraySpec, NDArray[Any]]:
    """Return the specification of the coordinate array of a dimension, and the values of this array."""
    attributes = {**axis_attributes(grid, axis), **(attributes or {})}
    return ArraySpec(line.shape, line.shape, "float64", (dimension,), attributes), line


class RemoteArray:
    """Array that I/O ranks write; see `halocline.archive.arrays.StoredArray`."""

    def __init__(self, ranks: IORanks, folder: Path, spec: ArraySpec) -> None:
        self.ranks, self.folder, self.spec = ranks, folder, spec

    def write(self, lo: tuple[int, ...], values: NDArray[Any]) -> RemoteWrite:
        """Begin to write values; `lo` is the index of their first element. Return a future."""
        from numpy import ascontiguousarray

        return self.ranks.send((str(self.folder.resolve()), self.spec, lo), ascontiguousarray(values))


class RunStore:
    """Folder with arrays of fields that a run writes. All methods are collective.

    Parameters
    ----------
    path : str or path
    kind : str
        Content of the folder, for messages: "output" or "checkpoints".
    store : FieldStore
    io_threads : int
        Number of compression threads on this rank, and also number of writer threads. I/O ranks replace both
        kinds of threads.

    Attributes
    ----------
    writer : Writer
    """

    def __init__(self, path: str | Path, kind: str, store: FieldStore, io_threads: int) -> None:
        self.path, self.kind, self.store = Path(path), kind, store
        self.comm = store.domain.comm
        ranks = self.comm.io_ranks
        if ranks is None:
            self.writer = Writer(partial(attach, threads=context(io_threads)))
        else:
            # no limit of pending bytes, because the memory of a chunk is freed once the chunk is sent
            self.writer = Writer(partial(RemoteArray, ranks), math.inf)
        self._seconds = 0.0
        self._targets: dict[str, Any] = {}  # arrays of parts
        self._lock: FolderLock | None = None

    @property
    def writing(self) -> WritingCost:
        """Cost of writing in this run."""
        return WritingCost(self.writer.written, self._seconds, self.writer.waited)

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Add the time of the block to the time spent on writing."""
        began = perf_counter()
        try:
            yield
        finally:
            self._seconds += perf_counter() - began

    def lock(self) -> None:
        """Create the folder, and exclude other processes from writing to it.

        Raises
        ------
        InputError
            Another process writes to the folder.
        RunError
            The folder cannot be written to.
        """
        with self.comm.agreement(f"prepare {self.path} for {self.kind}"):
            if self.comm.rank == 0:
                self._lock = FolderLock(self.path, self.kind)

    def close(self) -> None:
        """Release the folder for other processes."""
        if self._lock is not None:
            self._lock.free()
            self._lock = None

    def attach(self, folder: Path, specs: Mapping[str, ArraySpec]) -> None:
        """Open existing arrays of parts for writing, by name."""
        self._targets = {name: self.writer.attach(folder / name, spec) for name, spec in specs.items()}

    def put(self, name: str, part: Part, row: tuple[int, ...] = ()) -> int:
        """Assemble the chunks of a part on this rank, and pass them to the writer.

        Parameters
        ----------
        name : str
            Name of the array.
        part : Part
        row : (int,), optional
            Index of the values along the time dimension.

        Returns
        -------
        int
            Number of finite values that become infinite in the precision of the array.
        """
        selection, axes = part.points.selection, part.points.axes
        inner = dict(zip(axes, part.spec.chunk[len(row) :], strict=True))
        grid = ChunkGrid(selection.shape, tuple(inner.get(a, 1) for a in range(len(selection.shape))))
        infinite = 0
        for lo, chunk in assembled(self.store, part.field, grid, selection):
            array = chunk.reshape([*(1 for _ in row), *(chunk.shape[axis] for axis in axes)])
            values, count = narrowed(array, part.spec.dtype)
            self.writer.write(self._targets[name], (*row, *(lo[axis] for axis in axes)), values)
            infinite += count
        return infinite
