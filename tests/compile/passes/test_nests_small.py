"""Loop nests of small kernels."""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir.statements import (
    Nest,
    Reduce,
    Store,
)
from halocline.compile.ir.verify import verify
from halocline.compile.passes.nests import nests
from halocline.compile.passes.reach import reach
from kernels import staged

HERE = ((0, 0),)


# -- stages ------------------------------------------------------------------------------------------------


def test_the_nest_of_a_stage_covers_all_reads() -> None:
    kernel = staged("patch")
    kernel = replace(
        kernel,
        arrays=tuple(replace(array, staggered=(False,)) for array in kernel.arrays),
        body=(*kernel.body[:2], Reduce(0, "sum", 0, (False,))),
    )
    kernel_of_nests = nests(kernel, reach(kernel).points)
    verify(kernel_of_nests)
    first, last = (s for s in kernel_of_nests.body if isinstance(s, Nest))
    assert first.extent == ((1, -1),)
    assert last.extent == HERE
    assert [type(s) for s in last.body] == [Store, Reduce]
