"""Execution strategy of device kernels: splits of their loops, storage of values, and hardware limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from halocline.errors import InputError
from halocline.lang.grid import unknown_name_error

MAX_THREADS_PER_BLOCK = 256
READS = ("direct", "queue", "planes")
SHARED_BYTES = 40 * 2**10  # maximum shared memory of a thread block for stages; CUDA allows 48 KiB in arrays
# Maximum shared memory of a thread block for planes of fields, on CUDA devices of which a multiprocessor then
# holds two blocks, such as sm_90. On other devices, the limit is that of stages.
TILE_BYTES = 96 * 2**10
REGISTERS = 192  # maximum registers for values of a thread; the other 63 are for addresses and streaming
# Kernels that need more registers have smaller thread blocks. A multiprocessor with 65536 registers then
# holds two blocks, or three if the values that vary from cell to cell fit into 168 registers per thread.
# Blocks are also smaller if a large block reads more in sectors than the L1 cache of sm_80 holds.
LARGE_BLOCK, CACHE_BYTES, SECTOR_BYTES = (64, 4), 192 * 2**10, 32
SMALL_BLOCK, RESIDENT_BLOCKS, VARYING_REGISTERS = (32, 4), 3, 118
VECTOR_BYTES = 16  # maximum size of a load or store of one thread
MAX_ROWS = 4  # maximum rows of a thread; fields have memory for rows beyond the last one, see storage.cpp
# Kernels that need few registers for a vector of cells compute vectors; see docs/explanation/gpu-kernels.md.
VECTOR_BLOCK, VECTOR_REGISTERS = (32, 8), 48
PARAMETER_BYTES = 1024  # parameter space of a kernel: at least 1024 in OpenCL, 4096 in CUDA
FRAME_BYTES, WALL_BYTES, LAYOUT_BYTES, POINTER_BYTES = 26 * 8, 7 * 8, 3 * 8, 8  # see frame.h
REDUCING_BYTES = MAX_THREADS_PER_BLOCK // 2 * 40  # for reductions: one hc_partial per two threads


# possible axes of each kind of split
AXES_OF_KIND = {
    "block": (0, 1, 2), "thread": (0, 1, 2), "stream": (0, 1), "unroll": (1,), "vector": (2,),
}  # fmt: skip


@dataclass(frozen=True)
class Split:
    """Division of the cells of a loop nest along one axis.

    Parameters
    ----------
    axis : int
        Axis of the generated code: axis 2 is contiguous, axis 0 has the largest stride.
    kind : {"block", "thread", "stream", "unroll", "vector"}
        Object that `size` counts. "block": cells of a thread block, which its threads visit in any order.
        "thread": threads of a block. "stream": cells that each thread computes one after the other (2.5D
        streaming). "unroll": adjacent cells that each thread computes at once. "vector": the same, with
        loads and stores of several cells.
    size : int
        0: the number of cells of each launch determines it.
    """

    axis: int
    kind: str
    size: int

    def __post_init__(self) -> None:
        if self.kind not in AXES_OF_KIND:
            raise unknown_name_error("split of device kernels", self.kind, tuple(AXES_OF_KIND))
        counts_cells = self.kind in ("unroll", "vector")
        least, most = int(counts_cells or self.kind == "block"), MAX_ROWS if counts_cells else self.size
        if (
            self.axis not in AXES_OF_KIND[self.kind]
            or not least <= self.size <= most
            or (self.kind == "vector" and self.size == 3)
        ):
            raise InputError(
                f"device kernels with {self}: expected axis 0, 1 or 2 (1 for unroll, 2 for vector), and a "
                f"positive size (0 for thread or stream: by the cells of a launch; at most {MAX_ROWS} for "
                "unroll; 1, 2 or 4 for vector)"
            )


Splits = tuple[Split, ...]


def split_size(splits: Sequence[Split], axis: int, kind: str) -> int | None:
    """Return the size of the split of a kind along an axis; None if there is no such split."""
    return next((split.size for split in splits if (split.axis, split.kind) == (axis, kind)), None)


def cells_at_once(splits: Sequence[Split], axis: int) -> int:
    """Return the number of adjacent cells along an axis that a thread computes at once."""
    kinds = ("unroll", "vector")
    return prod(split.size for split in splits if split.axis == axis and split.kind in kinds)


def streaming_axis(splits: Sequence[Split]) -> int | None:
    """Return the axis along which threads stream; None if each thread computes its cells at once."""
    return next((split.axis for split in splits if split.kind == "stream"), None)


def block_splits(
    ndim: int, block_shape: tuple[int, int] = LARGE_BLOCK, *, planes: int = 0, rows: int = 1, cells: int = 1
) -> Splits:
    """Return the splits for 2.5D streaming along the slowest axis of a grid.

    Parameters
    ----------
    ndim : int
        Number of axes of the grid.
    block_shape : (int, int)
        Threads of a block along the contiguous axis and the next one. If the next one is the streaming
        axis, all threads are along the contiguous axis.
    planes : int
        Planes that a thread visits; 0: by the number of cells of each launch.
    rows, cells : int
        Adjacent rows that a thread computes at once, in three dimensions, and adjacent cells of each row.
    """
    along, across = block_shape
    vector = (Split(2, "vector", cells),) * (cells > 1)
    if ndim == 3:
        unroll = (Split(1, "unroll", rows),) * (rows > 1)
        threads = Split(2, "thread", along), Split(1, "thread", across)
        return (*threads, *vector, *unroll, Split(0, "stream", planes))
    stream = (Split(1, "stream", planes),) * (ndim > 1)
    return (Split(2, "thread", along * across), *vector, *stream)


def thin_splits(ndim: int) -> Splits:
    """Return the splits for halos, which are thin along some axis: one thread per cell."""
    return tuple(Split(axis, "thread", 0) for axis in range(2, 2 - ndim, -1))


@dataclass(frozen=True)
class Strategy:
    """Assignment of cells to the threads of a device; results have the same bits for all strategies.

    Parameters
    ----------
    reads : {"direct", "queue", "planes"}
        Storage of neighbour values in 2.5D streaming along the slowest axis. "direct": all neighbour values
        are in global memory. "queue": neighbours along the streaming axis are in registers, as a sliding
        window. "planes": as "queue", but the other neighbours are in a shared-memory tile of the thread
        block.
    splits : tuple of Split
        Division of the cells among thread blocks and threads. Empty: a rule selects the splits of each nest
        (`halocline.compile.targets.splits`).
    stages : {"shared", "memory"}
        Storage of stages. "shared": in shared memory of the thread block, if they fit. "memory": in global
        memory.
    resident_blocks : int
        Minimum number of thread blocks that a multiprocessor holds at a time. The number limits the registers
        of each thread. 0: no limit. OpenCL ignores this number.
    """

    reads: str = "queue"
    splits: Splits = ()
    stages: str = "shared"
    resident_blocks: int = 0

    def __post_init__(self) -> None:
        if self.stages not in ("shared", "memory"):
            raise InputError(
                f"storage of stages of device kernels is {self.stages!r}; expected shared or memory"
            )
        if self.reads not in READS:
            raise unknown_name_error("strategy of device kernels", self.reads, READS)
        defect = self._defect()
        if defect:
            raise InputError(f"device kernels with {self}: {defect}")

    def _defect(self) -> str:
        """Return why the splits do not fit together; empty if they do."""
        threads = {split.axis: split.size for split in self.splits if split.kind == "thread"}
        streamed = streaming_axis(self.splits)
        if len({(split.axis, split.kind) for split in self.splits}) < len(self.splits):
            return "two splits of one kind along one axis; expected one"
        if any(split.kind == "block" for split in self.splits):
            return "a strategy cannot fix the cells of a block; use thread, stream, unroll and vector"
        if self.splits and 2 not in threads:
            return "expected threads along axis 2"
        if any(split.axis == streamed and split.kind != "stream" for split in self.splits):
            return f"axis {streamed} is streamed; expected no other split along it"
        if any(s.kind in ("unroll", "vector") and s.axis not in threads for s in self.splits):
            return "several cells at once along an axis without threads; add a split into threads"
        if self.resident_blocks < 0 or prod(max(1, n) for n in threads.values()) > MAX_THREADS_PER_BLOCK:
            return f"expected positive numbers, at most {MAX_THREADS_PER_BLOCK} threads"
        if self.resident_blocks and (self.reads == "planes" or 0 in threads.values()):
            return "resident_blocks needs a number of threads, and direct or queue"
        return ""

    def __str__(self) -> str:
        text = self.reads
        threads = [split.size for split in self.splits if split.kind == "thread"]
        if not self.splits:
            text += ", thread blocks by registers"
        elif all(threads):
            text += f", thread blocks of {' x '.join(map(str, threads))}"
        else:
            text += ", thread blocks by the cells of a launch"
        texts = {"stream": "{} planes per thread", "unroll": "{} rows per thread", "vector": "vectors of {}"}
        for split in self.splits:
            text += f", {texts[split.kind].format(split.size)}" if split.kind in texts and split.size else ""
        text += f", at least {self.resident_blocks} resident blocks" if self.resident_blocks else ""
        return text + (", stages in memory" if self.stages == "memory" else "")
