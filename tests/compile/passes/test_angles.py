"""Range checks of angles before the loops that compute their sines and cosines."""

from __future__ import annotations

import halocline as hc
from halocline.compile.ir.statements import (
    CheckAngles,
    SelectByAngles,
    Strip,
    flat,
)
from halocline.compile.ir.verify import verify
from halocline.compile.passes.angles import angles, split_by_angles
from halocline.compile.passes.loops import loops
from halocline.compile.passes.scratch import scratch
from kernels import in_nest, kernel_of


def fields(count: int) -> list[hc.Field]:
    grid = hc.Grid((8,), (1.0,), periodic=True)
    return [grid.field(f"u{n}") for n in range(count)]


# -- sines and cosines -------------------------------------------------------------------------------------


def test_the_range_of_angles_is_checked_before_the_loop_of_their_sines() -> None:
    (u,) = fields(1)
    kernel = angles(loops(scratch(in_nest(kernel_of(hc.sin(u * 2.0) + hc.cos(u))))))
    verify(kernel)
    (range_check,) = (s for s in flat(kernel.body) if isinstance(s, CheckAngles))
    assert [kernel.values[n].op for n in range_check.angles] == ["mul", "load"]
    chosen = split_by_angles(kernel)
    verify(chosen)
    (selection,) = (s for s in flat(chosen.body) if isinstance(s, SelectByAngles))
    assert [s.small_angles for s in flat(selection.small_angles) if isinstance(s, Strip)] == [True]
    assert [s.small_angles for s in flat(selection.all_angles) if isinstance(s, Strip)] == [False]


def test_loops_without_angles_are_unchanged() -> None:
    (u,) = fields(1)
    kernel = loops(scratch(in_nest(kernel_of(hc.exp(u)))))
    assert angles(kernel) == kernel
    assert split_by_angles(kernel) == kernel
