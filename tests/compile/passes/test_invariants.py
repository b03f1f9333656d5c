"""Values that are equal in all cells: the first thread of a thread block computes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Let, OncePerBlock, flat
from halocline.compile.ir.verify import InvalidKernel, verify
from halocline.compile.passes.invariants import NAME, invariants, required_registers
from halocline.compile.passes.threads import threads
from halocline.compile.strategy import REGISTERS, SHARED_BYTES, Strategy
from halocline.lang.expression import Expr
from kernels import in_nest, kernel_of
from kernels_of_devices import MANY, device_kernel, statements


def weighted(count: int) -> Kernel:
    """Return a kernel whose result has the given number of weights that are equal in all cells."""
    grid = hc.Grid((8, 8, 8), (1.0, 1.0, 1.0), periodic=True)
    u, p = grid.field("u"), hc.parameter("p")
    total: Expr = u * 1.0
    for n in range(count):
        total = hc.sqrt(total) * (p + float(n + 2))
    return in_nest(kernel_of(total))


def test_weights_occupy_registers() -> None:
    assert required_registers(weighted(MANY)) > REGISTERS > required_registers(weighted(10))
    assert required_registers(weighted(MANY)) - required_registers(weighted(10)) == 2 * (MANY - 10)


def test_the_first_thread_of_a_block_computes_the_invariants() -> None:
    kernel = invariants(weighted(MANY), SHARED_BYTES)
    verify(kernel)
    assert required_registers(kernel) == required_registers(
        weighted(MANY)
    )  # loaded from shared memory, but counted
    placed = device_kernel(kernel)
    verify(placed)
    (first,) = statements(placed, OncePerBlock)
    assert isinstance(first, OncePerBlock)
    assert len(first.values) == MANY
    assert {placed.values[n].op for n in first.values} == {"add"}
    assert [a.shape for a in placed.arrays if a.kind == "invariants"] == [(MANY,)]
    inside = [n for s in flat(placed.body) if isinstance(s, Let) and s not in first.body for n in s.values]
    assert sum(placed.values[n].op == "invariant" for n in inside) == MANY
    assert not any(placed.values[n].op == "scalar" for n in inside)


def test_verify_requires_that_the_first_thread_computes_its_values() -> None:
    placed = device_kernel(invariants(weighted(MANY), SHARED_BYTES))
    body = tuple(replace(s, body=()) if isinstance(s, OncePerBlock) else s for s in placed.body)
    with pytest.raises(InvalidKernel, match="does not compute its values"):
        verify(replace(placed, body=body))


def test_invariants_fit_into_shared_memory() -> None:
    kernel = invariants(weighted(MANY), 800 - 8)
    verify(kernel)
    assert kernel.array[NAME].shape == (MANY - 1,)
    assert invariants(weighted(MANY), -8).arrays == weighted(MANY).arrays


def test_shared_memory_tiles_use_the_remaining_memory() -> None:
    grid = hc.Grid((8, 8, 8), (1.0, 1.0, 1.0), periodic=True)
    u, p = grid.field("u"), hc.parameter("p")
    total: Expr = u[0, 0, 1] + u[0, 1, 0]
    for n in range(MANY):
        total = hc.sqrt(total) * (p + float(n + 2))
    kernel = in_nest(kernel_of(total))
    plane = 65 * 5 * 8
    for kernel_, room, planes in ((kernel, plane, 1), (invariants(kernel, 800), plane + 792, 0)):
        kernel_of_threads = threads(kernel_, Strategy(reads="planes"), room)
        assert sum(a.kind == "field_tile" for a in kernel_of_threads.arrays) == planes


def test_kernels_without_invariants_are_unchanged() -> None:
    grid = hc.Grid((8, 8), (1.0, 1.0), periodic=True)
    kernel = in_nest(kernel_of(grid.field("u") * 2.0))
    assert invariants(kernel, SHARED_BYTES) is kernel


def queues(fields: int) -> int:
    """Return the number of fields that have a queue in registers, for the given number of fields."""
    grid = hc.Grid((16, 16, 16), (1.0, 1.0, 1.0), periodic=True)
    all_ = [grid.field(f"f{n}") for n in range(fields)]

    @hc.program
    def program() -> None:
        sums = [f[-3, 0, 0] + f[3, 0, 0] for f in all_]
        total = sums[0]
        for term in sums[1:]:
            total = hc.sqrt(total) + term
        all_[0].set(total)

    device = compile_program(program.trace(), grid, device=Strategy()).device
    assert device is not None
    return device.source.count("_queue_m3 = 0,")


def test_the_number_of_queues_fits_the_free_registers() -> None:
    assert queues(4) == 4
    assert 4 < queues(30) < 20
