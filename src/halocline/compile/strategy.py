"""Execution strategy of device kernels, and the hardware limits on it."""

from __future__ import annotations

from dataclasses import dataclass

from halocline.errors import InputError
from halocline.lang.grid import unknown_name_error

MAX_THREADS_PER_BLOCK = 256
READS = ("direct", "queue", "planes")
SHARED_BYTES = 40 * 2**10  # maximum shared memory of a thread block; CUDA allows 48 KiB by default
REGISTERS = 192  # maximum registers for values of a thread; the other 63 are for addresses and streaming
# Kernels that need more registers have smaller thread blocks. A multiprocessor with 65536 registers then
# holds two blocks, or three if the values that vary from cell to cell fit into 168 registers per thread.
SMALL_BLOCK, RESIDENT_BLOCKS, VARYING_REGISTERS = (32, 4), 3, 118
PARAMETER_BYTES = 1024  # parameter space of a kernel: at least 1024 in OpenCL, 4096 in CUDA
FRAME_BYTES, LAYOUT_BYTES, POINTER_BYTES = 24 * 8, 3 * 8, 8  # see frame.h
REDUCING_BYTES = MAX_THREADS_PER_BLOCK // 2 * 40  # for reductions: one hc_partial per two threads


def streaming_axis(ndim: int) -> int | None:
    """Return the 2.5D streaming axis among the three axes of generated code; None in 1D."""
    return None if ndim == 1 else 3 - ndim


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
    block_shape : (int, int) or None
        Threads of a block along the contiguous axis and the next one. If the next one is the streaming
        axis, all threads are along the contiguous axis. None: the number of cells of each launch
        determines the shape. If all following parameters have their defaults, kernels that need many
        registers have the shape `SMALL_BLOCK` instead of the default.
    cells_per_thread : int or None
        Cells of each thread along the streaming axis. None: the number of cells of each launch determines it.
    stages : {"shared", "memory"}
        Storage of stages. "shared": in shared memory of the thread block, if they fit. "memory": in global
        memory.
    unroll : int
        Unroll factor of the loop over the cells of a thread.
    resident_blocks : int
        Minimum number of thread blocks that a multiprocessor holds at a time. The number limits the registers
        of each thread. 0: no limit. OpenCL ignores this number.
    """

    reads: str = "queue"
    block_shape: tuple[int, int] | None = (64, 4)
    cells_per_thread: int | None = None
    stages: str = "shared"
    unroll: int = 1
    resident_blocks: int = 0

    def __post_init__(self) -> None:
        if self.stages not in ("shared", "memory"):
            raise InputError(
                f"storage of stages of device kernels is {self.stages!r}; expected shared or memory"
            )
        block_shape = self.block_shape or (1, 1)
        cells_per_thread = 1 if self.cells_per_thread is None else self.cells_per_thread
        smallest = min(*block_shape, cells_per_thread, self.unroll)
        threads = block_shape[0] * block_shape[1]
        if smallest < 1 or self.resident_blocks < 0 or threads > MAX_THREADS_PER_BLOCK:
            raise InputError(
                f"device kernels with {self}: expected positive numbers, at most "
                f"{MAX_THREADS_PER_BLOCK} threads"
            )
        if self.reads not in READS:
            raise unknown_name_error("strategy of device kernels", self.reads, READS)

    def __str__(self) -> str:
        text = self.reads
        if self.is_default:
            text += ", thread blocks by registers"
        elif self.block_shape is not None:
            text += f", thread blocks of {self.block_shape[0]} x {self.block_shape[1]}"
        text += "" if self.cells_per_thread is None else f", {self.cells_per_thread} cells per thread"
        text += f", unrolled by {self.unroll}" if self.unroll > 1 else ""
        text += f", at least {self.resident_blocks} resident blocks" if self.resident_blocks else ""
        return text + (", stages in memory" if self.stages == "memory" else "")

    @property
    def is_default(self) -> bool:
        """True if block shape, cells per thread, unroll factor and resident blocks are the default."""
        return self == Strategy(self.reads, stages=self.stages)

    def threads_per_axis(self, ndim: int) -> tuple[int, int, int] | None:
        """Return the threads of a block along three axes, the contiguous one first."""
        if self.block_shape is None:
            return None
        along, across = self.block_shape
        return (along, across, 1) if ndim == 3 else (along * across, 1, 1)
