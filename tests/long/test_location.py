"""Locations of expressions: orders of operators between locations, and rejected combinations."""

from __future__ import annotations

import math

import pytest

from staggered_acoustics import acoustic


@pytest.mark.parametrize("order", [4, 6])
def test_a_wave_on_faces_and_cells_converges_at_higher_order(order: int) -> None:
    errors = [acoustic(n, order)[1] for n in (12, 24)]
    assert min(order, 4) - 0.3 < math.log2(errors[0] / errors[1])
