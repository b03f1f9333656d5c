"""The native engine: executes plans, decides nothing. `help()` of each name says more."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

Index: TypeAlias = Sequence[int]  # three numbers
Kind: TypeAlias = Literal["sum", "min", "max", "count", "value"]

class OutOfMemory(MemoryError): ...

class Storage:
    def __init__(self, shape: Index, lower: Index, upper: Index, itemsize: int, index: int = 0) -> None: ...
    def view(self) -> NDArray[Any]: ...
    def whole(self) -> NDArray[Any]: ...
    @property
    def shape(self) -> tuple[int, int, int]: ...
    @property
    def lower(self) -> tuple[int, int, int]: ...
    @property
    def upper(self) -> tuple[int, int, int]: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    def checksum(
        self, lo: Index, hi: Index, origin: Index, shape: Index, threads: int = 1
    ) -> tuple[int, int]: ...
    def first_nonfinite(self, lo: Index, hi: Index, threads: int = 1) -> tuple[int, int, int] | None: ...

class Streams:
    def __init__(self, threads: int, bytes: int) -> None: ...
    def triad(self, passes: int) -> int: ...
    def copy(self, passes: int) -> int: ...

class Message:
    def __init__(self, peer: int, tag: int, parts: Sequence[tuple[int, Index, Index]]) -> None: ...

class Fill:
    def __init__(
        self, kernel: str, operands: Sequence[int], lo: Index, hi: Index, axis: int = -1
    ) -> None: ...

class Report(TypedDict):
    reason: str
    loops: list[Literal["condition", "limit"] | None]
    stopped: bool
    history: NDArray[np.float64]
    seconds: float
    loop_seconds: float
    compute: float
    exchange: float
    reduction: float
    sweep_counts: list[int]
    sweep_seconds: list[float]

class Engine:
    def __init__(
        self,
        library: str,
        storages: Sequence[Storage],
        scalars: NDArray[np.float64],
        origin: Index,
        shape: Index,
        threads: int,
        spins: int,
        communicator: int | None,
        patches: NDArray[np.int64],
        owners: NDArray[np.int32],
    ) -> None: ...
    def sweep(
        self,
        kernel: str,
        operands: Sequence[int],
        reductions: Sequence[tuple[Kind, int]] = [],
        sends: Sequence[Message] = [],
        receives: Sequence[Message] = [],
        copies: Sequence[tuple[int, Index, Index, Index]] = [],
        fills: Sequence[Fill] = [],
        rims: Sequence[Fill] = [],
        needs: NDArray[np.uint32] | None = None,
        needs_rims: NDArray[np.bool_] | None = None,
        halo_kernel: str | None = None,
        halo_boxes: NDArray[np.int64] | None = None,
        halo_needs: NDArray[np.uint32] | None = None,
        swaps: Sequence[tuple[int, int]] = [],
        scratch_bytes: int = 0,
        backward: bool = False,
    ) -> None: ...
    def scalars(self, function: str) -> None: ...
    def stop(self, condition: str, reason: str) -> None: ...
    def loop(self, until: str | None, limit: int | None, count: int, record: Sequence[int] = []) -> None: ...
    def end(self) -> None: ...
    def run(
        self,
        messages: bool = True,
        kernels: bool = True,
        traced: bool = False,
        overlap: bool = True,
        passes: int = 0,
        resumed: bool = False,
    ) -> Report: ...
    def progress(self) -> int: ...
    def request_stop(self) -> None: ...

def request_stop() -> None: ...
def forget_stop() -> bool: ...
def stop_on_signals(signals: Sequence[int]) -> None: ...
def mpi_library() -> str: ...
def available_memory() -> int: ...
def simd_width() -> int: ...
def openmp() -> tuple[int, int]: ...
