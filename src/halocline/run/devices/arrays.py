"""Arrays of other libraries, given by DLPack or by the CUDA array interface."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.native import native
from halocline.words import short_repr


class Kind(IntEnum):
    """Kinds of memory, with the numbers of DLPack."""

    CPU = 1
    CUDA = 2
    CUDA_HOST = 3
    OPENCL = 4
    ROCM_HOST = 11
    CUDA_MANAGED = 13


ON_HOST = (Kind.CPU, Kind.CUDA_HOST, Kind.ROCM_HOST)
ON_CUDA = (Kind.CUDA, Kind.CUDA_MANAGED)
LEGACY_STREAM = 1  # default stream of CUDA, in the numbering of DLPack


@dataclass(frozen=True)
class DeviceArray:
    """Array of another library in memory of a CUDA device.

    Attributes
    ----------
    address : int
        Address of the first element.
    shape, strides : tuple of int
        Number of elements along each axis, and distance between neighbours in elements.
    dtype : str
        Name of the type of an element, such as "float64".
    itemsize : int
        Bytes of an element.
    device : int or None
        Index of the CUDA device; None if the array interface does not state it.
    owner : object
        Object that keeps the memory valid.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    itemsize: int
    device: int | None
    owner: Any

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 0

    def __getitem__(self, index: int) -> DeviceArray:
        """Return the part with one index along the first axis."""
        if not 0 <= index < len(self):
            raise IndexError(f"index {index} of an array of shape {self.shape}")
        return replace(
            self,
            address=self.address + index * self.strides[0] * self.itemsize,
            shape=self.shape[1:],
            strides=self.strides[1:],
        )


def import_array(value: Any, subject: str) -> NDArray[Any] | DeviceArray:
    """Return an array of another library without a copy, as a NumPy array if it lies in host memory.

    Parameters
    ----------
    value
        Array of another library; see `halocline.run.fields.sources.is_external_array`.
    subject : str
        Subject of the message, such as "field 'u' is given".

    Raises
    ------
    InputError
        The library cannot export the array, or it lies in memory that is neither of the host nor of CUDA.
    """
    try:
        if not hasattr(type(value), "__dlpack__"):
            return _from_interface(value)
        kind, index = value.__dlpack_device__()
        if kind in ON_HOST:
            return np.from_dlpack(value)
        if kind in ON_CUDA:
            return _from_capsule(value, index)
    except (AttributeError, BufferError, KeyError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{subject} a {_type_name(value)} that cannot be imported ({_first_line(error)}). Convert it to "
            "real numbers without gradient first, for example by x.detach().double() in PyTorch."
        ) from None
    name = Kind(kind).name if kind in list(Kind) else f"kind {int(kind)} of DLPack"
    raise InputError(
        f"{subject} a {_type_name(value)} in memory of {name}; expected host or CUDA memory. Copy it to the "
        "host first."
    )


def _from_capsule(value: Any, index: int) -> DeviceArray:
    """Import an array in CUDA memory by DLPack. The legacy stream then waits for its producer."""
    try:
        capsule = value.__dlpack__(stream=LEGACY_STREAM, max_version=(1, 0))
    except TypeError:  # the library is older than DLPack 1.0
        capsule = value.__dlpack__(stream=LEGACY_STREAM)
    address, shape, strides, dtype, itemsize, owner = native().array_facts(capsule)
    return DeviceArray(address, tuple(shape), tuple(strides), dtype, itemsize, int(index), owner)


def _from_interface(value: Any) -> DeviceArray:
    """Import an array in CUDA memory by the CUDA array interface."""
    facts = value.__cuda_array_interface__
    if facts.get("mask") is not None:
        raise ValueError("it has a mask")
    dtype, shape = np.dtype(facts["typestr"]), tuple(facts["shape"])
    steps = facts.get("strides") or np.cumprod((dtype.itemsize, *shape[:0:-1]))[::-1].tolist()
    if any(step % dtype.itemsize for step in steps):
        raise ValueError(f"strides of {tuple(steps)} bytes are not multiples of {dtype.itemsize} bytes")
    strides = tuple(int(step) // dtype.itemsize for step in steps)
    name = dtype.name if dtype.isnative else f"{dtype.name} in another byte order"
    return DeviceArray(facts["data"][0], shape, strides, name, dtype.itemsize, None, (value, facts))


def _type_name(value: Any) -> str:
    return f"{type(value).__module__.partition('.')[0]}.{type(value).__qualname__}"


def _first_line(error: Exception) -> str:
    return short_repr(error) if not str(error) else str(error).splitlines()[0].rstrip(".")
