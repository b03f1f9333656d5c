"""Cells of threads: 2.5D streaming, queues, shared-memory planes, and values outside the loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

import halocline as hc
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import (
    Axis,
    DeclareQueue,
    DeclareShared,
    LoadQueueEnd,
    LoadTiles,
    Reduce,
    ReduceBlock,
    ResetPartial,
    Store,
)
from halocline.compile.ir.verify import verify
from halocline.compile.passes.threads import lets
from kernels import in_nest, kernel_of
from kernels_of_devices import device_kernel, statements

GRID = hc.Grid((8, 8, 8), (1.0, 1.0, 1.0), periodic=True)
U = GRID.field("u")


def star() -> Kernel:
    """Return a kernel that reads neighbours along all axes."""
    return in_nest(kernel_of(U[1, 0, 0] + U[-1, 0, 0] + U[0, 1, 0] + U[0, 0, 1] + U * hc.sqrt(2.0 * U)))


def loops(kernel: Kernel, kind: str) -> list[tuple[int, ...]]:
    """Return the axes of each loop of a kind, the outer loops first."""
    return [s.axes for s in statements(kernel, Axis) if isinstance(s, Axis) and s.kind == kind]


@pytest.mark.parametrize(("reads", "queues", "planes"), [("direct", 0, 0), ("queue", 1, 0), ("planes", 1, 1)])
def test_streaming_reads_follow_the_strategy(reads: str, queues: int, planes: int) -> None:
    kernel = device_kernel(star(), reads)
    verify(kernel)
    assert loops(kernel, "stream") == [(0,)]
    assert loops(kernel, "block") == [(0,), (1,), (2,)]
    assert [len(statements(kernel, kind)) for kind in (DeclareQueue, LoadQueueEnd)] == [queues, queues]
    assert [len(statements(kernel, kind)) for kind in (DeclareShared, LoadTiles)] == [planes, planes]
    assert [store.array for store in statements(kernel, Store)] == ["r0"]
    assert loops(kernel, "thread") == [(2,), (1,)] * (1 + planes)  # with tiles, also to fill the queues


def test_grids_of_one_axis_are_not_streamed() -> None:
    grid = hc.Grid((8,), (1.0,), periodic=True)
    u = grid.field("u")
    kernel = device_kernel(in_nest(kernel_of(u[1] - u)))
    verify(kernel)
    assert loops(kernel, "stream") == []
    assert loops(kernel, "thread") == [(2,)]


def test_partial_sums_are_reset_and_finished() -> None:
    kernel = in_nest(kernel_of(U * 2.0))
    assert statements(device_kernel(kernel), ResetPartial, ReduceBlock) == []
    (nest,) = kernel.body
    summed = replace(kernel, body=(replace(nest, body=(*nest.body, Reduce(nest.body[0].value, "sum", 0))),))
    kernel = device_kernel(summed)
    verify(kernel)
    assert [type(s) for s in statements(kernel, ResetPartial, ReduceBlock)] == [ResetPartial, ReduceBlock]
    assert statements(kernel, ReduceBlock)[0].kinds == ("sum",)


def test_invariants_are_computed_outside_the_loop() -> None:
    kernel = in_nest(kernel_of(U * 2.0))
    (nest,) = kernel.body
    ((outside,), (inside,)) = lets(kernel, nest)
    assert [kernel.values[n].op for n in outside.values] == ["const"]
    assert [kernel.values[n].op for n in inside.values] == ["load", "mul"]
