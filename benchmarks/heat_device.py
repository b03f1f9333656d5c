"""Hand-written kernels of the heat equation on CUDA devices: peers/heat_device.cu, compiled and launched.

Each variant has some shapes of thread blocks and tiles. `HandWritten.best` checks all of them and selects the
fastest one. A step fills the halo of the periodic sides with one launch, and computes with another one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from cuda_launch import CudaError, Driver, Kernel, Memory, aligned_words
from heat_reference import FACTOR, centre, weights

from halocline.compile.nvrtc import compile_cuda
from halocline.errors import CompileError

SOURCE = Path(__file__).parent / "peers" / "heat_device.cu"
STATIC_BYTES = 48 * 1024  # maximum size of shared memory without an attribute of the function
TUNING_SECONDS = 0.01  # of one run that compares shapes
PLAIN_COPIES = False  # True: plain loops in place of cp.async and TMA, for devices without these instructions


@dataclass(frozen=True)
class Shape:
    """Shape of thread blocks and tiles.

    Attributes
    ----------
    threads : pair of int
        Threads of a block along x and y.
    rows : int
        Rows that a thread computes.
    wide : bool
        True if a thread computes 16 bytes of a row, False if it computes one cell.
    streamed : int
        Planes that a thread block computes.
    ahead : int
        Planes that a thread block loads ahead.
    """

    threads: tuple[int, int]
    rows: int = 1
    wide: bool = False
    streamed: int = 1
    ahead: int = 0

    def __str__(self) -> str:
        text = f"{self.threads[0]}x{self.threads[1]} threads"
        if self.wide:
            text += ", 16 bytes"
        if self.rows > 1:
            text += f", {self.rows} rows"
        if self.streamed > 1:
            text += f", {self.streamed} planes"
        return text + (f", {self.ahead} ahead" if self.ahead else "")


@dataclass(frozen=True)
class Variant:
    """Variant of the kernel.

    Attributes
    ----------
    macro : str
        Its name in the source.
    capability : int
        Oldest architecture, such as 80 for sm_80.
    tiles : bool
        True if the kernel has tiles in shared memory.
    shapes : tuple of Shape
    """

    macro: str
    capability: int
    tiles: bool
    shapes: tuple[Shape, ...]


# Shapes that may be the fastest ones for some precision and order; a run measures all of them.
VARIANTS = {
    "naive": Variant("NAIVE", 70, False, (Shape((64, 4)), Shape((32, 8)))),
    "queue": Variant(
        "QUEUE",
        70,
        False,
        (
            Shape((64, 4), streamed=16),
            Shape((32, 8), wide=True, streamed=64),
            Shape((32, 4), rows=2, wide=True, streamed=64),
        ),
    ),
    "cp.async": Variant(
        "ASYNC",
        80,
        True,
        (
            Shape((64, 4), rows=2, streamed=64, ahead=2),
            Shape((64, 8), rows=4, streamed=64, ahead=1),
            Shape((128, 4), rows=4, streamed=64, ahead=2),
        ),
    ),
    "tma": Variant(
        "TMA",
        90,
        True,
        (
            Shape((64, 4), rows=2, streamed=64, ahead=2),
            Shape((64, 8), rows=2, streamed=64, ahead=2),
            Shape((128, 4), rows=4, streamed=64, ahead=2),
        ),
    ),
}


def round_up(number: int, step: int) -> int:
    """Return the smallest multiple of a step that is not below a number."""
    return -(-number // step) * step


@dataclass(frozen=True)
class Program:
    """Hand-written program for one grid.

    Attributes
    ----------
    variant : str
    shape : Shape
    n : int
        Cells along each axis.
    order : int
        Order of the differences.
    dtype : str
    plain_copies : bool
        True if plain loops replace the instructions of cp.async and TMA.
    """

    variant: str
    shape: Shape
    n: int
    order: int
    dtype: str
    plain_copies: bool = False

    @property
    def radius(self) -> int:
        """Layers of halo."""
        return self.order // 2

    @property
    def vector(self) -> int:
        """Cells of a thread along x."""
        return self.cells_of_16_bytes if self.shape.wide else 1

    @property
    def cells_of_16_bytes(self) -> int:
        """Cells in 16 bytes."""
        return 16 // int(np.dtype(self.dtype).itemsize)

    @property
    def tile(self) -> tuple[int, int]:
        """Cells of a thread block along x and y."""
        return self.shape.threads[0] * self.vector, self.shape.threads[1] * self.shape.rows

    @property
    def copied_tile(self) -> tuple[int, int]:
        """Numbers of a tile in shared memory along x and y, with its halo."""
        side = round_up(self.radius, self.cells_of_16_bytes)
        return self.tile[0] + 2 * side, self.tile[1] + 2 * self.radius

    @property
    def shared(self) -> int:
        """Bytes of the tiles in the shared memory of a thread block."""
        if not VARIANTS[self.variant].tiles:
            return 0
        slot = round_up(prod(self.copied_tile) * np.dtype(self.dtype).itemsize, 128)
        return (self.radius + 1 + self.shape.ahead) * slot

    @property
    def dynamic(self) -> bool:
        """True if the shared memory is larger than a static one may be."""
        return not self.plain_copies and self.shared + 256 > STATIC_BYTES  # the barriers need some bytes too

    @property
    def blocks(self) -> tuple[int, int, int]:
        """Thread blocks along x, y and z."""
        x, y = self.tile
        return -(-self.n // x), -(-self.n // y), -(-self.n // self.shape.streamed)

    @property
    def padding(self) -> int:
        """Numbers before and behind the cells of a row."""
        return 128 // int(np.dtype(self.dtype).itemsize)

    @property
    def layout(self) -> tuple[int, int, int]:
        """Numbers of a field along z, y and x, with halo and padding."""
        return (
            self.n + 2 * self.radius,
            round_up(self.n, 32) + 2 * self.radius,
            round_up(self.n, 128) + 2 * self.padding,
        )

    @property
    def interior(self) -> tuple[slice, slice, slice]:
        """The cells of a field without halo and padding."""
        r, x = self.radius, self.padding
        return slice(r, r + self.n), slice(r, r + self.n), slice(x, x + self.n)

    @property
    def source(self) -> str:
        """Source for NVRTC."""
        literal = "" if self.dtype == "float64" else "f"
        definitions = {
            "REAL": "double" if self.dtype == "float64" else "float",
            "FMA": "fma" if self.dtype == "float64" else "fmaf",
            "CELLS": self.n,
            "RADIUS": self.radius,
            "WEIGHTS": ", ".join(f"{weight!r}{literal}" for weight in weights(self.order)),
            "CENTRE": f"({centre(self.order)!r}{literal})",
            "BLOCK_X": self.shape.threads[0],
            "BLOCK_Y": self.shape.threads[1],
            "ROWS": self.shape.rows,
            "VECTOR": self.vector,
            "STREAMED": self.shape.streamed,
            "AHEAD": self.shape.ahead,
        }
        if self.dynamic:
            definitions["DYNAMIC"] = 1
        if self.plain_copies:
            definitions["PLAIN_COPIES"] = 1
        lines = [f"#define {name} {value}" for name, value in definitions.items()]
        # the names of the variants are defined in the text itself
        return "\n".join([*lines, f"#define VARIANT {VARIANTS[self.variant].macro}", SOURCE.read_text()])


def programs(variant: str, n: int, order: int, dtype: str, plain_copies: bool = False) -> Iterator[Program]:
    """Yield the programs of a variant, one for each shape."""
    for shape in VARIANTS[variant].shapes:
        yield Program(variant, shape, n, order, dtype, plain_copies)


def why_not(variant: str, architecture: str) -> str:
    """Return the reason why an architecture cannot run a variant; "" if it can."""
    capability = VARIANTS[variant].capability
    return (
        "" if int(architecture[3:]) >= capability else f"needs sm_{capability} or newer, not {architecture}"
    )


@lru_cache(maxsize=4)
def driver_of(index: int) -> Driver:
    """Return the driver of a device."""
    return Driver(index)


class Loaded:
    """Program that is loaded on a device.

    Parameters
    ----------
    driver : Driver
    architecture : str
    program : Program
    """

    def __init__(self, driver: Driver, architecture: str, program: Program) -> None:
        self.driver, self.program = driver, program
        if program.shared > driver.shared_bytes():
            raise CudaError(f"needs {program.shared} bytes of shared memory, of {driver.shared_bytes()}")
        code = compile_cuda(program.source, architecture)
        module = driver.load(code)
        self.compute = Kernel(driver, module, "heat_step", program.shared if program.dynamic else 0)
        self.auxiliary = {name: Kernel(driver, module, name) for name in ("fill_halo", "scatter", "compare")}
        self.maps: dict[int, Any] = {}  # by the address of the field
        self.factor = (ctypes.c_double if program.dtype == "float64" else ctypes.c_float)(FACTOR)

    def apply(self, name: str, planes: int, *arguments: Any) -> None:
        """Queue an auxiliary kernel."""
        n = self.program.n
        self.auxiliary[name].launch((-(-n // 64), -(-n // 4), planes), (64, 4, 1), arguments)

    def fill_halo(self, field: Memory) -> None:
        """Queue the fill of the halo of a field."""
        self.apply("fill_halo", 3 * self.program.radius, field.argument)

    def step(self, field: Memory, result: Memory) -> None:
        """Queue one step, with the fill of the halo."""
        self.fill_halo(field)
        arguments: list[Any] = [field.argument, result.argument, self.factor]
        if VARIANTS[self.program.variant].tiles:
            arguments.insert(0, self._map(field))
        self.compute.launch(self.program.blocks, (*self.program.shape.threads, 1), arguments)

    def _map(self, field: Memory) -> Any:
        """Return the description of a field for TMA; other kernels with tiles ignore it."""
        if field.address not in self.maps:
            program = self.program
            if program.variant == "tma" and not program.plain_copies:
                shape, box = program.layout[::-1], (*program.copied_tile, 1)
                self.maps[field.address] = self.driver.tensor_map(field, program.dtype, shape, box)
            else:
                self.maps[field.address] = aligned_words(16, 64)
        return self.maps[field.address]


class HandWritten:
    """Hand-written kernels on one grid of a device.

    Parameters
    ----------
    index : int
        Number of the CUDA device.
    architecture : str
        Architecture of the device, such as "sm_90".
    n : int
        Cells along each axis.
    order : int
        Order of the differences.
    dtype : str
    plain_copies : bool, optional
        True if plain loops replace the instructions of cp.async and TMA.
    """

    def __init__(
        self, index: int, architecture: str, n: int, order: int, dtype: str, plain_copies: bool | None = None
    ) -> None:
        self.driver, self.architecture = driver_of(index), architecture
        self.driver.activate()
        plain_copies = PLAIN_COPIES if plain_copies is None else plain_copies
        self.naive = self.load(Program("naive", VARIANTS["naive"].shapes[0], n, order, dtype, plain_copies))
        self.size = prod(self.naive.program.layout) * np.dtype(dtype).itemsize
        self.field, self.result = (Memory(self.driver, self.size) for _ in range(2))

    def load(self, program: Program) -> Loaded:
        """Compile and load a program."""
        return Loaded(self.driver, self.architecture, program)

    def set(self, cells: np.ndarray) -> None:
        """Set the cells of the field."""
        program = self.naive.program
        array = np.full(program.layout, np.nan, program.dtype)  # a stencil that reads padding gives NaN
        array[program.interior] = cells
        self.driver.activate()
        self.driver.upload(self.field, array)

    def get(self) -> np.ndarray:
        """Return the cells of the field."""
        program = self.naive.program
        array = np.empty(program.layout, program.dtype)
        self.driver.activate()
        self.driver.download(self.field, array)
        return array[program.interior].copy()

    def run(self, loaded: Loaded, steps: int) -> float:
        """Run some steps, and return the seconds of one step."""
        self.driver.activate()
        start_time = perf_counter()
        for _ in range(steps):
            loaded.step(self.field, self.result)
            self.field, self.result = self.result, self.field
        self.driver.finish()
        return (perf_counter() - start_time) / steps

    def run_fill(self, steps: int) -> float:
        """Fill the halo some times, and return the seconds of one time."""
        self.driver.activate()
        start_time = perf_counter()
        for _ in range(steps):
            self.naive.fill_halo(self.field)
        self.driver.finish()
        return (perf_counter() - start_time) / steps

    def differences(self, loaded: Loaded) -> int:
        """Return the number of cells in which a step of a program differs from a step of the naive kernel."""
        driver, n = self.driver, self.naive.program.n
        driver.activate()
        reference, count = Memory(driver, self.size), Memory(driver, 8)
        driver.fill(count, 0)
        driver.fill(self.field, 0)
        for memory in (reference, self.result):
            driver.fill(memory, 0xFF)  # NaN
        self.naive.apply("scatter", n, self.field.argument)
        self.naive.step(self.field, reference)
        loaded.step(self.field, self.result)
        self.naive.apply("compare", n, self.result.argument, reference.argument, count.argument)
        number = np.zeros(1, np.uint64)
        driver.download(count, number)
        return int(number[0])

    def best(self, variant: str) -> Loaded:
        """Return the fastest program of a variant.

        Raises
        ------
        CudaError
            No program runs on the device.
        SystemExit
            A program has other results than the naive kernel.
        """
        grid = self.naive.program
        candidates: list[tuple[float, int, Loaded]] = []
        reason = ""
        for program in programs(variant, grid.n, grid.order, grid.dtype, grid.plain_copies):
            try:
                loaded = self.load(program)
                count = self.differences(loaded)
            except (CudaError, CompileError) as error:
                reason = f"{program.shape}: {error}"
                continue
            if count:
                raise SystemExit(f"{variant}, {program.shape}: {count} cells differ from the naive kernel")
            seconds = self.run(loaded, 2)
            steps = max(2, round(TUNING_SECONDS / seconds))
            candidates.append((min(self.run(loaded, steps) for _ in range(3)), len(candidates), loaded))
        if not candidates:
            raise CudaError(f"{variant} does not run: {reason}")
        return min(candidates)[2]
