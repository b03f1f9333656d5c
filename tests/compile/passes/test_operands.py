"""Buffers of results, and the numbers of operands."""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir.statements import (
    Nest,
    Store,
    flat,
)
from halocline.compile.ir.verify import verify
from halocline.compile.passes.operands import Operands, double_buffered, operands, second_buffer
from kernels import in_nest, small

HERE = ((0, 0),)


# -- buffers of results ------------------------------------------------------------------------------------


def test_results_read_at_neighbours_use_a_second_buffer() -> None:
    kernel = replace(small(), arrays=(*small().arrays[:2], small().arrays[2]))
    onto = replace(kernel, body=(kernel.body[0], Nest((Store("u", 6),), HERE, (0,))))
    assert double_buffered(onto, {"u": "u"}, {"u": {(0,), (1,)}}) == {"u"}
    assert double_buffered(kernel, {"r": "r"}, {"u": {(0,), (1,)}}) == set()
    assert double_buffered(in_nest(replace(onto, body=(Store("u", 1),))), {"u": "u"}, {"u": {(0,)}}) == set()


def test_results_in_the_buffer_of_another_field_need_no_second_buffer() -> None:
    """The reads of the field whose buffer is overwritten decide."""
    kernel = in_nest(replace(small(), body=(Store("u", 6),)))
    assert double_buffered(kernel, {"u": "r"}, {"u": {(0,), (1,)}, "r": {(0,)}}) == set()
    assert double_buffered(kernel, {"u": "r"}, {"u": {(0,)}, "r": {(1,)}}) == {"u"}


def test_results_read_by_later_nests_use_a_second_buffer() -> None:
    body = (Nest((Store("u", 1),), HERE, (0,)), Nest((Store("r", 6),), HERE, (0,)))
    sinks = {"u": "u", "r": "r"}
    assert double_buffered(replace(small(), body=body), sinks, {"u": {(0,)}}) == {"u"}


def test_operands_keep_their_assigned_numbers() -> None:
    kernel = replace(small(), body=(small().body[0], Nest((Store("u", 6),), HERE, (0,))))
    buffers = Operands(("u",), {"u": second_buffer("u")})
    numbered = operands(kernel, buffers, {"u": 4, second_buffer("u"): 7})
    verify(numbered)
    assert [(a.name, a.number, a.written) for a in numbered.arrays if a.kind == "field"] == [
        ("u", 4, False),
        (second_buffer("u"), 7, True),
    ]
    assert [s.array for s in flat(numbered.body) if isinstance(s, Store)] == ["s", second_buffer("u")]
    assert [a.name for a in numbered.arrays if a.kind == "scratch"] == ["s"]
    assert double_buffered(numbered, {"r": "r"}, {"u": {(1,)}}) == set()


def test_a_kernel_has_only_operands_that_it_accesses() -> None:
    kernel = in_nest(replace(small(), body=(Store("r", 1),)))
    buffers = Operands(("u", "s"), {"r": "r"})
    numbers = {"u": 0, "s": 1, "r": 2}
    assert [a.name for a in operands(kernel, buffers, numbers, only=True).arrays] == ["u", "r"]
    assert [a.name for a in operands(kernel, buffers, numbers).arrays] == ["u", "s", "r"]
