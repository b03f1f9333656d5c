"""How fast memory is while all ranks use it at once: what a memory-bound sweep is measured against."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

from halocline.errors import RunError
from halocline.native import native
from halocline.run.devices.devices import device_errors, in_words
from halocline.run.domain.domain import Domain
from halocline.run.host.machine import data_caches
from halocline.run.ranks.communicator import Communicator

log = logging.getLogger("halocline")

LEAST = 256 * 2**10  # bytes a thread: enough for a pass to be timed, little enough for a cache of its own
ENOUGH = 128 * 2**20  # bytes a thread: beyond the caches of most cores, in a round of milliseconds
# seconds of a measurement: all rounds of a shorter one may meet a moment in which a core is taken away; but
# beside a run that was shorter it need not last longer
LONGEST, SHORTEST = 0.1, 0.02
ROUND = 0.01  # seconds of a round on devices
FEWEST = 3  # rounds, however long one takes
# bytes of each of two buffers of a device: beyond the caches of most; no more than time and memory allow
LEAST_COPIED, MOST_COPIED = 32 * 2**20, 256 * 2**20


def duration_beside(run: float) -> float:
    """How long to measure beside a run that took `run` seconds; seconds."""
    return min(LONGEST, max(SHORTEST, run))


def bandwidth(
    comm: Communicator, devices: Sequence[Any], threads: int, working_set: int, duration: float = LONGEST
) -> float | None:
    """Bytes a second that the memory of this run gives to what streams through it, all ranks at once: of its
    devices where it has some (`device_bandwidth`), else of its nodes (`triad_bandwidth`). None, with a
    warning, where no memory is left to measure it with: what was computed before counts all the same. The
    measurement takes `duration` seconds, the same on all ranks."""
    try:
        # what fails here fails on all ranks; what fails later must not keep one from the others' rounds
        make = _copies(comm, devices, working_set) if devices else _triad(comm, threads, working_set)
    except (RunError, MemoryError) as error:
        if comm.rank == 0:
            log.warning("the bandwidth of the memory is not known: %s", error)
        return None
    return best_rate(comm, make, duration)


def bandwidth_share(domain: Domain, working_set: int, rate: float) -> float | None:
    """`rate`, bytes a second that crossed the memory of all ranks, over `bandwidth`, measured now; None where
    that is not known. All ranks call this."""
    most = bandwidth(domain.comm, domain.devices, domain.threads, working_set)
    return None if most is None else rate / most


def yardstick(devices: Sequence[Any]) -> str:
    """What `bandwidth` measures, in words."""
    return "copies within the same devices now" if devices else "a += s * b on the same cores now"


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
        Of all ranks together, the same on each.
    """
    return best_rate(comm, _triad(comm, threads, working_set))


def _triad(comm: Communicator, threads: int, working_set: int) -> Callable[[], int]:
    """A round of `triad_bandwidth` on this rank."""
    largest = max((cache.bytes for cache in data_caches()), default=0)
    size = min(max(working_set, threads * LEAST), max(threads * ENOUGH, 2 * largest))
    with comm.agreement("measure bandwidth"):
        streams = native().Streams(threads, size)
    return partial(streams.triad, _passes(threads, size))


def device_bandwidth(comm: Communicator, devices: Sequence[Any], working_set: int) -> float:
    """Bytes a second, read and written, of copies within the memory of devices, on all of them at once.

    Parameters
    ----------
    comm : Communicator
        All its ranks call this together. Ranks that drive the same device share what it gives.
    devices : sequence of native Device
        Of this rank.
    working_set : int
        Bytes that this rank sweeps over.

    Returns
    -------
    float
        Of all ranks together, the same on each.

    Raises
    ------
    RunError
        A device has no memory left for it.
    """
    return best_rate(comm, _copies(comm, devices, working_set), LONGEST)


def _copies(comm: Communicator, devices: Sequence[Any], working_set: int) -> Callable[[], int]:
    """Return a round of `device_bandwidth` on this rank."""
    size = min(max(working_set, LEAST_COPIED), MOST_COPIED)
    passes = 1
    with comm.agreement("measure bandwidth of devices"), device_errors("measuring bandwidth"):
        copies = [_Copies(device, size) for device in dict.fromkeys(devices)]

    def make() -> int:
        nonlocal passes
        begun, moved = perf_counter(), 0
        with device_errors("measuring bandwidth"):
            for each in copies:
                each.start(passes)
            for each in copies:
                moved += each.finish(passes)
        # rounds are equally long, however fast each device is; the first copies are slow
        passes = max(1, round(passes * ROUND / (perf_counter() - begun)))
        return moved

    return make


class _Copies:
    """Copies from one buffer of a device to another, over and over."""

    def __init__(self, device: Any, size: int) -> None:
        self.queue = device.queue()
        while True:  # what others take is not always known before
            try:
                self.source, self.target = device.allocate(size), device.allocate(size)
                return
            except MemoryError:
                size //= 2
                if size < LEAST:
                    raise RunError(
                        f"{in_words(device)} has no memory left to measure its bandwidth with: take a "
                        "smaller grid, or more devices"
                    ) from None

    def start(self, passes: int) -> None:
        for _ in range(passes):
            self.queue.copy(self.target, self.source)
        self.queue.flush()

    def finish(self, passes: int) -> int:
        """Wait; return the bytes that were read and written."""
        self.queue.finish()
        return 2 * passes * int(self.source.bytes)


def copy_bandwidth(threads: int, size: int) -> float:
    """Bytes a second of a copy past the cache, over two arrays of `size` bytes together, on one rank."""
    streams = native().Streams(threads, size)
    return best_rate(Communicator(), partial(streams.copy, _passes(threads, size)))


def _passes(threads: int, size: int) -> int:
    """Over `size` bytes, in a round: beside so much work barriers, and the start of threads, are short."""
    return -(-threads * ENOUGH // size)


def best_rate(comm: Communicator, make: Callable[[], int], duration: float = LONGEST) -> float:
    """Bytes a second of all ranks at once, in the best of some rounds.

    A round lasts from the moment in which its first rank begins to that in which its last one ends. Ranks
    that were timed one by one would each report a moment in which the others left memory, or a core, to it.

    Parameters
    ----------
    comm : Communicator
        All its ranks call this together.
    make : callable
        This rank's share of a round; returns the bytes that it moved.
    duration : float
        Seconds of all rounds together, the same on all ranks.

    Returns
    -------
    float
        The same on all ranks.
    """
    rates: list[float] = []
    spent = 0.0
    while spent < duration or len(rates) < FEWEST:
        comm.barrier()
        begun = perf_counter()
        moved = make()
        comm.barrier()  # the rank that began first sees the last one end, without a clock in common
        shares = comm.allgather((moved, perf_counter() - begun))
        seconds = max(took for _, took in shares)
        rates.append(sum(moved for moved, _ in shares) / seconds)
        spent += seconds
    return max(rates)
