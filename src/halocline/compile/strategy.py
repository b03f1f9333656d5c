"""How threads of devices go through cells, and what bounds it."""

from __future__ import annotations

from dataclasses import dataclass

from halocline.errors import InputError
from halocline.lang.grid import unknown

LARGEST_GROUP = 256  # threads
READS = ("direct", "queue", "planes")
SHARED_BYTES = 40 * 2**10  # of a group, at most: CUDA gives 48 KiB without being asked
REGISTERS = 192  # of a thread, for what it computes; it has 255, some for addresses and the march
PARAMETER_BYTES = 1024  # of a kernel: what every OpenCL device has room for; CUDA's have 4096
FRAME_BYTES, LAYOUT_BYTES, POINTER_BYTES = 24 * 8, 3 * 8, 8  # see frame.h
REDUCING_BYTES = LARGEST_GROUP // 2 * 40  # that a group shares to reduce: half of its threads an hc_partial


def march_axis(ndim: int) -> int | None:
    """The axis, of the three of generated code, that threads march along; None where each has one cell."""
    return None if ndim == 1 else 3 - ndim


@dataclass(frozen=True)
class Strategy:
    """How the threads of a device go through cells; no bit of a result depends on it.

    Parameters
    ----------
    reads : {"direct", "queue", "planes"}
        How a thread that marches along the slowest axis reads its neighbours there and around: all of them
        from memory; those before and behind it from registers, where each waits for its turn; and those
        beside it from a plane that its group shares.
    group : (int, int) or None
        Threads of a group along the contiguous axis and the next one; where that is marched along, all are
        along the contiguous one. None: as the cells of each launch suggest.
    march : int or None
        Cells of each thread. None: as the cells of each launch suggest.
    stages : {"group", "memory"}
        Where stages are kept: in memory that a group shares, where they fit; or in the device's memory.
    unroll : int
        Cells of a thread whose instructions are laid out one after the other.
    resident : int
        Groups that a processor of the device is to hold at a time, which limits the registers of each
        thread; 0: as the compiler likes. OpenCL has no such limit.
    """

    reads: str = "queue"
    group: tuple[int, int] | None = (64, 4)
    march: int | None = None
    stages: str = "group"
    unroll: int = 1
    resident: int = 0

    def __post_init__(self) -> None:
        if self.stages not in ("group", "memory"):
            raise InputError(f"stages of device kernels in {self.stages!r}: expected group or memory")
        least = min((*(self.group or (1, 1)), 1 if self.march is None else self.march, self.unroll))
        most = (self.group or (1, 1))[0] * (self.group or (1, 1))[1]
        if least < 1 or self.resident < 0 or most > LARGEST_GROUP:
            raise InputError(
                f"device kernels with {self}: expected positive numbers, at most {LARGEST_GROUP} threads"
            )
        if self.reads not in READS:
            raise unknown("strategy of device kernels", self.reads, READS)

    def __str__(self) -> str:
        groups = "" if self.group is None else f", groups of {self.group[0]} x {self.group[1]}"
        words = self.reads + groups
        words += "" if self.march is None else f", {self.march} cells a thread"
        words += f", {self.unroll} at a time" if self.unroll > 1 else ""
        words += f", {self.resident} groups at a time" if self.resident else ""
        return words + (", stages in memory" if self.stages == "memory" else "")

    def threads(self, ndim: int) -> tuple[int, int, int] | None:
        """Threads of a group along three axes, the contiguous one first."""
        if self.group is None:
            return None
        along, across = self.group
        return (along, across, 1) if ndim == 3 else (along * across, 1, 1)
