"""Extent of the reads of a kernel around a cell, including reads through stages."""

from __future__ import annotations

from halocline.compile.ir.statements import (
    Reduce,
    Store,
)
from halocline.compile.passes.reach import reach
from kernels import staged


def test_extents_propagate_through_stages() -> None:
    reads = reach(staged())
    assert reads.points["s"] == {((-1,), ())}  # the arrays of `small` are not staggered
    assert {o for o, _ in reads.points["u"]} == {(-1,), (0,), (1,)}
    (result, result_reads), (total, total_reads) = reads.per_result
    assert isinstance(result, Store)
    assert result_reads == {"u": {(1,), (-1,)}}
    assert isinstance(total, Reduce)
    assert total_reads == {"u": {(0,)}}
