"""CUDA driver through ctypes: memory, code and launches of hand-written kernels on one device.

The functions use the primary context of the device, like Halocline and the CUDA runtime. Kernels and
Halocline therefore share the device and its memory in one process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_double, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

LIBRARY = "libcuda.so.1"
SHARED_BYTES, SHARED_BYTES_OPT_IN = 8, 97  # device attributes: maximum bytes of shared memory
DYNAMIC_SHARED_BYTES = 8  # attribute of a function
NON_BLOCKING = 1
TENSOR_MAP_WORDS = 16  # of 8 bytes
TENSOR_MAP_ALIGNMENT = 64
TENSOR_MAP_TYPES = {"float32": 7, "float64": 8}
L2_PROMOTION_128 = 2

Argument = c_uint64 | c_double | c_float | ctypes.Array[Any]


class CudaError(RuntimeError):
    """Error of the driver, or a function that the driver lacks."""


class Memory:
    """Memory of a device, which is freed with this object.

    Attributes
    ----------
    address : int
    size : int
        Bytes.
    """

    def __init__(self, driver: Driver, size: int) -> None:
        self.driver, self.size = driver, size
        address = c_uint64()
        driver.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        self.address = address.value

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self.driver.library.cuMemFree_v2(c_uint64(self.address))

    @property
    def argument(self) -> c_uint64:
        """The address as an argument of a kernel."""
        return c_uint64(self.address)


class Kernel:
    """Kernel of a loaded module.

    Parameters
    ----------
    driver : Driver
    module : c_void_p
    name : str
    shared : int
        Bytes of dynamic shared memory of a thread block; 0 if all shared memory is static.
    """

    def __init__(self, driver: Driver, module: c_void_p, name: str, shared: int = 0) -> None:
        self.driver, self.shared = driver, shared
        self.function = c_void_p()
        driver.call("cuModuleGetFunction", byref(self.function), module, name.encode())
        if shared:
            driver.call("cuFuncSetAttribute", self.function, c_int(DYNAMIC_SHARED_BYTES), c_int(shared))

    def launch(self, blocks: Sequence[int], threads: Sequence[int], arguments: Sequence[Argument]) -> None:
        """Queue the kernel.

        Parameters
        ----------
        blocks, threads : three int
            Thread blocks of the grid, and threads of a block, along x, y and z.
        arguments : sequence of ctypes values
        """
        pointers = (c_void_p * len(arguments))(*(ctypes.addressof(value) for value in arguments))
        shape = [c_uint(n) for n in (*blocks, *threads, self.shared)]
        self.driver.call("cuLaunchKernel", self.function, *shape, self.driver.stream, pointers, None)


class Driver:
    """Device with a stream of its own, in the primary context.

    Parameters
    ----------
    index : int
        Number of the device in this process.

    Raises
    ------
    CudaError
        There is no driver, or no such device.
    """

    def __init__(self, index: int) -> None:
        try:
            self.library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise CudaError(f"no CUDA driver: {error}") from None
        self.call("cuInit", c_uint(0))
        self.device, self.context, self.stream = c_int(), c_void_p(), c_void_p()
        self.call("cuDeviceGet", byref(self.device), c_int(index))
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), self.device)
        self.activate()
        self.call("cuStreamCreateWithPriority", byref(self.stream), c_uint(NON_BLOCKING), c_int(0))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver.

        Raises
        ------
        CudaError
            The driver lacks the function, or the call failed.
        """
        try:
            function = getattr(self.library, name)
        except AttributeError:
            raise CudaError(f"the CUDA driver has no {name}") from None
        status = function(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(c_int(status), byref(text))
            raise CudaError(f"{name}: {(text.value or b'unknown error').decode()} ({status})")

    def activate(self) -> None:
        """Make the context of the device current in this thread."""
        self.call("cuCtxSetCurrent", self.context)

    def attribute(self, number: int) -> int:
        """Return an attribute of the device."""
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), c_int(number), self.device)
        return value.value

    def shared_bytes(self) -> int:
        """Return the maximum shared memory of a thread block in bytes, dynamic memory included."""
        try:
            return self.attribute(SHARED_BYTES_OPT_IN)
        except CudaError:
            return self.attribute(SHARED_BYTES)

    def load(self, code: Path) -> c_void_p:
        """Return the module of a compiled file, for the life of the process."""
        module = c_void_p()
        content = code.read_bytes() + b"\0"  # PTX is a string
        self.call("cuModuleLoadDataEx", byref(module), content, c_uint(0), None, None)
        return module

    def upload(self, to: Memory, array: np.ndarray) -> None:
        """Copy a contiguous array to the start of a memory, and wait."""
        assert array.flags.c_contiguous
        assert array.nbytes <= to.size
        self.call(
            "cuMemcpyHtoDAsync_v2",
            to.argument,
            c_void_p(array.ctypes.data),
            c_size_t(array.nbytes),
            self.stream,
        )
        self.finish()

    def download(self, source: Memory, array: np.ndarray) -> None:
        """Fill a contiguous array from the start of a memory, and wait."""
        assert array.flags.c_contiguous
        assert array.nbytes <= source.size
        size = c_size_t(array.nbytes)
        self.call("cuMemcpyDtoHAsync_v2", c_void_p(array.ctypes.data), source.argument, size, self.stream)
        self.finish()

    def fill(self, memory: Memory, byte: int) -> None:
        """Set all bytes of a memory."""
        value, size = ctypes.c_ubyte(byte), c_size_t(memory.size)
        self.call("cuMemsetD8Async", memory.argument, value, size, self.stream)

    def finish(self) -> None:
        """Wait for all queued work."""
        self.call("cuStreamSynchronize", self.stream)

    def tensor_map(
        self, memory: Memory, dtype: str, shape: Sequence[int], box: Sequence[int]
    ) -> ctypes.Array[Any]:
        """Return the description of an array with three axes for the tensor memory accelerator.

        Parameters
        ----------
        memory : Memory
        dtype : str
        shape, box : three int
            Numbers of the array and of one copy along x, y and z. The x axis is contiguous.
        """
        item = np.dtype(dtype).itemsize
        result = aligned_words(TENSOR_MAP_WORDS, TENSOR_MAP_ALIGNMENT)
        self.call(
            "cuTensorMapEncodeTiled",
            result,
            c_int(TENSOR_MAP_TYPES[dtype]),
            c_uint(3),
            memory.argument,
            (c_uint64 * 3)(*shape),
            (c_uint64 * 2)(shape[0] * item, shape[0] * shape[1] * item),
            (c_uint * 3)(*box),
            (c_uint * 3)(1, 1, 1),
            c_int(0),  # no interleave
            c_int(0),  # no swizzle
            c_int(L2_PROMOTION_128),
            c_int(0),  # zeros outside the array
        )
        return result


def aligned_words(count: int, alignment: int) -> ctypes.Array[Any]:
    """Return an array of 64-bit words that are zero, at a multiple of some bytes."""
    size = 8 * count
    store = ctypes.create_string_buffer(size + alignment)
    offset = -ctypes.addressof(store) % alignment
    return (c_uint64 * count).from_buffer(store, offset)
