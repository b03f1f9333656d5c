"""How kernels of devices go through cells: as a user says, as was measured, or as most programs want it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

from halocline.compile.strategy import READS, Strategy
from halocline.run.tuning.patches import TUNE, Tuned

AUTO = "auto"
WORDS = (AUTO, TUNE, *READS)  # for `Execution.kernels`


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


def text_of(tuned: Tuned[Strategy]) -> str:
    """Return the fastest strategy and its speed as text."""
    why = tuned.compared(str(Strategy()))
    return why if tuned.choice is None else f"{tuned.choice}; {why}"
