"""Tiles that a thread block processes stage by stage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halocline.compile.ir.kernel import Array
from halocline.compile.ir.statements import (
    Axis,
    Barrier,
    DeclareShared,
    Let,
    Nest,
    flat,
)
from halocline.compile.ir.verify import InvalidKernel, verify
from halocline.compile.passes.tile import fits, tile
from kernels import results, small, staged

HERE = ((0, 0),)


# -- tiles -------------------------------------------------------------------------------------------------


def test_a_thread_block_computes_its_tile_stage_by_stage() -> None:
    kernel = tile(small())
    verify(kernel)
    assert [type(s) for s in kernel.body][1:3] == [DeclareShared, Nest]
    first, last = (s for s in kernel.body if isinstance(s, Nest))
    assert [type(s) for s in first.body] == [Axis, Barrier]
    loops = [(s.axes, s.kind, s.step) for s in flat(first.body) if isinstance(s, Axis)]
    assert loops == [((0,), "block", 1), ((1,), "block", 1), ((2,), "block", 512), ((0, 1, 2), "thread", 1)]
    stage = kernel.array["s"]
    assert (stage.kind, stage.layers[2], stage.shape) == ("stage_tile", (1, 0), (1, 1, 513))
    assert kernel.array[stage.source].shape == (513,)
    assert any(isinstance(s, Let) and 5 in s.values for s in last.body)  # constant: once for all cells


def test_tiles_that_do_not_fit_are_not_used() -> None:
    assert fits(small(), 40 * 2**10)
    assert not fits(small(), 513 * 8)  # the sum needs shared memory too
    cell = replace(small(), body=(small().body[0], replace(small().body[1], cell=(0,))))  # type: ignore[call-arg]
    assert not fits(cell, 40 * 2**10)


def test_fields_may_have_the_names_of_shared_memory_arrays() -> None:
    kernel = small()
    arrays = tuple(replace(a, name="slot0") if a.name == "u" else a for a in kernel.arrays)
    values = tuple(
        replace(v, attribute=("slot0", v.attribute[1])) if v.op == "load" and v.attribute[0] == "u" else v
        for v in kernel.values
    )
    verify(tile(replace(kernel, arrays=arrays, values=values)))


def test_verify_detects_reads_beyond_a_stored_tile() -> None:
    tiled = tile(small())
    first = next(s for s in tiled.body if isinstance(s, Nest))
    body = tuple(replace(s, extent=HERE) if s is first else s for s in tiled.body)
    with pytest.raises(InvalidKernel, match="read at"):
        verify(replace(tiled, body=body))


def test_small_kernels_have_the_expected_results() -> None:
    assert results(staged()) == [6]
    assert isinstance(small().array["s"], Array)
