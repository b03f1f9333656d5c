"""Inlining of stages into their readers."""

from __future__ import annotations

import pytest

from halocline.compile.ir.statements import (
    Stage,
    roots,
)
from halocline.compile.ir.verify import verify
from halocline.compile.passes.inline import inline
from kernels import staged


@pytest.mark.parametrize(("storage", "is_stored"), [("inline", False), ("patch", True), ("auto", False)])
def test_cheap_stages_are_recomputed_at_each_read(storage: str, is_stored: bool) -> None:
    kernel = inline(staged(storage))
    verify(kernel)
    assert any(isinstance(s, Stage) for s in kernel.body) == is_stored
    assert ("s" in kernel.array) == is_stored
    read = {offset for name, offset in kernel.loads(roots(kernel.body)) if name == "u"}
    assert read == ({(0,), (1,)} if is_stored else {(-1,), (0,), (1,)})
