"""Translation, scheduling and printing of a kernel."""

from __future__ import annotations

from halocline.compile.ir import pipeline
from halocline.compile.ir.show import show
from halocline.compile.ir.verify import verify
from halocline.compile.passes.loops import loops, place
from halocline.compile.passes.pieces import pieces
from halocline.compile.passes.scratch import scratch
from kernels import small


def test_a_kernel_from_translation_to_printing() -> None:
    kernel = pipeline.run(small(), scratch, loops, pieces, place)
    verify(kernel)
    text = show(kernel)
    assert "array s: float64 scratch\n" in text
    assert "allocate s extent=((1, 0),) top=(0,)\n" in text
    assert "            v6 = mul v4 v5\n" in text
    assert "store r v6  # gas.py:9\n" in text
    assert text.count("v0 = load u[0]") == 2  # one load in each of the two loops
    assert text.count("v5 = const 2.0") == 1
    verify(small())
    assert show(small()).index("v6 = mul") < show(small()).index("store s v1  # gas.py:7")
