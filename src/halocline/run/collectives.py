"""Collective operations on Python objects that leave the cores to those who still work.

A rank that waits in MPI's own ones takes all of a core, also where a rank that it waits for, or a compiler
that this one runs, has none. Here a rank looks whether the others have come, and sleeps in between.
"""

from __future__ import annotations

import pickle
import time
from array import array
from itertools import accumulate, pairwise
from typing import Any

AT_ONCE = 5e-5  # seconds of waiting without sleep: where ranks have cores of their own, most waits end sooner
SHARE, LONGEST = 0.125, 2e-3  # a sleep: so much of what a rank has waited before, and at most so many seconds


def barrier(mpi: Any) -> None:
    """Return when all ranks have come, at about the same time."""
    _await(mpi.Ibarrier())
    mpi.Barrier()  # ranks that slept are there, too


def least(mpi: Any, number: int) -> int:
    """The least number of all ranks."""
    from mpi4py import MPI

    found = array("q", [0])
    _await(mpi.Iallreduce([array("q", [number]), MPI.INT64_T], [found, MPI.INT64_T], MPI.MIN))
    return found[0]


def allgather(mpi: Any, value: Any) -> list[Any]:
    """The value of every rank, by rank."""
    from mpi4py import MPI

    own = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    lengths = _lengths(mpi, own)
    ends = [0, *accumulate(lengths)]
    everything = bytearray(ends[-1])
    _await(mpi.Iallgatherv([own, MPI.BYTE], [everything, (lengths, ends[:-1]), MPI.BYTE]))
    return _values(everything, ends)


def gather(mpi: Any, value: Any) -> list[Any] | None:
    """The value of every rank on rank 0; None elsewhere."""
    from mpi4py import MPI

    own = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    lengths = _lengths(mpi, own)
    if mpi.rank > 0:
        _await(mpi.Igatherv([own, MPI.BYTE], None))
        return None
    ends = [0, *accumulate(lengths)]
    everything = bytearray(ends[-1])
    _await(mpi.Igatherv([own, MPI.BYTE], [everything, (lengths, ends[:-1]), MPI.BYTE]))
    return _values(everything, ends)


def bcast(mpi: Any, value: Any, root: int) -> Any:
    """The value of the rank `root`."""
    from mpi4py import MPI

    own = pickle.dumps(value, pickle.HIGHEST_PROTOCOL) if mpi.rank == root else b""
    length = array("q", [len(own)])
    _await(mpi.Ibcast([length, MPI.INT64_T], root))
    data = bytearray(own) if mpi.rank == root else bytearray(length[0])
    _await(mpi.Ibcast([data, MPI.BYTE], root))
    return value if mpi.rank == root else pickle.loads(data)


def _lengths(mpi: Any, own: bytes) -> list[int]:
    """Of what each rank has."""
    from mpi4py import MPI

    lengths = array("q", bytes(8 * mpi.size))
    _await(mpi.Iallgather([array("q", [len(own)]), MPI.INT64_T], [lengths, MPI.INT64_T]))
    return lengths.tolist()


def _values(everything: bytearray, ends: list[int]) -> list[Any]:
    whole = memoryview(everything)
    return [pickle.loads(whole[begin:end]) for begin, end in pairwise(ends)]


def _await(request: Any) -> None:
    begun = time.perf_counter()
    while not request.Test():
        waited = time.perf_counter() - begun
        if waited > AT_ONCE:
            time.sleep(min(SHARE * waited, LONGEST))
