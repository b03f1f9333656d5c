"""Random programs on random grids: the engine compared with NumPy, and many ranks with one rank.

An example is a program that is drawn as data and runs on several grids. Shapes and spacings are not compiled,
so that one compilation serves many runs.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_program_checks import agrees_with_numpy, on_ranks, shapes_odd, shapes_tiny
from random_programs import ANY_SPEED, Recipe, options, recipes

# --- one process compared with NumPy ---


@settings(max_examples=600, **ANY_SPEED)
@given(recipes(), shapes_odd, st.lists(shapes_tiny, min_size=3, max_size=3), options)
def test_many_random_programs_agree_with_numpy(
    recipe: Recipe, large: tuple[int, ...], tiny: list[tuple[int, ...]], drawn: dict[str, Any]
) -> None:
    agrees_with_numpy(recipe, large, tiny, drawn)


# --- several ranks compared with one ---


@pytest.mark.ranks(3, 8, timeout=3000)
def test_many_random_programs_have_the_same_bits_on_ranks() -> None:
    assert on_ranks(150) > 150
