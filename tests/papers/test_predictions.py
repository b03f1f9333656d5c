"""Predictions beside published values."""

from __future__ import annotations

import pytest

from published_ratios import ratios


@pytest.mark.parametrize("name", ["umbc-4.1", "umbc-7.1"])
def test_predicted_solves_take_what_is_published(name: str) -> None:
    """N = 4096; smaller times than 3 s are printed with less than one digit."""
    found = ratios(name, sizes=(4096,), least=3)
    assert len(found) >= 12
    assert sum(1 / 1.5 <= ratio <= 1.5 for ratio in found) >= 0.75 * len(found)
    assert all(0.5 <= ratio <= 2 for ratio in found)
