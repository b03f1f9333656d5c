"""Grids with inactive blocks: the computed cells next to them, their cost, and wrong input."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from compared_blocks import check_blocks
from random_blocks import cases


@given(cases())
@settings(max_examples=150, deadline=None)
def test_many_random_holes_have_the_bits_of_dense_fields(case: dict[str, Any]) -> None:
    check_blocks(case)
