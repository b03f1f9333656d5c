"""Differences between grids."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from halocline.errors import InputError
from halocline.study.differences import differences


@pytest.mark.parametrize("periodic", [True, False])
def test_differences_between_grids_decrease_with_the_order(periodic: bool) -> None:
    """Differences between grids fall with the order of the solution, in cells and on faces."""

    def state(n: int) -> dict[str, Any]:
        edges = np.arange(n + 1) / n
        primitive = -np.cos(2 * np.pi * edges) / (2 * np.pi)
        means = n * np.diff(primitive)
        faces = np.sin(2 * np.pi * (edges[:-1] if periodic else edges)) + 1 / n**2
        return {"T": means, "T@": np.array([False]), "v": faces, "v@": np.array([True])}

    result = differences([state(n) for n in (8, 16, 32)])
    assert result[2] is None
    # means agree exactly; faces differ by the known error, divided by almost 1
    assert result[0] == pytest.approx((1 / 64 - 1 / 256) / (1 + 1 / 256), rel=1e-2)
    assert math.log2(float(result[0] or 0) / float(result[1] or 1)) == pytest.approx(2.0, abs=0.02)
    with pytest.raises(InputError, match="not a multiple of the 8 cells"):
        differences([state(8), state(12)])
