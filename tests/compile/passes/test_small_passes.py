"""Passes on small kernels: what each changes, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

import halocline as hc
from halocline.compile.ir.kernel import Array, Kernel, Table, Value
from halocline.compile.ir.statements import (
    Allocate,
    Barrier,
    Branch,
    Cells,
    Either,
    Far,
    First,
    Lanes,
    Let,
    Mark,
    Nest,
    Reduce,
    Share,
    Slot,
    Stage,
    Store,
    Strip,
    Tile,
    flat,
    roots,
)
from halocline.compile.ir.verify import InvalidKernel, verify
from halocline.compile.passes.angles import angles, near_or_far
from halocline.compile.passes.functions import functions
from halocline.compile.passes.inline import inline
from halocline.compile.passes.loops import loops
from halocline.compile.passes.nests import nests
from halocline.compile.passes.operands import Operands, doubled, operands, second
from halocline.compile.passes.reach import reach
from halocline.compile.passes.rename import compacted, renumbered, substituted
from halocline.compile.passes.scratch import scratch
from halocline.compile.passes.tile import fits, tile
from halocline.compile.passes.whole import whole
from kernels import in_nest, kernel_of, results, small

HERE = ((0, 0),)


def staged(storage: str = "auto") -> Kernel:
    """The same as `small`, as translation leaves it; s is 8 operations more."""
    kernel = small()
    return replace(kernel, body=(Stage("s", 1, storage), Store("r", 6), Reduce(0, "sum", 0)))


def fields(count: int) -> list[hc.Field]:
    grid = hc.Grid((8,), (1.0,), periodic=True)
    return [grid.field(f"u{n}") for n in range(count)]


# -- rows of whole vectors ---------------------------------------------------------------------------------


def wholes(kernel: Kernel) -> list[bool]:
    """Of each nest, whether its rows may be lengthened."""
    marked = whole(scratch(kernel))
    verify(marked)
    return [nest.whole for nest in marked.body if isinstance(nest, Nest)]


def test_rows_of_stages_are_whole_vectors_and_those_of_fields_are_not() -> None:
    assert wholes(small()) == [True, False]
    field = Nest((Store("r", 6),), HERE, (0,))
    assert wholes(replace(small(), body=(small().body[0], field))) == [True, False]
    *before, last = scratch(small()).body
    with pytest.raises(InvalidKernel, match="field 'r' has rows of whole vectors, beyond the patch too"):
        verify(replace(small(), body=(*before, replace(last, whole=True))))


def test_rows_stay_as_they_are_where_more_would_do_harm() -> None:
    kernel = small()
    stored = replace(kernel, body=(*kernel.body, Nest((Store("u", 6),), HERE, (0,))))
    assert wholes(stored)[0] is False  # another thread may store what is read beyond the patch
    u, r, s = kernel.arrays
    values = (*kernel.values[:1], Value("cast", (0,), dtype="float32"), *kernel.values[2:])
    values = tuple(replace(v, dtype="float32") if v.attribute == ("s", (-1,)) else v for v in values)
    narrow = replace(kernel, arrays=(u, r, replace(s, dtype="float32")), values=values)
    assert not whole(scratch(narrow)).body[-2].whole  # more numbers of one kind fit a vector than of another
    table = replace(kernel, values=(kernel.values[0], Value("exp", (0,)), *kernel.values[2:]))
    assert wholes(table)[0] is False  # what is looked up by it may be nowhere


# -- sines and cosines -------------------------------------------------------------------------------------


def test_angles_are_looked_at_before_the_loop_that_needs_their_sines() -> None:
    (u,) = fields(1)
    kernel = angles(loops(scratch(in_nest(kernel_of(hc.sin(u * 2.0) + hc.cos(u))))))
    verify(kernel)
    (far,) = (s for s in flat(kernel.body) if isinstance(s, Far))
    assert [kernel.values[n].op for n in far.angles] == ["mul", "load"]
    chosen = near_or_far(kernel)
    verify(chosen)
    (either,) = (s for s in flat(chosen.body) if isinstance(s, Either))
    assert [s.near for s in flat(either.near) if isinstance(s, Strip)] == [True]
    assert [s.near for s in flat(either.far) if isinstance(s, Strip)] == [False]


def test_loops_without_angles_are_left_alone() -> None:
    (u,) = fields(1)
    kernel = loops(scratch(in_nest(kernel_of(hc.exp(u)))))
    assert angles(kernel) == kernel
    assert near_or_far(kernel) == kernel


# -- stages ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("storage", "kept"), [("inline", False), ("patch", True), ("auto", False)])
def test_cheap_stages_are_computed_where_they_are_read(storage: str, kept: bool) -> None:
    kernel = inline(staged(storage))
    verify(kernel)
    assert any(isinstance(s, Stage) for s in kernel.body) == kept
    assert ("s" in kernel.array) == kept
    read = {offset for name, offset in kernel.loads(roots(kernel.body)) if name == "u"}
    assert read == ({(0,), (1,)} if kept else {(-1,), (0,), (1,)})


def test_what_is_read_reaches_through_stages() -> None:
    found = reach(staged())
    assert found.points["s"] == {((-1,), ())}  # the arrays of `small` are staggered along nothing
    assert {o for o, _ in found.points["u"]} == {(-1,), (0,), (1,)}
    (result, mine), (total, whole) = found.per_result
    assert isinstance(result, Store)
    assert mine == {"u": {(1,), (-1,)}}
    assert isinstance(total, Reduce)
    assert whole == {"u": {(0,)}}


def test_a_stage_has_a_nest_as_far_around_as_it_is_read() -> None:
    kernel = staged("patch")
    kernel = replace(
        kernel,
        arrays=tuple(replace(array, staggered=(False,)) for array in kernel.arrays),
        body=(*kernel.body[:2], Reduce(0, "sum", 0, (False,))),
    )
    made = nests(kernel, reach(kernel).points)
    verify(made)
    first, last = (s for s in made.body if isinstance(s, Nest))
    assert first.extent == ((1, -1),)
    assert last.extent == HERE
    assert [type(s) for s in last.body] == [Store, Reduce]


# -- where results go --------------------------------------------------------------------------------------


def test_results_that_others_read_around_them_go_to_a_second_buffer() -> None:
    kernel = replace(small(), arrays=(*small().arrays[:2], small().arrays[2]))
    onto = replace(kernel, body=(kernel.body[0], Nest((Store("u", 6),), HERE, (0,))))
    assert doubled(onto, {"u": {(0,), (1,)}}) == {"u"}
    assert doubled(kernel, {"u": {(0,), (1,)}}) == set()
    assert doubled(in_nest(replace(onto, body=(Store("u", 1),))), {"u": {(0,)}}) == set()


def test_results_of_earlier_nests_that_later_ones_read_go_to_a_second_buffer() -> None:
    body = (Nest((Store("u", 1),), HERE, (0,)), Nest((Store("r", 6),), HERE, (0,)))
    assert doubled(replace(small(), body=body), {"u": {(0,)}}) == {"u"}


def test_operands_have_the_numbers_they_are_given() -> None:
    kernel = replace(small(), body=(small().body[0], Nest((Store("u", 6),), HERE, (0,))))
    of = Operands(("u",), {"u": second("u")})
    made = operands(kernel, of, {"u": 4, second("u"): 7})
    verify(made)
    assert [(a.name, a.number, a.written) for a in made.arrays if a.kind == "field"] == [
        ("u", 4, False),
        (second("u"), 7, True),
    ]
    assert [s.array for s in flat(made.body) if isinstance(s, Store)] == ["s", second("u")]
    assert [a.name for a in made.arrays if a.kind == "scratch"] == ["s"]
    assert doubled(made, {"u": {(1,)}}) == set()


def test_only_operands_that_a_kernel_touches() -> None:
    kernel = in_nest(replace(small(), body=(Store("r", 1),)))
    of = Operands(("u", "s"), {"r": "r"})
    numbers = {"u": 0, "s": 1, "r": 2}
    assert [a.name for a in operands(kernel, of, numbers, only=True).arrays] == ["u", "r"]
    assert [a.name for a in operands(kernel, of, numbers).arrays] == ["u", "s", "r"]


# -- functions ---------------------------------------------------------------------------------------------


def test_nests_that_share_no_stage_are_functions_of_their_own() -> None:
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


def test_what_makes_or_reads_a_stage_stays_together() -> None:
    kernel = scratch(small())
    assert functions(kernel) == [kernel]
    more = replace(kernel, body=(*kernel.body, Nest((Reduce(1, "max", 0),), HERE, (0,))))
    first, second_ = functions(more)
    assert sum(isinstance(s, (Slot, Allocate)) for s in first.body) == 2
    assert [type(s) for s in second_.body] == [Nest]
    assert {a.name for a in second_.arrays} == {"u"}


# -- values under other numbers ----------------------------------------------------------------------------


def test_a_compact_kernel_has_the_values_that_it_uses() -> None:
    kernel = compacted(in_nest(replace(small(), body=(Store("r", 1),))))
    verify(kernel)
    assert [value.op for value in kernel.values] == ["load", "mul"]
    assert compacted(kernel) == kernel


def test_other_values_stand_in_for_some() -> None:
    kernel = small()
    table = Table(kernel.grid, kernel.arrays, kernel.values)
    two = table.add("load", (), ("u", (2,)), "float64", 3)
    (made,) = substituted(table, (6,), {3: two})
    assert table.values[table.values[made].args[0]] == Value("sub", (2, two))
    assert substituted(table, (6,), {}) == [6]
    assert substituted(table, (3,), {3: two}) == [two]


def test_every_statement_that_names_values_has_their_new_numbers() -> None:
    body = (
        Store("r", 0),
        Reduce(0, "sum", 1),
        Stage("s", 2),
        Mark(0, 3),
        Far((4, 5)),
        Lanes((), (6,), 0, "float64"),
        First("t", (7,)),
        Strip((Store("r", 8),)),
    )
    assert roots(body) == list(range(9))
    assert roots(renumbered(body, {n: n + 10 for n in range(9)})) == [n + 10 for n in range(9)]
    for placed in (Let((0,)), Branch(0, (1,), (), ())):
        with pytest.raises(ValueError, match="have other numbers"):
            renumbered((placed,), {0: 1, 1: 2})


# -- tiles -------------------------------------------------------------------------------------------------


def test_a_group_works_through_its_tile_stage_by_stage() -> None:
    kernel = tile(small())
    verify(kernel)
    assert [type(s) for s in kernel.body][1:4] == [Share, Tile, Nest]
    first, last = (s for s in kernel.body if isinstance(s, Nest))
    assert [type(s) for s in first.body] == [Cells, Barrier]
    stage = kernel.array["s"]
    assert (stage.kind, stage.layers[2], stage.shape) == ("tile", (1, 0), (1, 1, 513))
    assert kernel.array[stage.of].shape == (513,)
    assert any(isinstance(s, Let) and 5 in s.values for s in last.body)  # the number, once for all cells


def test_tiles_that_do_not_fit_are_none() -> None:
    assert fits(small(), 40 * 2**10)
    assert not fits(small(), 513 * 8)  # the sum needs some, too
    cell = replace(small(), body=(small().body[0], replace(small().body[1], cell=(0,))))  # type: ignore[call-arg]
    assert not fits(cell, 40 * 2**10)


def test_fields_may_be_called_as_the_memory_of_groups_is() -> None:
    kernel = small()
    arrays = tuple(replace(a, name="slot0") if a.name == "u" else a for a in kernel.arrays)
    values = tuple(
        replace(v, attribute=("slot0", v.attribute[1])) if v.op == "load" and v.attribute[0] == "u" else v
        for v in kernel.values
    )
    verify(tile(replace(kernel, arrays=arrays, values=values)))


def test_a_tile_that_is_read_farther_than_it_is_stored_is_found() -> None:
    made = tile(small())
    first = next(s for s in made.body if isinstance(s, Nest))
    body = tuple(replace(s, extent=HERE) if s is first else s for s in made.body)
    with pytest.raises(InvalidKernel, match="read at"):
        verify(replace(made, body=body))


def test_small_kernels_store_what_they_say() -> None:
    assert results(staged()) == [6]
    assert isinstance(small().array["s"], Array)
