"""Whether MPI sends out of the memory of devices, and receives into it.

A library that does not know of devices ends the process when it is given one's address: nothing is tried
where a library does not say that it knows. What it says is then verified, since it may hold for another
network, or for a driver that is not there.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Sequence
from typing import Any

from halocline.native import native
from halocline.run.ranks.communicator import Communicator

SECONDS = 20.0  # for the messages that verify
SIZES = (64, 1 << 20)  # bytes: those that MPI sends at once, and those that it asks the receiver about

# Libraries by words of their version that take such addresses where the start of the run says so.
VARIABLES = {"CRAY MPICH": "MPICH_GPU_SUPPORT_ENABLED", "MVAPICH2": "MV2_USE_CUDA"}
GPU_CUDA = 0  # MPIX_GPU_SUPPORT_CUDA


def claimed(library: str) -> bool:
    """Whether an MPI library says that it takes addresses of CUDA devices."""
    from mpi4py import MPI

    version = MPI.Get_library_version()
    for words, variable in VARIABLES.items():
        if words in version:
            return os.environ.get(variable) == "1"
    functions = ctypes.CDLL(library)
    if hasattr(functions, "MPIX_GPU_query_support"):  # MPICH and what comes of it
        answer = ctypes.c_int(0)
        if functions.MPIX_GPU_query_support(GPU_CUDA, ctypes.byref(answer)) == 0:
            return answer.value != 0
    if hasattr(functions, "MPIX_Query_cuda_support"):  # Open MPI, MVAPICH
        return bool(functions.MPIX_Query_cuda_support())
    return False


def why_not_aware(comm: Communicator, devices: Sequence[Any]) -> tuple[str, bool]:
    """Why MPI is not given addresses of devices, "" where it can be; and whether that is news, since the
    library says that it takes them. All ranks call this."""
    if comm.mpi is None or comm.size == 1:
        return "there is one rank", False
    library = native().mpi_library()
    if not all(comm.allgather(all(d.interface == "cuda" for d in devices))):
        return "MPI libraries cannot read the memory of OpenCL devices", False
    if not all(comm.allgather(claimed(library))):
        return f"the MPI library, {os.path.basename(library)}, does not say that it takes CUDA memory", False
    reasons = [reason for reason in comm.allgather(_verified(comm, devices)) if reason]
    return (reasons[0], True) if reasons else ("", False)


def _verified(comm: Communicator, devices: Sequence[Any]) -> str:
    """What is wrong with messages from every device of this rank to itself and to the next rank, and into it
    from the one before; "" for nothing."""
    from mpi4py import MPI

    everyone = comm.allgather(len(devices))
    own = comm.mpi.Dup()
    own.Set_errhandler(MPI.ERRORS_RETURN)
    wrong, end = "", time.monotonic() + SECONDS
    # with as many rounds on every rank, so that each send meets a receive
    for number in range(max(everyone)):
        device = devices[number % len(devices)]
        for size in SIZES:
            for step in (0, 1):
                to, source = (comm.rank + step) % comm.size, (comm.rank - step) % comm.size
                if not wrong:
                    wrong = _round(own, device, size, to, source, end)
                # a rank that has given up leaves the others without a message: all leave together
                wrong = next((each for each in comm.allgather(wrong) if each), "")
                if wrong:
                    return wrong  # the communicator keeps what may still be on its way
    own.Free()
    return ""


def _round(comm: Any, device: Any, size: int, to: int, source: int, end: float) -> str:
    """Send bytes of a device to a rank, and receive the same number from another."""
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
                    f"{name}: {size} bytes from rank {source} or to rank {to} did not come in {SECONDS:g} s"
                )
            time.sleep(0.001)
    except MPI.Exception as error:
        _KEPT.append((sent, received))
        return f"{name}: {error}"
    found = np.zeros(size, np.uint8)
    queue.download(received, found)
    queue.finish()
    if (found == _pattern(source, size)).all():
        return ""
    return f"{name}: other bytes came from rank {source} than were sent"


_KEPT: list[Any] = []  # memory that MPI may still write to


def _pattern(rank: int, size: int) -> Any:
    import numpy as np

    return ((np.arange(size) * 13 + rank * 29 + 3) % 251 + 1).astype(np.uint8)
