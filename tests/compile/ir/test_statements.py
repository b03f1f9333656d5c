"""Statements and value tables of kernels."""

from __future__ import annotations

from halocline.compile.ir.kernel import Array, Table, below
from halocline.compile.ir.statements import (
    Pieces,
    Stage,
    Strip,
    flat,
    rewritten,
)
from halocline.compile.passes.loops import loops
from kernels import small


def test_value_tables_are_unique_in_any_order() -> None:
    arrays = [Array(name, "float64", label=(name.encode(), b"")) for name in "uv"]
    numbers = []
    for order in ("uv", "vu"):
        table = Table(b"", arrays)
        loaded = [table.add("load", (), (name, (0,)), "float64", 3) for name in order]
        total = table.add("add", (loaded[0], loaded[1]), None, "float64", 3)
        assert table.add("add", (loaded[1], loaded[0]), None, "float64", 3) == total
        assert table.add("sub", (loaded[1], loaded[0]), None, "float64", 3) != total
        zero, other = (table.add("const", (), number, "float64", 0) for number in (0.0, -0.0))
        assert zero != other
        numbers.append(table.digest(total))
        assert below(table.values, (total,), {loaded[0]}) == [loaded[1], total]
    assert numbers[0] == numbers[1]


def test_inner_statements_are_rewritten_first() -> None:
    kernel = loops(small())
    inner = [type(s).__name__ for s in flat(kernel.body)]
    assert inner.index("Nest") < inner.index("Axis") < inner.index("Strip") < inner.index("Store")
    wrapped = rewritten(kernel.body, lambda s: (Pieces((s,), 8),) if isinstance(s, Strip) else (s,))
    assert sum(isinstance(s, Pieces) for s in flat(wrapped)) == 2
    assert not any(isinstance(s, Stage) for s in flat(rewritten((Stage("s", 0),), lambda _: ())))
