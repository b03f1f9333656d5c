"""Measurement of choices, such as the shape of patches, and a cache of the results."""

from __future__ import annotations

import json
import logging
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from math import ceil, inf, isfinite
from operator import truediv
from pathlib import Path
from typing import Any, Generic, TypeVar

from halocline.archive.files import atomic_file
from halocline.compile.cache import cache_folder, own_folder
from halocline.errors import RunError
from halocline.lang.blocks import Blocks
from halocline.plan.decompose import Decomposition
from halocline.plan.transfer import Transfers
from halocline.run.host.machine import data_caches

log = logging.getLogger("halocline")

T = TypeVar("T")

TUNE, BY_CACHES = "tune", "caches"  # values of `Execution.patch`
BY_CACHE_SIZE = "by cache size"  # text for the default patch

TURN = 0.02  # minimum duration of one measurement in seconds
ROUNDS = 5  # number of measurements of each candidate after the first round

# Maximum time of a candidate in the first round, relative to the fastest choice so far.
NEAR = 1.2

# Minimum speed relative to the default. Smaller gains may be measurement noise.
GAIN = 1.02

Patch = tuple[int, ...]

FILE_KEYS = {"measured_count": "tried"}  # keys of attributes in files of the cache


@dataclass(frozen=True)
class Tuned(Generic[T]):
    """Result of a measurement of choices.

    Attributes
    ----------
    choice : object or None
        Fastest choice; None if the default is the fastest.
    gain : float
        Speed relative to the default; 1 if the default is the fastest.
    measured_count : int
        Number of choices that were measured.
    """

    choice: T | None
    gain: float
    measured_count: int

    # the key of `measured_count` in files of the cache
    __pydantic_config__ = {"alias_generator": lambda name: FILE_KEYS.get(name, name)}  # noqa: RUF012

    def comparison(self, default: str) -> str:
        """Return the speed relative to the default as text."""
        if self.choice is None:
            return f"{default}, the fastest of {self.measured_count} candidates"
        return f"tuned: {self.gain:.2f} times as fast as {default}"


def recall(kind: Any, place: Path) -> Any:
    """Read a measurement of the type `kind`, such as `Tuned[Patch]`, from a file of the cache.

    The result is None if the file is missing or its content is invalid for this type.
    """
    try:
        text = place.read_bytes()
    except OSError:
        return None
    from pydantic import TypeAdapter  # imported late, since most runs have no such file

    try:
        tuned = TypeAdapter(kind).validate_json(text, strict=True)
    except ValueError:
        return None
    return tuned if tuned.gain >= 1 and isfinite(tuned.gain) and tuned.measured_count >= 1 else None


def remember(place: Path, tuned: Tuned[Any], program: str) -> None:
    """Write a measurement to a file of the cache for later runs.

    Raises
    ------
    RunError
        The cache cannot be written.
    """
    try:
        own_folder(place.parent)
        with atomic_file(place) as new_file:
            new_file.touch(0o600)
            facts = {FILE_KEYS.get(name, name): value for name, value in asdict(tuned).items()}
            new_file.write_text(json.dumps({"program": program, **facts}))
    except OSError as error:
        raise RunError(
            f"tuning results cannot be stored in {place.parent} ({error.strerror}); set HALOCLINE_CACHE to "
            "a folder that can be written"
        ) from None


def run_in_turn(
    timers: Mapping[T, Callable[[], float]],
    rounds: int,
    on_progress: Callable[[int], None] | None = None,
) -> dict[T, list[float]]:
    """Run several timers in turn, and return their times; collective.

    The timers alternate because the speed of a machine drifts.

    Parameters
    ----------
    timers : mapping to callable
        Functions that return seconds, by name.
    rounds : int
        Number of measurements of each timer. Every second round runs in reverse order.
    on_progress : callable, optional
        Called with the number of completed rounds.

    Returns
    -------
    dict of list of float
        Times of each timer in seconds, by name and round.
    """
    times: dict[T, list[float]] = {name: [] for name in timers}
    for number in range(rounds):
        names: Iterable[T] = timers if number % 2 == 0 else reversed(list(timers))
        for name in names:
            times[name].append(timers[name]())
        if on_progress is not None:
            on_progress(number + 1)
    return times


def race(choices: Sequence[T], timer_of: Callable[[T | None], Callable[[int], float]]) -> Tuned[T]:
    """Measure choices in turn, and return the fastest; collective, with the same result on all ranks.

    A choice that cannot run is skipped. A much slower choice is dropped after the first round, which frees
    its memory.

    Parameters
    ----------
    choices : sequence
        Candidates besides the default.
    timer_of : callable
        Function that prepares a choice, or the default for None. The returned function runs the
        given number of passes, and returns the seconds of the slowest rank.

    Raises
    ------
    RunError
        The default cannot run.
    """
    timers: dict[T | None, Callable[[int], float]] = {None: timer_of(None)}
    timers[None](1)
    passes = max(1, ceil(TURN / max(timers[None](1), 1e-7)))
    first_times: dict[T | None, float] = {None: timers[None](passes)}
    for choice in choices:
        try:
            timers[choice] = timer_of(choice)
            timers[choice](1)
            first_times[choice] = timers[choice](passes)
        except RunError as error:
            log.info("%s is not measured: %s", choice, error)
        limit = NEAR * min(first_times.values())
        for slow_choice in [
            candidate
            for candidate in timers
            if candidate is not None and first_times.get(candidate, inf) > limit
        ]:
            del timers[slow_choice]

    def gains(candidates: Sequence[T | None]) -> dict[T | None, float]:
        """Return the median, over the rounds, of the speed of each candidate relative to the default."""
        times = run_in_turn({choice: partial(timers[choice], passes) for choice in candidates}, ROUNDS)
        return {
            choice: statistics.median(map(truediv, times[None], choice_times))
            for choice, choice_times in times.items()
        }

    speeds = gains(list(timers))
    best = max(speeds, key=lambda choice: speeds[choice])
    # The fastest of many choices may be fastest by chance. It must also be faster in a second measurement.
    gain = 1.0 if best is None else gains([None, best])[best]
    return Tuned(best, gain, len(first_times)) if gain >= GAIN else Tuned(None, 1.0, len(first_times))


def largest(decomposition: Decomposition) -> tuple[int, ...]:
    """Return the shape of the largest subdomain."""
    return tuple(ceil(n / p) for n, p in zip(decomposition.shape, decomposition.parts, strict=True))


def key(
    library: str,
    transfers: Transfers,
    threads: int,
    ranks_of_node: int,
    schedule: str,
    blocks: Blocks | None = None,
) -> str:
    """Return the hash under which the result of a measurement of patches is stored.

    Parameters
    ----------
    library : str
        Hash of the compiled kernels, which depends on source, compiler, flags and the model of the CPU.
    transfers : Transfers
        Layout and transfer methods.
    threads : int
        Number of threads per rank.
    ranks_of_node : int
        Number of ranks per node.
    schedule : str
        Schedule of threads; see `Execution.schedule`.
    blocks : Blocks, optional
        Active blocks of the grid.
    """
    layout, cut = transfers.layout, transfers.layout.decomposition
    methods = transfers.methods if layout.ranks > 1 else ()
    parts = (
        library, data_caches(), os.cpu_count(), largest(cut), tuple(p > 1 for p in cut.parts), threads,
        ranks_of_node, layout.subdomains_per_rank, methods, schedule, blocks,
    )  # fmt: skip
    return sha256(repr(parts).encode()).hexdigest()[:32]


def cache_file(key: str, kind: str = "patch") -> Path:
    """Return the cache file for a key; `kind` is "patch" or "kernels"."""
    return cache_folder() / f"{key}.{kind}.json"


def recall_patches(key: str, axes: int) -> Tuned[Patch] | None:
    """Return the cached measurement for a key and a grid with `axes` axes, or None."""
    tuned: Tuned[Patch] | None = recall(Tuned[Patch], cache_file(key))
    shape = None if tuned is None else tuned.choice
    return tuned if shape is None or (len(shape) == axes and min(shape) >= 1) else None


def text_of(tuned: Tuned[Patch]) -> str:
    """Return the fastest shape of patches and its speed as text."""
    comparison = tuned.comparison(BY_CACHE_SIZE)
    return comparison if tuned.choice is None else f"{' x '.join(map(str, tuned.choice))}, {comparison}"
