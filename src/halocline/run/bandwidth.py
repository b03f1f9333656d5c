"""How fast memory is while all ranks use it at once: what a memory-bound sweep is measured against."""

from __future__ import annotations

import time

from halocline.run.machine import data_caches
from halocline.run.mpi import Communicator, native

LEAST = 256 * 2**10  # bytes a thread: enough for a pass to be timed, little enough for a cache of its own
ENOUGH = 128 * 2**20  # bytes a thread: beyond the caches of most cores, and some ten milliseconds a pass
MOMENT = 0.05  # seconds at least: short passes may all meet a moment in which a core is taken away


def triad_bandwidth(comm: Communicator, threads: int, working_set: int) -> float:
    """Bytes a second of a += s * b (McCalpin's triad in place), run by every thread of every rank at once.

    Parameters
    ----------
    comm : Communicator
        All its ranks call this together.
    threads : int
        Of this rank.
    working_set : int
        Bytes that this rank sweeps over. Arrays of that size are used, so that a problem that fits in cache
        is compared with the bandwidth of the cache; up to twice the largest cache, beyond which a larger size
        changes nothing.

    Returns
    -------
    float
        The sum over all ranks, each at its best of a few passes.
    """
    largest = max((cache.bytes for cache in data_caches()), default=0)
    size = min(max(working_set, threads * LEAST), max(threads * ENOUGH, 2 * largest))
    comm.barrier()
    best, end = 0.0, time.monotonic() + MOMENT
    while not best or time.monotonic() < end:
        best = max(best, float(native().triad(threads, size)))
    return 1e9 * sum(comm.allgather(best))
