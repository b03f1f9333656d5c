"""Detection of GPU-aware MPI, which sends from device memory and receives into it.

An MPI library without this support ends the process when it receives a device address. Therefore test
messages are sent only if the library reports support. These messages are still necessary, because the library
may report support although the present network or driver does not provide it.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Sequence
from typing import Any

from halocline.native import native
from halocline.run.ranks.communicator import Communicator

SECONDS = 20.0  # time limit of the test messages, in seconds
SIZES = (64, 1 << 20)  # bytes of an eager message and of a rendezvous message

# Environment variable that enables device addresses, by a word in the version text of the MPI library.
VARIABLES = {"CRAY MPICH": "MPICH_GPU_SUPPORT_ENABLED", "MVAPICH2": "MV2_USE_CUDA"}
GPU_CUDA = 0  # MPIX_GPU_SUPPORT_CUDA


def claimed(library: str) -> bool:
    """Return True if an MPI library reports support for addresses of CUDA devices."""
    from mpi4py import MPI

    version = MPI.Get_library_version()
    for words, variable in VARIABLES.items():
        if words in version:
            return os.environ.get(variable) == "1"
    functions = ctypes.CDLL(library)
    if hasattr(functions, "MPIX_GPU_query_support"):  # MPICH and its derivatives
        answer = ctypes.c_int(0)
        if functions.MPIX_GPU_query_support(GPU_CUDA, ctypes.byref(answer)) == 0:
            return answer.value != 0
    if hasattr(functions, "MPIX_Query_cuda_support"):  # Open MPI, MVAPICH
        return bool(functions.MPIX_Query_cuda_support())
    return False


def not_aware_reason(comm: Communicator, devices: Sequence[Any]) -> tuple[str, bool]:
    """Return the reason why MPI cannot use device memory, and True if it requires a warning; collective.

    The reason is "" if MPI can use device memory. A warning is required if the library reports support but
    the test messages fail.
    """
    if comm.mpi is None or comm.size == 1:
        return "there is one rank", False
    library = native().mpi_library()
    if not all(comm.allgather(all(d.interface == "cuda" for d in devices))):
        return "MPI libraries cannot read the memory of OpenCL devices", False
    if not all(comm.allgather(claimed(library))):
        return f"the MPI library, {os.path.basename(library)}, does not report support for CUDA memory", False
    reasons = [reason for reason in comm.allgather(_verified(comm, devices)) if reason]
    return (reasons[0], True) if reasons else ("", False)


def _verified(comm: Communicator, devices: Sequence[Any]) -> str:
    """Return the error of test messages between the devices of all ranks, or "" if all succeed.

    Each device sends messages to this rank and to the next rank, and receives from this rank and the previous
    rank.
    """
    from mpi4py import MPI

    device_counts = comm.allgather(len(devices))
    test_comm = comm.mpi.Dup()
    test_comm.Set_errhandler(MPI.ERRORS_RETURN)
    failure, end = "", time.monotonic() + SECONDS
    # All ranks run the same number of rounds, so that each send has a matching receive.
    for number in range(max(device_counts)):
        device = devices[number % len(devices)]
        for size in SIZES:
            for step in (0, 1):
                to, source = (comm.rank + step) % comm.size, (comm.rank - step) % comm.size
                if not failure:
                    failure = _round(test_comm, device, size, to, source, end)
                # After a failure, the rank sends no further messages, so all ranks stop together.
                failure = next((reason for reason in comm.allgather(failure) if reason), "")
                if failure:
                    return failure  # test_comm is not freed, since messages may be pending
    test_comm.Free()
    return ""


def _round(comm: Any, device: Any, size: int, to: int, source: int, end: float) -> str:
    """Send device memory to a rank, receive as many bytes from a rank, and return the error or ""."""
    import numpy as np
    from mpi4py import MPI

    name = f"MPI with memory of device cuda:{device.index}"
    try:
        sent, received, queue = device.allocate(size), device.allocate(size), device.queue()
        queue.upload(sent, _pattern(comm.rank, size))
        queue.finish()
    except (RuntimeError, MemoryError) as error:
        return str(error)
    try:
        requests = [
            comm.Irecv([MPI.memory.fromaddress(received.address, size), size, MPI.BYTE], source, size % 1000),
            comm.Isend([MPI.memory.fromaddress(sent.address, size), size, MPI.BYTE], to, size % 1000),
        ]
        while not MPI.Request.Testall(requests):
            if time.monotonic() > end:
                _KEPT.append((sent, received, requests))
                return (
                    f"{name}: {size} bytes from rank {source} or to rank {to} did not arrive within "
                    f"{SECONDS:g} s"
                )
            time.sleep(0.001)
    except MPI.Exception as error:
        _KEPT.append((sent, received))
        return f"{name}: {error}"
    content = np.zeros(size, np.uint8)
    queue.download(received, content)
    queue.finish()
    if (content == _pattern(source, size)).all():
        return ""
    return f"{name}: the bytes received from rank {source} differ from those sent"


_KEPT: list[Any] = []  # memory to which MPI may still write


def _pattern(rank: int, size: int) -> Any:
    import numpy as np

    return ((np.arange(size) * 13 + rank * 29 + 3) % 251 + 1).astype(np.uint8)
