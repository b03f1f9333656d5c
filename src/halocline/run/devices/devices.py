"""The devices that a rank drives, and kernels compiled for them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from functools import cache
from math import prod
from typing import Any

from halocline import forks
from halocline.compile.nvrtc import compile_cuda
from halocline.compile.strategy import SHARED_BYTES
from halocline.compile.targets.source import OPENCL_OPTIONS, device_headers
from halocline.errors import InputError, RunError
from halocline.lang.dtype import ITEMSIZE
from halocline.native import native
from halocline.plan.devices import DeviceChoice, deal_devices
from halocline.plan.rank import FieldPlan, SubdomainPlan
from halocline.plan.transfer import ON_DEVICES, chosen_methods
from halocline.run.ranks.communicator import Communicator
from halocline.words import counted


@dataclass(frozen=True)
class OnDevice:
    """Where one subdomain lies.

    Attributes
    ----------
    rank, subdomain : int
    device : str
        As the rank counts them: "cuda:0".
    name, driver : str
        Of the model, and the driver's version.
    """

    rank: int
    subdomain: int
    device: str
    name: str
    driver: str


def label(device: Any) -> str:
    """How a user names a device."""
    return f"{device.interface}:{device.index}"


def in_words(device: Any) -> str:
    """A device in messages."""
    return f"device {label(device)} ({device.name})"


def summary(places: Iterable[OnDevice]) -> str:
    """The devices of a run in words: "devices cuda:0, cuda:1 (NVIDIA H100)"; at least one."""
    models: dict[str, list[str]] = {}
    for place in dict.fromkeys(replace(place, rank=0, subdomain=0) for place in places):
        models.setdefault(place.name, []).append(place.device)
    count = sum(map(len, models.values()))
    named = ", ".join(f"{', '.join(devices)} ({name})" for name, devices in models.items())
    return f"device{'' if count == 1 else 's'} {named}"


def where(ranks: int, threads: int, places: Sequence[OnDevice] = ()) -> str:
    """Where something ran: "2 ranks of 4 threads", or "2 ranks, devices cuda:0, cuda:1 (NVIDIA H100)"."""
    if places:
        return f"{counted(ranks, 'rank')}, {summary(places)}"
    return f"{counted(ranks, 'rank')} of {counted(threads, 'thread')}"


DEVICE_VARIABLE = "HALOCLINE_DEVICE"

# Locations of the subdomains that the programs of this process have in each block of `devices_in_use`.
_records: list[set[OnDevice]] = []


def places_of(comm: Communicator, subdomains: Sequence[int], devices: Sequence[Any]) -> tuple[OnDevice, ...]:
    """Where the subdomains of all ranks lie; all ranks call this."""
    mine = [
        OnDevice(comm.rank, n, label(device), device.name, device.driver)
        for n, device in zip(subdomains, devices, strict=True)
    ]
    for places in _records:
        places.update(mine)
    return tuple(place for each in comm.allgather(mine) for place in each)


@contextmanager
def devices_in_use() -> Iterator[Callable[[Communicator], list[OnDevice]]]:
    """Note where subdomains lie in all runs of the block.

    Yield a function that returns these locations on all ranks, in order; all ranks call it.
    """
    places: set[OnDevice] = set()

    def of_all_ranks(comm: Communicator) -> list[OnDevice]:
        return sorted({place for own in comm.allgather(places) for place in own}, key=astuple)

    _records.append(places)
    try:
        yield of_all_ranks
    finally:
        _records.pop()


def present_devices(interface: str) -> list[Any]:
    """Return the native devices of an interface, "cuda" or "opencl", that this process sees.

    Raises
    ------
    RunError
        The parent used devices before it forked this process.
    """
    forks.claim(forks.DEVICES)
    return list(native().devices(interface))


def present_interface() -> str | None:
    """Return "cuda" where there are CUDA devices, else "opencl" where there are OpenCL devices, else None."""
    return next((name for name in ("cuda", "opencl") if present_devices(name)), None)


def chosen_here(choice: DeviceChoice, variable: str = "") -> list[Any]:
    """The native devices of this process that a user chose, perhaps by a variable of the environment.

    Raises
    ------
    InputError
        Some are not there, of different platforms, or without float64.
    """
    if choice.interface == "cpu":
        return []
    found = present_devices(choice.interface)
    try:
        platforms = [device.platform for device in found]
        chosen = [found[n] for n in choice.among(platforms, native().why_no_devices(choice.interface))]
        for device in chosen:
            if not device.doubles:
                raise InputError(
                    f"{in_words(device)} has no float64 with fma, which every sum over the grid needs: "
                    "choose another device, or cpu"
                )
    except InputError as error:
        raise InputError(f"{variable}: {error}" if variable else str(error)) from None
    return chosen


def devices_of_rank(choice: DeviceChoice, comm: Communicator) -> tuple[Any, ...]:
    """The native devices that this rank drives, one after the other; none for the CPU. All ranks call this.

    Raises
    ------
    InputError
        Devices that are not there, of different platforms, that cannot be shared out over the ranks of the
        node, or without float64.
    """
    if choice.interface == "cpu":
        return ()
    seen: list[Any] = []
    with comm.agreement(f"find devices {str(choice)!r}"):
        # what else names the same is one with it
        environment = os.environ.get(DEVICE_VARIABLE) == str(choice)
        seen = chosen_here(choice, DEVICE_VARIABLE if environment else "")
    node = comm.allgather_of_node((comm.rank, [device.identity for device in seen]))
    dealt = deal_devices([identities for _, identities in node])
    mine = [rank for rank, _ in node].index(comm.rank)
    return tuple(seen[n] for n in dealt[mine])


def shared_bytes(devices: Sequence[Any]) -> int:
    """Bytes that kernels for these devices can let the threads of a group share: what each of them has."""
    return min([SHARED_BYTES, *(int(device.local_memory) for device in devices)])


def sharers(devices: Sequence[Any], comm: Communicator) -> Mapping[Any, int]:
    """How many ranks drive each device of this rank; all ranks call this.

    Parameters
    ----------
    devices : sequence of native Device
    comm : Communicator
        Its nodes are machines: what is counted as several (`Communicator.grouped`) may share a device.
    """
    mine = {device: device.identity for device in devices}
    node = comm.allgather_of_node(list(mine.values()))
    ranks = Counter(identity for each in node for identity in each)
    return {device: ranks[identity] for device, identity in mine.items()}


def device_methods(methods: Iterable[str] | str | None, interface: str) -> tuple[str, ...]:
    """The transfer methods between devices of an interface, of those that a user allows. Whether memory is
    shared between processes, and known to MPI, shows when they run."""
    wanted = ON_DEVICES if methods is None else chosen_methods(methods)
    able = ON_DEVICES if interface == "cuda" else ("self", "peer", "mpi")
    return tuple(name for name in able if name in wanted and (name != "gpu_aware" or methods is not None))


# -- memory --------------------------------------------------------------------------------------------------

SEGMENT = 128  # bytes: see native/src/device/storage.cpp


def storage_bytes(field: FieldPlan) -> int:
    """What a field of a subdomain takes of a device's memory: there rows are padded."""
    itemsize = ITEMSIZE[field.dtype]
    first, end = field.owned.lo[-1], field.storage.hi[-1]
    before, row = (first - field.storage.lo[-1]) * itemsize, (end - first) * itemsize
    return prod(field.storage.shape[:-1]) * (_segments(before) + _segments(row))


def _segments(size: int) -> int:
    return -(-size // SEGMENT) * SEGMENT


def subdomain_bytes(own: SubdomainPlan, known: Container[str] = ()) -> int:
    """What a program takes of a device's memory for a subdomain: the fields that are not known yet, scratch
    memory and messages."""
    scratch = max((sweep.scratch_bytes for sweep in own.sweeps), default=0)
    messages = sum(message.bytes for sweep in own.sweeps for message in (*sweep.sends, *sweep.receives))
    fields = sum(storage_bytes(field) for field in own.fields if field.name not in known)
    return fields + scratch + messages


def check_memory(device: Any, needed: int, ranks: int) -> None:
    """RunError where the ranks that share a device need more of its memory than is free."""
    free = device.free_memory
    if ranks * needed > free:
        who = f"the {ranks} ranks that share it need" if ranks > 1 else "its fields need"
        raise RunError(
            f"{in_words(device)}: {who} {ranks * needed / 1e9:,.1f} GB, but only {free / 1e9:,.1f} GB are "
            "free: take more devices, a smaller grid or float32"
        )


# -- kernels -------------------------------------------------------------------------------------------------


@contextmanager
def device_errors(doing: str) -> Iterator[None]:
    """Raise RunError for device errors in the block, or where the parent used devices before the fork."""
    forks.check(forks.DEVICES)
    try:
        yield
    except (native().DeviceError, native().OutOfMemory) as error:
        raise RunError(f"{doing}: {error}") from None


def check_dtypes(device: Any, fields: Iterable[FieldPlan]) -> None:
    """InputError where a device computes float32 in its own way."""
    field = next((field for field in fields if field.dtype == "float32"), None)
    if field is not None and not device.singles:
        raise InputError(
            f"field {field.name!r} is float32, but {in_words(device)} does not round its division and square "
            "root correctly, and results would differ from the CPU's: take float64, another device, or cpu"
        )


def compile_for(device: Any, source: str) -> Any:
    """The native module of a program's kernels for a device.

    Raises
    ------
    RunError
        The device's compiler rejects them.
    """
    try:
        if device.interface == "opencl":
            return device.load(source, " ".join(OPENCL_OPTIONS) if device.singles else "")
        return device.load(compile_cuda(source, device.architecture).read_bytes())
    except RuntimeError as error:
        raise RunError(f"kernels for {in_words(device)}: {error}") from None


@cache
def finder(device: Any) -> Any:
    """The native module that looks for values that are not finite on a device; see `compile_for`."""
    return compile_for(device, device_headers(["device_find.h"]))
