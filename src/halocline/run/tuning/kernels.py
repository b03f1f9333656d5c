"""Tuning of device kernels: candidate strategies, and the key under which the result is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256

from halocline.compile.strategy import READS, Strategy, block_splits
from halocline.run.tuning.patches import TUNE, Tuned

AUTO = "auto"
WORDS = (AUTO, TUNE, *READS)  # accepted by `Execution.kernels`


def strategies(ndim: int, staged: bool) -> tuple[Strategy, ...]:
    """Return the strategies to measure besides the default, for programs with or without stages."""
    candidates = dict.fromkeys(_strategies(ndim))
    if staged:
        candidates |= dict.fromkeys(Strategy(stages="memory", reads=reads) for reads in READS)
    return tuple(strategy for strategy in candidates if strategy != Strategy())


def _strategies(ndim: int) -> Iterator[Strategy]:
    blocks = [(32, 4), (32, 8), (64, 4), (128, 2)] if ndim == 3 else [(128, 1), (256, 1)]
    splits = partial(block_splits, ndim)
    yield from (
        Strategy("direct", splits(block, planes=planes)) for block in blocks[-2:] for planes in (1, 8)
    )
    yield from (Strategy("queue", splits(block, planes=planes)) for block in blocks for planes in (8, 32))
    yield from (Strategy("queue", splits(blocks[-2]), resident_blocks=count) for count in (2, 4))
    # several cells per thread; a vector has at most as many cells as a load of 16 bytes
    yield from (Strategy("queue", splits(block, cells=4)) for block in blocks[:2])
    if ndim == 3:
        yield Strategy("queue", splits((32, 4)), resident_blocks=3)
        yield from (Strategy("queue", splits((32, 4), rows=2, cells=cells)) for cells in (1, 4))
        yield from (Strategy("planes", splits(block, planes=64, rows=2)) for block in ((32, 4), (64, 4)))
        yield from (Strategy("planes", splits((32, 4), planes=64, rows=rows, cells=4)) for rows in (1, 2))
    else:
        yield from (Strategy("planes", splits(block, planes=64, cells=n)) for block in blocks for n in (1, 4))


def key(
    source: str, devices: Sequence[str], shape: Sequence[int], ranks: int, choices: Sequence[Strategy]
) -> str:
    """Return the hash under which the result of a measurement is stored.

    Parameters
    ----------
    source : str
        Source of the kernels with the default strategy.
    devices : sequence of str
        Models of the devices, their drivers, and whether they copy asynchronously.
    shape : sequence of int
        Shape of the grid.
    ranks : int
        Number of ranks.
    choices : sequence of Strategy
        Strategies that are measured.
    """
    facts = source, tuple(devices), tuple(shape), ranks, tuple(choices)
    return sha256(repr(facts).encode()).hexdigest()[:32]


def text_of(tuned: Tuned[Strategy]) -> str:
    """Return the fastest strategy and its speed as text."""
    comparison = tuned.comparison(str(Strategy()))
    return comparison if tuned.choice is None else f"{tuned.choice}; {comparison}"
