"""Fast choices, such as the shape of patches: measured in turn where a user asks for it, and remembered."""

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

from halocline.archive.files import whole
from halocline.compile.cache import cache_folder, own_folder
from halocline.errors import RunError
from halocline.lang.blocks import Blocks
from halocline.plan.decompose import Decomposition
from halocline.plan.transfer import Transfers
from halocline.run.host.machine import data_caches

log = logging.getLogger("halocline")

T = TypeVar("T")

TUNE, BY_CACHES = "tune", "caches"  # words for a patch: see Execution
BY_CACHE_SIZE = "by cache size"  # the default, in words
TURN = 0.02  # seconds that one measurement takes at least
ROUNDS = 5  # measurements of those that may win
NEAR = 1.2  # times the best of the first round: who is slower is out
GAIN = 1.02  # times faster than by cache size a patch must be: less may be chance

Patch = tuple[int, ...]


@dataclass(frozen=True)
class Tuned(Generic[T]):
    """Result of a measurement of choices.

    Attributes
    ----------
    choice : object or None
        Fastest choice; None where none was faster than the default.
    gain : float
        Speed relative to the default: 1 where the default is the fastest.
    tried : int
        Number of choices that were measured.
    """

    choice: T | None
    gain: float
    tried: int

    def compared(self, default: str) -> str:
        """Return the speed relative to the default as text."""
        if self.choice is None:
            return f"{default}, the fastest of {self.tried} that were tried"
        return f"tuned: {self.gain:.2f} times as fast as {default}"


def recall(kind: Any, place: Path) -> Any:
    """Return the measurement of a kind, such as `Tuned[Patch]`, in a file of the cache.

    The result is None where there is no file, or where a measurement cannot have the content of the file.
    """
    try:
        text = place.read_bytes()
    except OSError:
        return None
    from pydantic import TypeAdapter  # most runs have no such file, and start sooner without it

    try:
        tuned = TypeAdapter(kind).validate_json(text, strict=True)
    except ValueError:
        return None
    return tuned if tuned.gain >= 1 and isfinite(tuned.gain) and tuned.tried >= 1 else None


def remember(place: Path, tuned: Tuned[Any], program: str) -> None:
    """Write a measurement to a file of the cache for later runs.

    Raises
    ------
    RunError
        The cache cannot be written.
    """
    try:
        own_folder(place.parent)
        with whole(place) as making:
            making.touch(0o600)
            making.write_text(json.dumps({"program": program, **asdict(tuned)}))
    except OSError as error:
        raise RunError(
            f"what was tuned cannot be kept in {place.parent} ({error.strerror}); set HALOCLINE_CACHE to a "
            "folder that can be written"
        ) from None


def in_turn(
    timers: Mapping[T, Callable[[], float]],
    rounds: int,
    on_progress: Callable[[int], None] | None = None,
) -> dict[T, list[float]]:
    """Measure several times in turn, since the speed of a machine drifts; all ranks call this.

    Parameters
    ----------
    timers : mapping to callable
        Each returns seconds.
    rounds : int
        Measurements of each. Every second round runs in reverse order.
    on_progress : callable, optional
        Called with the number of rounds done.
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
    """Measure choices in turn; all ranks call this, and find the same. One that cannot run is left out, and
    one that is far slower is dropped at once, with its memory.

    Parameters
    ----------
    choices : sequence
        To be tried beside the default.
    timer_of : callable
        Of a choice, or None for the default: a function that runs a number of passes, and returns the seconds
        of the slowest rank.

    Raises
    ------
    RunError
        The default cannot run.
    """
    timers: dict[T | None, Callable[[int], float]] = {None: timer_of(None)}
    timers[None](1)
    passes = max(1, ceil(TURN / max(timers[None](1), 1e-7)))
    once: dict[T | None, float] = {None: timers[None](passes)}
    for choice in choices:
        try:
            timers[choice] = timer_of(choice)
            timers[choice](1)
            once[choice] = timers[choice](passes)
        except RunError as error:
            log.info("%s is not tried: %s", choice, error)
        near = NEAR * min(once.values())
        for out in [each for each in timers if each is not None and once.get(each, inf) > near]:
            del timers[out]

    def gains(able: Sequence[T | None]) -> dict[T | None, float]:
        """Return the speed of each relative to the default: the median of ratios within a round."""
        times = in_turn({choice: partial(timers[choice], passes) for choice in able}, ROUNDS)
        return {choice: statistics.median(map(truediv, times[None], own)) for choice, own in times.items()}

    found = gains(list(timers))
    best = max(found, key=lambda choice: found[choice])
    # the best of many is partly luck: measured once more, it must still be better
    gain = 1.0 if best is None else gains([None, best])[best]
    return Tuned(best, gain, len(once)) if gain >= GAIN else Tuned(None, 1.0, len(once))


def largest(decomposition: Decomposition) -> tuple[int, ...]:
    """The shape of the largest subdomain."""
    return tuple(ceil(n / p) for n, p in zip(decomposition.shape, decomposition.parts, strict=True))


def key(
    library: str,
    transfers: Transfers,
    threads: int,
    ranks_of_node: int,
    schedule: str,
    blocks: Blocks | None = None,
) -> str:
    """What a measurement holds for: these kernels on this kind of processor, subdomains of this size, and
    these numbers of threads and ranks on a node.

    Parameters
    ----------
    library : str
        The key of the compiled kernels; it holds source, compiler, flags and the model of the CPU.
    transfers : Transfers
        How the grid is cut, and how messages are sent.
    schedule : str
        See Execution.
    blocks : Blocks, optional
        Which of them are active.
    """
    layout, cut = transfers.layout, transfers.layout.decomposition
    ways = transfers.methods if layout.ranks > 1 else ()
    parts = (
        library, data_caches(), os.cpu_count(), largest(cut), tuple(p > 1 for p in cut.parts), threads,
        ranks_of_node, layout.subdomains_per_rank, ways, schedule, blocks,
    )  # fmt: skip
    return sha256(repr(parts).encode()).hexdigest()[:32]


def place_of(key: str, what: str = "patch") -> Path:
    """Return the file of the cache for the measurement with a key, of patches or of "kernels"."""
    return cache_folder() / f"{key}.{what}.json"


def recalled(key: str, axes: int) -> Tuned[Patch] | None:
    """Return the measurement that is remembered under a key, for a grid with this number of axes."""
    tuned: Tuned[Patch] | None = recall(Tuned[Patch], place_of(key))
    shape = None if tuned is None else tuned.choice
    return tuned if shape is None or (len(shape) == axes and min(shape) >= 1) else None


def text_of(tuned: Tuned[Patch]) -> str:
    """Return the fastest shape of patches and its speed as text."""
    why = tuned.compared(BY_CACHE_SIZE)
    return why if tuned.choice is None else f"{' x '.join(map(str, tuned.choice))}, {why}"
