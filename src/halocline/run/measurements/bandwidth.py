"""Memory bandwidth with all ranks active, as the reference for memory-bound sweeps."""

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

# Minimum bytes per thread: enough for a timed pass, and within the private cache of a core.
LEAST = 256 * 2**10
# Bytes per thread and round: beyond the caches of most cores, and a few milliseconds long.
ENOUGH = 128 * 2**20
# Duration of a measurement in seconds. In a shorter measurement, the system may interrupt all rounds. For a
# short run, a shorter measurement is sufficient.
LONGEST, SHORTEST = 0.1, 0.02
ROUND = 0.01  # seconds of a round on devices
FEWEST = 3  # minimum number of rounds
# Bytes of each of two device buffers: beyond most caches, and limited by time and memory.
LEAST_COPIED, MOST_COPIED = 32 * 2**20, 256 * 2**20


def duration_beside(run: float) -> float:
    """Return the duration in seconds of a bandwidth measurement for a run of `run` seconds."""
    return min(LONGEST, max(SHORTEST, run))


def bandwidth(
    comm: Communicator, devices: Sequence[Any], threads: int, working_set: int, duration: float = LONGEST
) -> float | None:
    """Return the memory bandwidth of this run in bytes per second, with all ranks active.

    The result is the bandwidth of the devices, if any (`device_bandwidth`), otherwise that of the nodes
    (`triad_bandwidth`). If there is no free memory for the measurement, the function logs a warning and
    returns None, because earlier results remain valid. The measurement takes `duration` seconds, equal on all
    ranks.
    """
    try:
        # Errors here occur on all ranks. Later errors must not end the rounds on one rank only.
        make = _copies(comm, devices, working_set) if devices else _triad(comm, threads, working_set)
    except (RunError, MemoryError) as error:
        if comm.rank == 0:
            log.warning("the bandwidth of the memory is not known: %s", error)
        return None
    return best_rate(comm, make, duration)


def bandwidth_share(domain: Domain, working_set: int, rate: float) -> float | None:
    """Return `rate` as a fraction of the current `bandwidth`; None if the bandwidth is unknown.

    All ranks call this function. `rate` is the memory traffic of all ranks in bytes per second.
    """
    limit = bandwidth(domain.comm, domain.devices, domain.threads, working_set)
    return None if limit is None else rate / limit


def yardstick(devices: Sequence[Any]) -> str:
    """Return a description of the measurement in `bandwidth`."""
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
        Bytes that this rank sweeps over. The arrays have the same size, so that a problem that fits in cache
        is compared with the bandwidth of the cache. The size is limited to twice the largest cache, because a
        larger size does not change the result.

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
        All ranks of the communicator call this function together. Ranks with the same device share its
        bandwidth.
    devices : sequence of native Device
        Devices of this rank.
    working_set : int
        Bytes that this rank sweeps over.

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
        # Rounds have equal duration on all devices. The number is updated, because the first copies are slow.
        passes = max(1, round(passes * ROUND / (perf_counter() - start)))
        return bytes_moved

    return make


class _Copies:
    """Repeated copies from one buffer of a device to another."""

    def __init__(self, device: Any, size: int) -> None:
        self.queue = device.queue()
        while True:  # the memory use of other processes may be unknown
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
    """Return the bandwidth in bytes per second of a copy with streaming stores on one rank.

    The two arrays together have `size` bytes.
    """
    streams = native().Streams(threads, size)
    return best_rate(Communicator(), partial(streams.copy, _passes(threads, size)))


def _passes(threads: int, size: int) -> int:
    """Return the number of passes per round over `size` bytes.

    The round is so long that the time for barriers and the start of threads is negligible.
    """
    return -(-threads * ENOUGH // size)


def best_rate(comm: Communicator, make: Callable[[], int], duration: float = LONGEST) -> float:
    """Return the maximum rate of all ranks together over several rounds, in bytes per second.

    A round lasts from the start of its first rank to the end of its last rank. If ranks were timed
    separately, each would report moments in which other ranks left memory or a core idle.

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
        comm.barrier()  # the first rank observes the end of the last rank without a common clock
        shares = comm.allgather((bytes_moved, perf_counter() - start))
        seconds = max(duration_of_rank for _, duration_of_rank in shares)
        rates.append(sum(bytes_moved for bytes_moved, _ in shares) / seconds)
        spent += seconds
    return max(rates)
