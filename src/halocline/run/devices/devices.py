"""Devices of a rank, their memory, and kernels compiled for them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from functools import cache
from typing import Any

from halocline import forks
from halocline.compile.nvrtc import compile_cuda
from halocline.compile.strategy import MAX_ROWS, SHARED_BYTES, TILE_BYTES
from halocline.compile.targets.source import OPENCL_OPTIONS, device_headers
from halocline.errors import InputError, RunError
from halocline.lang.dtype import ITEMSIZE
from halocline.native import native
from halocline.plan.box import three
from halocline.plan.devices import DeviceChoice, deal_devices
from halocline.plan.rank import FieldPlan, SubdomainPlan
from halocline.plan.transfer import ON_DEVICES, chosen_methods
from halocline.run.devices.checked import with_copies
from halocline.run.ranks.communicator import Communicator
from halocline.words import counted


@dataclass(frozen=True)
class OnDevice:
    """Device of one subdomain.

    Attributes
    ----------
    rank, subdomain : int
        Index of the rank, and index of the subdomain in the decomposition.
    device : str
        Device in the numbering of its rank, such as "cuda:0".
    name : str
        Name of the device model.
    driver : str
        Version of the driver.
    """

    rank: int
    subdomain: int
    device: str
    name: str
    driver: str


def label(device: Any) -> str:
    """Return the name by which a user selects a device, such as "cuda:0"."""
    return f"{device.interface}:{device.index}"


def device_text(device: Any) -> str:
    """Return the name and model of a device, for messages."""
    return f"device {label(device)} ({device.name})"


def summary(places: Iterable[OnDevice]) -> str:
    """Return the devices of a run as text: "devices cuda:0, cuda:1 (NVIDIA H100)".

    The run must use at least one device.
    """
    models: dict[str, list[str]] = {}
    for place in dict.fromkeys(replace(place, rank=0, subdomain=0) for place in places):
        models.setdefault(place.name, []).append(place.device)
    count = sum(map(len, models.values()))
    names = ", ".join(f"{', '.join(devices)} ({name})" for name, devices in models.items())
    return f"device{'' if count == 1 else 's'} {names}"


def hardware_text(ranks: int, threads: int, places: Sequence[OnDevice] = ()) -> str:
    """Return the ranks of a run, and its devices or else its threads, as text.

    Examples: "2 ranks of 4 threads", "2 ranks, devices cuda:0, cuda:1 (NVIDIA H100)".
    """
    if places:
        return f"{counted(ranks, 'rank')}, {summary(places)}"
    return f"{counted(ranks, 'rank')} of {counted(threads, 'thread')}"


DEVICE_VARIABLE = "HALOCLINE_DEVICE"

# Devices of the subdomains of this process: one set for each active with block of `devices_in_use`.
_records: list[set[OnDevice]] = []


def places_of(comm: Communicator, subdomains: Sequence[int], devices: Sequence[Any]) -> tuple[OnDevice, ...]:
    """Return the device of each subdomain of all ranks; collective."""
    local_places = [
        OnDevice(comm.rank, n, label(device), device.name, device.driver)
        for n, device in zip(subdomains, devices, strict=True)
    ]
    for record in _records:
        record.update(local_places)
    return tuple(place for rank_places in comm.allgather(local_places) for place in rank_places)


@contextmanager
def devices_in_use() -> Iterator[Callable[[Communicator], list[OnDevice]]]:
    """Record the devices of the subdomains in all runs inside the with block.

    Yield a function that returns the recorded devices of all ranks, sorted. This function is collective.
    """
    places: set[OnDevice] = set()

    def of_all_ranks(comm: Communicator) -> list[OnDevice]:
        return sorted({place for rank_places in comm.allgather(places) for place in rank_places}, key=astuple)

    _records.append(places)
    try:
        yield of_all_ranks
    finally:
        _records.pop()


def present_devices(interface: str) -> list[Any]:
    """Return the native devices of an interface, "cuda" or "opencl", that are visible to this process.

    Raises
    ------
    RunError
        The parent process had used devices before it forked this process.
    """
    forks.claim(forks.DEVICES)
    return list(native().devices(interface))


def present_interface() -> str | None:
    """Return the first of "cuda" and "opencl" that has devices, or None if neither has devices."""
    return next((name for name in ("cuda", "opencl") if present_devices(name)), None)


def select_local_devices(choice: DeviceChoice, variable: str = "") -> list[Any]:
    """Return the native devices of this process for a user's choice.

    Parameters
    ----------
    choice : DeviceChoice
        Devices that the user chose.
    variable : str
        Name of the environment variable that contains the choice, for error messages. It is "" if the choice
        does not come from a variable.

    Raises
    ------
    InputError
        Devices are missing, belong to different platforms, or lack float64.
    """
    if choice.interface == "cpu":
        return []
    devices = present_devices(choice.interface)
    try:
        platforms = [device.platform for device in devices]
        chosen = [
            devices[n] for n in choice.select_visible(platforms, native().why_no_devices(choice.interface))
        ]
        for device in chosen:
            if not device.doubles:
                raise InputError(
                    f"{device_text(device)} has no float64 with fma, which sums over the grid require. "
                    "Choose another device, or cpu."
                )
    except InputError as error:
        raise InputError(f"{variable}: {error}" if variable else str(error)) from None
    return chosen


def devices_of_rank(choice: DeviceChoice, comm: Communicator) -> tuple[Any, ...]:
    """Return the native devices that this rank drives, or an empty tuple on the CPU; collective.

    Raises
    ------
    InputError
        Devices are missing, belong to different platforms, lack float64, or cannot be divided among the ranks
        of the node.
    """
    if choice.interface == "cpu":
        return ()
    local_devices: list[Any] = []
    with comm.agreement(f"find devices {str(choice)!r}"):
        # Messages name the variable if its value equals the choice, even if the choice has another source.
        from_environment = os.environ.get(DEVICE_VARIABLE) == str(choice)
        local_devices = select_local_devices(choice, DEVICE_VARIABLE if from_environment else "")
    node = comm.allgather_of_node((comm.rank, [device.identity for device in local_devices]))
    shares = deal_devices([identities for _, identities in node])
    local_rank = [rank for rank, _ in node].index(comm.rank)
    return tuple(local_devices[n] for n in shares[local_rank])


def shared_bytes(interface: str, devices: Sequence[Any]) -> int:
    """Return the maximum shared memory per thread block that kernels may use on every device, in bytes."""
    capacities = [int(device.local_memory) for device in devices]
    two_blocks = all(capacity >= 2 * TILE_BYTES for capacity in capacities)
    return min([TILE_BYTES if interface == "cuda" and two_blocks else SHARED_BYTES, *capacities])


def sharers(devices: Sequence[Any], comm: Communicator) -> Mapping[Any, int]:
    """Return the number of ranks that drive each device of this rank; collective.

    Parameters
    ----------
    devices : sequence of native Device
        Devices of this rank.
    comm : Communicator
        Communicator whose nodes are machines. The nodes of `Communicator.grouped` are unsuitable, because
        several of these nodes may share a device.
    """
    identities = {device: device.identity for device in devices}
    node = comm.allgather_of_node(list(identities.values()))
    rank_counts = Counter(identity for rank_identities in node for identity in rank_identities)
    return {device: rank_counts[identity] for device, identity in identities.items()}


def device_methods(methods: Iterable[str] | str | None, interface: str) -> tuple[str, ...]:
    """Return the transfer methods that an interface supports between devices and that the user allows.

    Two properties are checked only at run time: whether processes can share device memory, and whether MPI
    can access it.
    """
    allowed = ON_DEVICES if methods is None else chosen_methods(methods)
    supported = ON_DEVICES if interface == "cuda" else ("self", "peer", "mpi")
    return tuple(
        name for name in supported if name in allowed and (name != "gpu_aware" or methods is not None)
    )


# -- memory --------------------------------------------------------------------------------------------------

SEGMENT = 128  # bytes: see native/src/device/storage.cpp


def storage_layout(field: FieldPlan) -> tuple[int, int, int]:
    """Return the members `at`, `s0` and `s1` of the `hc_layout` of a field, in elements.

    The first owned cell of each row is aligned to a segment of memory.
    """
    unit = SEGMENT // ITEMSIZE[field.dtype]
    shape, lower = three(field.storage.shape, 1), three([-l for l in field.storage.lo])
    before = -(-lower[2] // unit) * unit
    s1 = before - (lower[2] - shape[2]) // unit * unit
    s0 = s1 * shape[1]
    return lower[0] * s0 + lower[1] * s1 + before, s0, s1


def storage_bytes(field: FieldPlan) -> int:
    """Return the bytes of device memory that a field of a subdomain needs, including the padding of rows.

    After the last row, there are rows for threads that compute several rows at once.
    """
    planes = three(field.storage.shape, 1)[0]
    _, s0, s1 = storage_layout(field)
    return (planes * s0 + (MAX_ROWS - 1) * s1) * ITEMSIZE[field.dtype] + SEGMENT


def subdomain_bytes(plan: SubdomainPlan, known: Container[str] = ()) -> int:
    """Return the bytes of device memory that a program needs for a subdomain.

    The sum contains fields, scratch memory and messages. Fields in `known` already have memory and are
    excluded.
    """
    scratch = max((sweep.scratch_bytes for sweep in plan.sweeps), default=0)
    messages = sum(message.bytes for sweep in plan.sweeps for message in (*sweep.sends, *sweep.receives))
    fields = sum(storage_bytes(field) for field in plan.fields if field.name not in known)
    return fields + scratch + messages


def check_memory(device: Any, required_bytes: int, ranks: int) -> None:
    """Raise RunError if the ranks that share a device need more memory than is free."""
    free = device.free_memory
    if ranks * required_bytes > free:
        users = f"the {ranks} ranks that share it need" if ranks > 1 else "its fields need"
        raise RunError(
            f"{device_text(device)}: {users} {ranks * required_bytes / 1e9:,.1f} GB, but only "
            f"{free / 1e9:,.1f} GB are free. Use more devices, a smaller grid or float32."
        )


# -- kernels -------------------------------------------------------------------------------------------------


@contextmanager
def device_errors(activity: str) -> Iterator[None]:
    """Convert device errors inside the with block into RunError.

    The function also raises RunError if this process was forked from a parent that had used devices.
    """
    forks.check(forks.DEVICES)
    try:
        yield
    except (native().DeviceError, native().OutOfMemory) as error:
        raise RunError(f"{activity}: {error}") from None


def check_dtypes(device: Any, fields: Iterable[FieldPlan]) -> None:
    """Raise InputError if a field is float32 and the device does not round float32 as the CPU does."""
    field = next((field for field in fields if field.dtype == "float32"), None)
    if field is not None and not device.singles:
        raise InputError(
            f"field {field.name!r} is float32, but {device_text(device)} does not round division and square "
            "root correctly, so results would differ from the CPU's. Use float64, another device, or cpu."
        )


def compile_for(device: Any, source: str) -> Any:
    """Compile the kernels of a program for a device, and return the native module.

    Raises
    ------
    RunError
        The compiler of the device rejects the kernels.
    """
    try:
        if device.interface == "opencl":
            return device.load(source, " ".join(OPENCL_OPTIONS) if device.singles else "")
        return device.load(compile_cuda(with_copies(device, source), device.architecture).read_bytes())
    except RuntimeError as error:
        raise RunError(f"kernels for {device_text(device)}: {error}") from None


@cache
def finder(device: Any) -> Any:
    """Return the native module whose kernels find non-finite values on a device; see `compile_for`."""
    return compile_for(device, device_headers(["device_find.h"]))


@cache
def copier(device: Any) -> Any:
    """Return the native module whose kernel copies arrays of other libraries; see `compile_for`."""
    return compile_for(device, device_headers(["device_copy.h"]))
