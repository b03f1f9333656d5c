"""Strategies of kernels, selected by name."""

from __future__ import annotations

from typing import Any

import pytest

import halocline as hc
from halocline.compile.strategy import Strategy
from halocline.errors import InputError


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"reads": "fast"}, "'fast' is unknown; known: direct, queue, planes"),
        ({"block_shape": (64, 8)}, "at most 256 threads"),
        ({"cells_per_thread": 0}, "positive"),
        ({"stages": "heap"}, "storage of stages of device kernels is 'heap'; expected shared or memory"),
    ],
)
def test_invalid_strategies_are_reported(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Strategy(**wrong)


def test_invalid_kernels_are_reported() -> None:
    with pytest.raises(InputError, match="kernels 'fast' is unknown; known: auto, tune, direct, queue"):
        hc.Simulation(hc.Grid((4, 4)), lambda u: {}, kernels="fast")
