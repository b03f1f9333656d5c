"""Kernels of devices: every way through cells gives the CPU's bits, and what is measured is remembered."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.plan import launches
from wide_stencil import star


@pytest.mark.parametrize("order", [2, 8])
def test_how_far_threads_march_changes_no_bit(
    order: int, opencl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on large grids: eight cells for each plane that is read before the first."""
    shape = (70, 12, 12)
    expected = star(shape, order)
    marches = set()

    def launch(*given: Any) -> Any:
        made = launched(*given)
        marches.add(made.march)
        return made

    launched = launches._launch
    monkeypatch.setattr(launches, "_launch", launch)
    for many, first in ((2, 4), (2**20, 4), (2, 16)):
        monkeypatch.setattr(launches, "MANY_GROUPS", many)
        monkeypatch.setattr(launches, "MARCH", first)
        assert star(shape, order, device="opencl:0") == expected, (many, first)
    assert {4, 16} <= marches if order == 2 else {4, 64} <= marches
