"""Strategies of kernels, selected by name."""

from __future__ import annotations

from typing import Any

import pytest

import halocline as hc
from halocline.compile.strategy import Split, Strategy, block_splits, thin_splits
from halocline.errors import InputError


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"reads": "fast"}, "'fast' is unknown; known: direct, queue, planes"),
        ({"splits": block_splits(3, (64, 8))}, "at most 256 threads"),
        ({"resident_blocks": -1}, "positive"),
        ({"splits": (Split(2, "thread", 32),) * 2}, "two splits of one kind along one axis"),
        ({"splits": (Split(2, "block", 32), Split(2, "thread", 32))}, "cannot fix the cells of a block"),
        ({"splits": (Split(1, "thread", 32),)}, "expected threads along axis 2"),
        (
            {"splits": (*block_splits(2), Split(1, "unroll", 2))},
            "axis 1 is streamed; expected no other split",
        ),
        ({"splits": (*block_splits(1), Split(1, "unroll", 2))}, "along an axis without threads"),
        ({"splits": thin_splits(3), "resident_blocks": 2}, "resident_blocks needs a number of threads"),
        ({"reads": "planes", "resident_blocks": 2}, "and direct or queue"),
        ({"stages": "heap"}, "storage of stages of device kernels is 'heap'; expected shared or memory"),
    ],
)
def test_invalid_strategies_are_reported(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Strategy(**wrong)


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ((1, "sideways", 4), "'sideways' is unknown; known: block, thread, stream, unroll, vector"),
        ((3, "thread", 4), "expected axis 0, 1 or 2"),
        ((1, "vector", 2), r"expected axis 0, 1 or 2 \(1 for unroll, 2 for vector\)"),
        ((0, "unroll", 2), r"expected axis 0, 1 or 2 \(1 for unroll, 2 for vector\)"),
        ((1, "unroll", 0), "a positive size"),
        ((1, "unroll", 5), "at most 4 for unroll; 1, 2 or 4 for vector"),
        ((2, "vector", 3), "1, 2 or 4 for vector"),
        ((2, "stream", 3), "expected axis 0, 1 or 2"),
    ],
)
def test_invalid_splits_are_reported(split: tuple[int, str, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Split(*split)


def test_strategies_name_their_splits() -> None:
    splits = block_splits(3, (32, 4), planes=16, rows=2, cells=4)
    assert str(Strategy("queue", splits, "memory", 2)) == (
        "queue, thread blocks of 32 x 4, vectors of 4, 2 rows per thread, 16 planes per thread, "
        "at least 2 resident blocks, stages in memory"
    )
    assert str(Strategy()) == "queue, thread blocks by registers"
    assert str(Strategy("direct", thin_splits(2))) == "direct, thread blocks by the cells of a launch"


def test_invalid_kernels_are_reported() -> None:
    with pytest.raises(InputError, match="kernels 'fast' is unknown; known: auto, tune, direct, queue"):
        hc.Simulation(hc.Grid((4, 4)), lambda u: {}, kernels="fast")
