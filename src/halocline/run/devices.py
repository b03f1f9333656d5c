"""The devices that a rank drives, and kernels compiled for them."""

from __future__ import annotations

from typing import Any

from halocline.compile.nvrtc import compile_cuda
from halocline.errors import InputError, RunError
from halocline.plan.devices import DeviceChoice, deal_devices
from halocline.run.mpi import Communicator, native

# IEEE arithmetic in float32 too; see native/include/halocline/device.h.
OPENCL_OPTIONS = "-cl-fp32-correctly-rounded-divide-sqrt"


def devices_of_rank(choice: DeviceChoice, comm: Communicator) -> tuple[Any, ...]:
    """The native devices that this rank drives, one after the other; none for the CPU. All ranks call this.

    Raises
    ------
    InputError
        Devices that are not there, that cannot be shared out over the ranks of the node, or without float64.
    """
    if choice.interface == "cpu":
        return ()
    seen: list[Any] = []
    with comm.agreement(f"find devices {str(choice)!r}"):
        found = native().devices(choice.interface)
        seen = [found[n] for n in choice.among(len(found), native().why_no_devices(choice.interface))]
        for device in seen:
            if not device.doubles:
                raise InputError(
                    f"device {choice.interface}:{device.index} ({device.name}) has no float64 with fma, "
                    "which every sum over the grid needs: choose another device, or cpu"
                )
    told = (comm.rank, [device.identity for device in seen])
    node = [told] if comm.node is None else comm.node.allgather(told)
    dealt = deal_devices([identities for _, identities in node])
    mine = [rank for rank, _ in node].index(comm.rank)
    return tuple(seen[n] for n in dealt[mine])


def compile_for(device: Any, source: str) -> Any:
    """The native module of a program's kernels for a device.

    Raises
    ------
    RunError
        The device's compiler rejects them.
    """
    try:
        if device.interface == "opencl":
            return device.load(source, OPENCL_OPTIONS)
        return device.load(compile_cuda(source, device.architecture).read_bytes())
    except RuntimeError as error:
        raise RunError(
            f"kernels for device {device.interface}:{device.index} ({device.name}): {error}"
        ) from None
