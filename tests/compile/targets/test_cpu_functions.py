"""Division of a kernel into functions that share no stage."""

from __future__ import annotations

from dataclasses import replace

import halocline as hc
from halocline.compile.ir.statements import (
    Allocate,
    Nest,
    Reduce,
    Slot,
    roots,
)
from halocline.compile.ir.verify import verify
from halocline.compile.passes.scratch import scratch
from halocline.compile.targets.cpu import functions
from kernels import kernel_of, small

HERE = ((0, 0),)


def fields(count: int) -> list[hc.Field]:
    grid = hc.Grid((8,), (1.0,), periodic=True)
    return [grid.field(f"u{n}") for n in range(count)]


# -- functions ---------------------------------------------------------------------------------------------


def test_nests_without_common_stages_are_separate_functions() -> None:
    one, other = fields(2)
    kernel = kernel_of(one * 2.0, other + one, other * other)
    none = ((0, 0),)
    kernel = replace(kernel, body=tuple(Nest((s,), none, (0,)) for s in kernel.body))
    parts = functions(kernel)
    for part in parts:
        verify(part)
    assert [part.name for part in parts] == ["k_part0", "k_part1", "k_part2"]
    assert [part.comment for part in parts] == ["k, part 0", "k, part 1", "k, part 2"]
    assert [{a.name for a in part.arrays} for part in parts] == [
        {"u0", "r0"},
        {"u0", "u1", "r1"},
        {"u1", "r2"},
    ]
    assert all(len(part.values) == len(part.below(roots(part.body))) for part in parts)


def test_nests_that_write_or_read_a_stage_stay_in_one_function() -> None:
    kernel = scratch(small())
    assert functions(kernel) == [kernel]
    more = replace(kernel, body=(*kernel.body, Nest((Reduce(1, "max", 0),), HERE, (0,))))
    first, second_ = functions(more)
    assert sum(isinstance(s, (Slot, Allocate)) for s in first.body) == 2
    assert [type(s) for s in second_.body] == [Nest]
    assert {a.name for a in second_.arrays} == {"u"}
