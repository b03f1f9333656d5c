"""How kernels of devices go through cells: as a user says, as was measured, or as most programs want it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from halocline.compile.cache import cache_folder
from halocline.compile.strategy import READS, Strategy
from halocline.errors import InputError
from halocline.run.tuning.patches import TUNE, keep, race, recalled

AUTO = "auto"
WORDS = (AUTO, TUNE, *READS)  # for `Execution.kernels`


@dataclass(frozen=True)
class TunedKernels:
    """What a measurement of strategies found.

    Attributes
    ----------
    strategy : Strategy or None
        The fastest; None where none was faster than the default.
    gain : float
        How many times as fast as the default.
    tried : int
        Strategies that were measured.
    """

    strategy: Strategy | None
    gain: float
    tried: int

    def __str__(self) -> str:
        if self.strategy is None:
            return f"{Strategy()}, the fastest of {self.tried} that were tried"
        return f"{self.strategy}; tuned: {self.gain:.2f} times as fast as {Strategy()}"


def check_kernels(text: str) -> None:
    """Raise InputError for a word that names no way to choose kernels."""
    if text not in WORDS:
        raise InputError(f"kernels {text!r}: expected {', '.join(WORDS[:-1])} or {WORDS[-1]}")


def fastest(
    choices: Sequence[Strategy], timer_of: Callable[[Strategy | None], Callable[[int], float]]
) -> TunedKernels:
    """Measure strategies in turn; all ranks call this, and find the same. See
    `halocline.run.tuning.patches.race`."""
    return TunedKernels(*race(choices, timer_of))


def strategies(ndim: int, staged: bool) -> tuple[Strategy, ...]:
    """Strategies that are worth a measurement beside the default, for programs with stages or without."""
    found = dict.fromkeys(_strategies(ndim))
    if staged:
        found |= dict.fromkeys(Strategy(stages="memory", reads=reads) for reads in READS)
    return tuple(strategy for strategy in found if strategy != Strategy())


def _strategies(ndim: int) -> Iterator[Strategy]:
    groups = [(32, 4), (32, 8), (64, 4), (128, 2)] if ndim == 3 else [(128, 1), (256, 1)]
    yield from (Strategy("direct", group, march) for group in groups[-2:] for march in (1, 8))
    yield from (Strategy("queue", group, march) for group in groups for march in (8, 32))
    yield from (Strategy("queue", (64, 4), unroll=unroll) for unroll in (2, 4))
    yield from (Strategy("queue", (64, 4), resident=resident) for resident in (2, 4))
    yield from (Strategy("planes", group, march) for group in groups[1:] for march in (16, 64))


def key(source: str, devices: Sequence[str], shape: Sequence[int], ranks: int) -> str:
    """What a measurement holds for: these kernels, as the default has them, on such devices, for a grid of
    this shape on this number of ranks."""
    return sha256(repr((source, tuple(devices), tuple(shape), ranks)).encode()).hexdigest()[:32]


def _place(name: str) -> Path:
    return cache_folder() / f"{name}.kernels.json"


def recall(name: str) -> TunedKernels | None:
    """What is remembered under a key; None where nothing is that can have been measured."""
    return recalled(TunedKernels, _place(name))


def remember(name: str, tuned: TunedKernels, program: str) -> None:
    """Keep it for later runs. Raises RunError where the cache cannot be written."""
    keep(_place(name), {"program": program, **asdict(tuned)})
