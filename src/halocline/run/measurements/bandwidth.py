"""Memory bandwidth while all ranks access memory, as the reference for memory-bound sweeps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

from halocline.errors import RunError
from halocline.native import native
from halocline.run.devices.devices import device_errors, device_text
from halocline.run.domain.domain import Domain
from halocline.run.host.machine import data_caches
from halocline.run.ranks.communicator import Communicator

log = logging.getLogger("halocline")

# Minimum bytes per thread: enough to time a pass, and within the private cache of a core.
LEAST = 256 * 2**10
# Bytes per thread and round: more than most caches hold, and enough for a few milliseconds.
ENOUGH = 128 * 2**20
# Duration of a measurement in seconds. In a measurement shorter than LONGEST, the system may interrupt every
# round. After a short run, a measurement as short as SHORTEST is sufficient.
LONGEST, SHORTEST = 0.1, 0.02
ROUND = 0.01  # duration of a round on devices, in seconds
FEWEST = 3  # minimum number of rounds
# Limits for the bytes of each of the two device buffers. The buffers should not fit into a cache. The upper
# limit saves time and memory.
LEAST_COPIED, MOST_COPIED = 32 * 2**20, 256 * 2**20


def duration_beside(run: float) -> float:
    """Return the duration of the bandwidth measurement after a run of `run` seconds, in seconds."""
    return min(LONGEST, max(SHORTEST, run))


def bandwidth(
    comm: Communicator, devices: Sequence[Any], threads: int, working_set: int, duration: float = LONGEST
) -> float | None:
    """Return the memory bandwidth of this run in bytes per second, with all ranks active.

    If the run uses devices, the result is their bandwidth (`device_bandwidth`), otherwise the bandwidth of
    the nodes (`triad_bandwidth`). The measurement takes `duration` seconds, which must be equal on all ranks.
    If there is no free memory for the measurement, the function logs a warning and returns None. It raises no
    error, because the results of the run remain valid.
    """
    try:
        # An error in the following line occurs on all ranks, so that no rank begins the rounds alone.
        make = _copies(comm, devices, working_set) if devices else _triad(comm, threads, working_set)
    except (RunError, MemoryError) as error:
        if comm.rank == 0:
            log.warning("the bandwidth of the memory is not known: %s", error)
        return None
    return best_rate(comm, make, duration)


def bandwidth_share(domain: Domain, working_set: int, rate: float) -> float | None:
    """Return `rate` as a fraction of the measured `bandwidth`, or None if it is unknown; collective.

    `rate` is the memory traffic of all ranks in bytes per second.
    """
    limit = bandwidth(domain.comm, domain.devices, domain.threads, working_set)
    return None if limit is None else rate / limit


def yardstick(devices: Sequence[Any]) -> str:
    """Return a description of the measurement that `bandwidth` makes."""
    return "copies within the same devices" if devices else "a += s * b on these cores"


def triad_bandwidth(comm: Communicator, threads: int, working_set: int) -> float:
    """Return the bandwidth of a += s * b (McCalpin's triad in place), run by all threads of all ranks.

    Parameters
    ----------
    comm : Communicator
        All ranks of the communicator call this function together.
    threads : int
        Number of threads of this rank.
    working_set : int
        Bytes that the sweeps of this rank access. The arrays of the measurement have the same size. For a
        problem that fits into the cache, the reference is therefore the bandwidth of the cache. The arrays
        have at most twice the size of the largest cache, or `ENOUGH` bytes per thread if this is more. Larger
        arrays do not change the result.

    Returns
    -------
    float
        Bandwidth in bytes per second, summed over all ranks; identical on all ranks.
    """
    return best_rate(comm, _triad(comm, threads, working_set))


def _triad(comm: Communicator, threads: int, working_set: int) -> Callable[[], int]:
    """Return the function that runs one round of `triad_bandwidth` on this rank."""
    largest = max((cache.bytes for cache in data_caches()), default=0)
    size = min(max(working_set, threads * LEAST), max(threads * ENOUGH, 2 * largest))
    with comm.agreement("measure bandwidth"):
        streams = native().Streams(threads, size)
    return partial(streams.triad, _passes(threads, size))


def device_bandwidth(comm: Communicator, devices: Sequence[Any], working_set: int) -> float:
    """Return the bandwidth of copies within device memory, on all devices at the same time.

    Parameters
    ----------
    comm : Communicator
        All ranks of the communicator call this function together. Ranks that use the same device share its
        bandwidth.
    devices : sequence of native Device
        Devices of this rank.
    working_set : int
        Bytes that the sweeps of this rank access.

    Returns
    -------
    float
        Bytes read and written per second, summed over all ranks; identical on all ranks.

    Raises
    ------
    RunError
        A device has no free memory for the buffers.
    """
    return best_rate(comm, _copies(comm, devices, working_set), LONGEST)


def _copies(comm: Communicator, devices: Sequence[Any], working_set: int) -> Callable[[], int]:
    """Return the function that runs one round of `device_bandwidth` on this rank."""
    size = min(max(working_set, LEAST_COPIED), MOST_COPIED)
    passes = 1
    with comm.agreement("measure bandwidth of devices"), device_errors("measuring bandwidth"):
        copies = [_Copies(device, size) for device in dict.fromkeys(devices)]

    def make() -> int:
        nonlocal passes
        start, bytes_moved = perf_counter(), 0
        with device_errors("measuring bandwidth"):
            for copy in copies:
                copy.start(passes)
            for copy in copies:
                bytes_moved += copy.finish(passes)
        # Adjust the number of copies so that a round takes ROUND seconds. The first copies are slow, so the
        # number is adjusted after each round.
        passes = max(1, round(passes * ROUND / (perf_counter() - start)))
        return bytes_moved

    return make


class _Copies:
    """Repeated copies from one buffer of a device to another."""

    def __init__(self, device: Any, size: int) -> None:
        self.queue = device.queue()
        while True:  # halve the size until it fits; the free memory may be unknown
            try:
                self.source, self.target = device.allocate(size), device.allocate(size)
                return
            except MemoryError:
                size //= 2
                if size < LEAST:
                    raise RunError(
                        f"{device_text(device)} has no free memory for a measurement of its bandwidth. Use "
                        "a smaller grid or more devices."
                    ) from None

    def start(self, passes: int) -> None:
        for _ in range(passes):
            self.queue.copy(self.target, self.source)
        self.queue.flush()

    def finish(self, passes: int) -> int:
        """Wait for the copies, and return the number of bytes read and written."""
        self.queue.finish()
        return 2 * passes * int(self.source.bytes)


def copy_bandwidth(threads: int, size: int) -> float:
    """Return the bandwidth of a copy with streaming stores on one rank, in bytes per second.

    The two arrays together have `size` bytes.
    """
    streams = native().Streams(threads, size)
    return best_rate(Communicator(), partial(streams.copy, _passes(threads, size)))


def _passes(threads: int, size: int) -> int:
    """Return the number of passes per round over `size` bytes.

    With this number, a round takes so long that the times for barriers and for the start of threads are
    negligible.
    """
    return -(-threads * ENOUGH // size)


def best_rate(comm: Communicator, make: Callable[[], int], duration: float = LONGEST) -> float:
    """Return the maximum rate of all ranks together over several rounds, in bytes per second.

    A round lasts from the start on the first rank to the end on the last rank. If each rank measured its own
    maximum rate, it would report rounds in which other ranks did not use the memory.

    Parameters
    ----------
    comm : Communicator
        All ranks of the communicator call this function together.
    make : callable
        Function that runs one round on this rank, and returns the number of bytes moved.
    duration : float
        Duration of all rounds in seconds, equal on all ranks.

    Returns
    -------
    float
        Rate, identical on all ranks.
    """
    rates: list[float] = []
    spent = 0.0
    while spent < duration or len(rates) < FEWEST:
        comm.barrier()
        start = perf_counter()
        bytes_moved = make()
        comm.barrier()  # so each duration includes the slowest rank, without a common clock
        shares = comm.allgather((bytes_moved, perf_counter() - start))
        seconds = max(duration_of_rank for _, duration_of_rank in shares)
        rates.append(sum(bytes_moved for bytes_moved, _ in shares) / seconds)
        spent += seconds
    return max(rates)
