"""The reach of kernels around a cell, through stages too."""

from __future__ import annotations

from halocline.compile.ir.statements import (
    Reduce,
    Store,
)
from halocline.compile.passes.reach import reach
from kernels import staged


def test_what_is_read_reaches_through_stages() -> None:
    found = reach(staged())
    assert found.points["s"] == {((-1,), ())}  # the arrays of `small` are staggered along nothing
    assert {o for o, _ in found.points["u"]} == {(-1,), (0,), (1,)}
    (result, mine), (total, whole) = found.per_result
    assert isinstance(result, Store)
    assert mine == {"u": {(1,), (-1,)}}
    assert isinstance(total, Reduce)
    assert whole == {"u": {(0,)}}
