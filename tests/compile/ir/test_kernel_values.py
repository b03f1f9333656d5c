"""Substitution, renumbering and compaction of the values of a kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halocline.compile.ir.kernel import Table, Value, compacted, renumbered, substituted
from halocline.compile.ir.statements import (
    Branch,
    CheckAngles,
    ComputeInvariants,
    Lanes,
    Let,
    MarkSelection,
    Reduce,
    Stage,
    Store,
    Strip,
    roots,
)
from halocline.compile.ir.verify import verify
from kernels import in_nest, small


def test_a_compacted_kernel_has_only_used_values() -> None:
    kernel = compacted(in_nest(replace(small(), body=(Store("r", 1),))))
    verify(kernel)
    assert [value.op for value in kernel.values] == ["load", "mul"]
    assert compacted(kernel) == kernel


def test_values_can_be_substituted() -> None:
    kernel = small()
    table = Table(kernel.grid, kernel.arrays, kernel.values)
    two = table.add("load", (), ("u", (2,)), "float64", 3)
    (result,) = substituted(table, (6,), {3: two})
    assert table.values[table.values[result].args[0]] == Value("sub", (2, two))
    assert substituted(table, (6,), {}) == [6]
    assert substituted(table, (3,), {3: two}) == [two]


def test_renumbering_updates_every_statement() -> None:
    body = (
        Store("r", 0),
        Reduce(0, "sum", 1),
        Stage("s", 2),
        MarkSelection(0, 3),
        CheckAngles((4, 5)),
        Lanes((), (6,), 0, "float64"),
        ComputeInvariants("t", (7,)),
        Strip((Store("r", 8),)),
    )
    assert roots(body) == list(range(9))
    assert roots(renumbered(body, {n: n + 10 for n in range(9)})) == [n + 10 for n in range(9)]
    for placed in (Let((0,)), Branch(0, (1,), (), ())):
        with pytest.raises(ValueError, match="cannot have other numbers"):
            renumbered((placed,), {0: 1, 1: 2})
