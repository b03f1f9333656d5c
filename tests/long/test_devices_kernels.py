"""Device kernels give the CPU's bits with every strategy, and measured strategies are stored."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.plan import launches
from wide_stencil import star


@pytest.mark.parametrize("order", [2, 8])
def test_the_streaming_depth_does_not_change_bits(
    order: int, opencl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The length of 2.5D streaming, such as eight cells per plane read in advance, changes no bit."""
    shape = (70, 12, 12)
    expected = star(shape, order)
    lengths = set()

    def launch(*arguments: Any) -> Any:
        launch_plan = launched(*arguments)
        lengths.add(launch_plan.planes)
        return launch_plan

    launched = launches._launch
    monkeypatch.setattr(launches, "_launch", launch)
    for many_blocks, length in ((2, 4), (2**20, 4), (2, 16)):
        monkeypatch.setattr(launches, "MANY_BLOCKS", many_blocks)
        monkeypatch.setattr(launches, "DEFAULT_CELLS_PER_THREAD", length)
        assert star(shape, order, device="opencl:0") == expected, (many_blocks, length)
    assert {4, 16} <= lengths if order == 2 else {4, 64} <= lengths
