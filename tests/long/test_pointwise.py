"""Programs that are evaluated point by point have the bits of compiled ones, and need no compilation.

Fixed expressions cover every operation. Random ones nest all operations in each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halocline.run.fields import pointwise as module
from random_expressions import check_random_expressions, few, trees


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Choose whether all programs are compiled, or none that can be evaluated point by point."""

    def choose(always: bool) -> None:
        monkeypatch.setattr(module, "MOST_WORK", -1 if always else 2**40)

    return choose


@settings(few, max_examples=25)
@given(described=st.lists(trees, min_size=48, max_size=48))
def test_many_random_expressions_have_the_bits_of_compiled_ones(
    described: list[Any], compiled: Callable[[bool], None]
) -> None:
    check_random_expressions(described, compiled)
