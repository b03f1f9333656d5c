"""Values that are equal in all cells, in constant memory."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.ir.kernel import TILE_ALIGNMENT, Kernel
from halocline.compile.ir.statements import ComputeInvariants, Let, Nest, flat
from halocline.compile.ir.verify import InvalidKernel, verify
from halocline.compile.passes.invariants import (
    MAX_CHANGING,
    MAX_INVARIANTS,
    MIN_REGISTERS,
    NAME,
    invariant_scalars,
    invariant_values,
    invariants,
    required_registers,
)
from halocline.compile.passes.threads import threads
from halocline.compile.strategy import REGISTERS, Strategy, block_splits
from halocline.lang.expression import Expr
from kernels import in_nest, kernel_of
from kernels_of_devices import MANY, device_kernel

SOME = 60  # few enough for constant memory, and too many for registers


def weighted(count: int) -> Kernel:
    """Return a kernel whose result has the given number of weights that are equal in all cells."""
    grid = hc.Grid((8, 8, 8), (1.0, 1.0, 1.0), periodic=True)
    u, p = grid.field("u"), hc.parameter("p")
    total: Expr = u * 1.0
    for n in range(count):
        total = hc.sqrt(total) * (p + float(n + 2))
    return in_nest(kernel_of(total))


def required(kernel: Kernel) -> int:
    """Return the registers that the only nest of a kernel requires."""
    (nest,) = (s for s in kernel.body if isinstance(s, Nest))
    return required_registers(kernel, nest)


def test_weights_occupy_registers() -> None:
    assert required(weighted(MANY)) > REGISTERS > required(weighted(10))
    assert required(weighted(MANY)) - required(weighted(10)) == 2 * (MANY - 10)


def test_invariants_are_computed_before_the_sweep() -> None:
    kernel = invariants(weighted(SOME))
    verify(kernel)
    assert required(kernel) == required(weighted(SOME))  # in constant memory, but counted
    first, nest = kernel.body
    assert isinstance(first, ComputeInvariants)
    assert len(first.values) == SOME
    assert {kernel.values[n].op for n in first.values} == {"add"}
    assert kernel.array[NAME].shape == (SOME,)
    placed = device_kernel(replace(kernel, body=(nest,)))
    verify(placed)
    inside = [n for s in flat(placed.body) if isinstance(s, Let) for n in s.values]
    assert sum(placed.values[n].op == "invariant" for n in inside) == SOME
    assert not any(placed.values[n].op == "scalar" for n in inside)


def test_verify_requires_that_invariants_are_equal_in_all_cells() -> None:
    kernel = invariants(weighted(SOME))
    first, nest = kernel.body
    assert isinstance(first, ComputeInvariants)
    varying = next(n for n, value in enumerate(kernel.values) if value.depth > 0)
    with pytest.raises(InvalidKernel, match="varies from cell to cell"):
        verify(replace(kernel, body=(replace(first, values=(varying,)), nest)))


def test_the_number_of_invariants_is_limited() -> None:
    kernel = invariants(weighted(MAX_INVARIANTS + 3))
    verify(kernel)
    assert kernel.array[NAME].shape == (MAX_INVARIANTS,)


def test_nests_with_few_registers_keep_their_invariants() -> None:
    assert required(weighted(10)) <= MIN_REGISTERS
    assert invariants(weighted(10)) == weighted(10)


def test_shared_memory_tiles_need_room_for_their_planes_only() -> None:
    grid = hc.Grid((8, 8, 8), (1.0, 1.0, 1.0), periodic=True)
    u, p = grid.field("u"), hc.parameter("p")
    total: Expr = u[0, 0, 1] + u[0, 1, 0]
    for n in range(SOME):
        total = hc.sqrt(total) * (p + float(n + 2))
    kernel = in_nest(kernel_of(total))
    constants = invariants(kernel)
    constants = replace(constants, body=constants.body[1:])  # without the computation of the invariants
    plane = -(-2 * 65 * 5 * 8 // TILE_ALIGNMENT) * TILE_ALIGNMENT  # one plane in use, and one in advance
    for kernel_, room, planes in ((kernel, plane, 1), (constants, plane, 1), (constants, plane - 1, 0)):
        kernel_of_threads = threads(kernel_, block_splits(kernel_.ndim), "planes", room)
        assert sum(a.kind == "field_tile" for a in kernel_of_threads.arrays) == planes


def test_a_kernel_lists_its_values_in_constant_memory() -> None:
    kernel = invariants(weighted(SOME))
    assert len(invariant_values(kernel)) == SOME
    assert invariant_values(weighted(SOME)) == ()


@pytest.mark.parametrize(
    ("count", "expected"), [(MAX_CHANGING, SOME), (MAX_CHANGING + 1, SOME + MAX_CHANGING + 1)]
)
def test_a_few_changing_values_stay_in_registers(count: int, expected: int) -> None:
    grid = hc.Grid((8, 8, 8), (1.0, 1.0, 1.0), periodic=True)
    u, p, q = grid.field("u"), hc.parameter("p"), hc.parameter("q")
    total: Expr = u * 1.0
    for n in range(SOME):
        total = hc.sqrt(total) * (p + float(n + 2))
    for n in range(count):
        total = hc.sqrt(total) * (q + float(n + 2))
    original = in_nest(kernel_of(total))
    for changing, values, scalars in (
        ({"q"}, expected, {"p"} if expected == SOME else {"p", "q"}),
        ({"p", "q"}, min(SOME + count, MAX_INVARIANTS), {"p", "q"}),  # no other values
        ({"r"}, min(SOME + count, MAX_INVARIANTS), {"p", "q"}),
    ):
        kernel = invariants(original, changing)
        verify(kernel)
        assert len(invariant_values(kernel)) == min(values, MAX_INVARIANTS)
        assert invariant_scalars(kernel) == scalars
        assert required(kernel) == required(original)


@pytest.mark.parametrize(
    ("scalar", "is_constant"),
    [
        ("limit", True),
        ("before", False),
        ("first", False),
        ("inner", False),
        ("largest", False),
        ("step", False),
    ],
)
def test_constants_depend_on_no_scalar_that_the_program_sets(scalar: str, is_constant: bool) -> None:
    """Statements, reductions and counters of loops set scalars, also before a loop and in inner loops."""
    grid = hc.Grid((8, 8, 8), (1.0, 1.0, 1.0), periodic=True)
    u, v, limit = grid.field("u"), grid.field("v"), hc.parameter("limit")

    @hc.program
    def program() -> None:
        scalars = {name: hc.scalar(name) for name in ("before", "first", "inner", "largest", "step")}
        scalars["before"].set(limit * 2.0)
        scalars["first"].set(hc.sum(u))
        with hc.loop(limit=3):
            scalars["step"].set(scalars["step"] + 1.0)
            with hc.loop(limit=limit):
                scalars["inner"].set(limit * 3.0)
                scalars["largest"].set(hc.max(u))
            total = v[1, 0, 0]
            for n in range(SOME):
                total = hc.sqrt(total) * (scalars.get(scalar, limit) + float(n + 2))
            v.set(total)

    schedule = compile_program(program.trace(), grid, device=Strategy())
    assert schedule.device is not None
    assert schedule.device.has_invariants
    assert bool(schedule.device.constants) == is_constant


def test_kernels_without_invariants_are_unchanged() -> None:
    grid = hc.Grid((8, 8), (1.0, 1.0), periodic=True)
    kernel = in_nest(kernel_of(grid.field("u") * 2.0))
    assert invariants(kernel) is kernel


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
    return len(re.findall(r"_queue_m3 = (?:0|HC_DOUBLE2\(0, 0\)),", device.source))


def test_the_number_of_queues_fits_the_free_registers() -> None:
    assert queues(4) == 4
    assert 4 < queues(30) < 20
