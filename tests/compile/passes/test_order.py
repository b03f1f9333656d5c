"""Evaluation order of the values of a cell on devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Let, Store, flat
from halocline.compile.ir.verify import verify
from halocline.compile.passes.order import REORDER_LIMIT, live_registers, order
from halocline.lang.expression import Expr
from kernels import in_nest, kernel_of
from kernels_of_devices import MANY, device_kernel, statements
from ordered_values import large
from suites import cases


def most(kernel: Kernel) -> int:
    """Return the maximum number of registers that values need at one time; stores keep their places."""
    numbers, stores = [], []
    for s in flat(kernel.body):
        if isinstance(s, Let):
            numbers += s.values
        elif isinstance(s, Store):
            stores.append((len(numbers), s.value))
    ends = {value for place, value in stores if place == len(numbers)}
    return live_registers(kernel, numbers, ends)


def far_apart() -> Kernel:
    """Return a kernel with many roots, each of which both results use once."""
    grid = hc.Grid((8, 8, 8), (1.0, 1.0, 1.0), periodic=True)
    u = grid.field("u")
    parts = [hc.sqrt(u + float(n)) for n in range(MANY)]
    one: Expr = parts[0] * 2.0
    other: Expr = parts[0] * 3.0
    for part in parts[1:]:
        one = one / part
    for part in parts[1:]:
        other = other / part
    return in_nest(kernel_of(one, other))


def test_values_are_consumed_before_others_are_computed() -> None:
    before = device_kernel(far_apart())
    after = order(before)
    verify(after)
    assert most(before) > 2 * MANY
    assert most(after) <= 16


def test_reordering_keeps_all_values_and_results() -> None:
    before = device_kernel(far_apart())
    after = order(before)
    assert after.values == before.values
    computed = [sorted(n for s in statements(k, Let) for n in s.values) for k in (before, after)]  # type: ignore[attr-defined]
    assert computed[0] == computed[1]
    assert len(set(computed[1])) == len(computed[1])
    assert set(statements(before, Store)) == set(statements(after, Store))


def test_kernels_with_enough_registers_are_unchanged() -> None:
    grid = hc.Grid((8, 8, 8), (1.0, 1.0, 1.0), periodic=True)
    u = grid.field("u")
    kernel = device_kernel(in_nest(kernel_of(hc.laplacian(u, order=6))))
    assert most(kernel) <= REORDER_LIMIT
    assert order(kernel) == kernel


def test_a_result_waits_until_its_array_has_been_read() -> None:
    """A result is stored after all reads of the array that it replaces."""
    kernel = far_apart()
    (nest,) = kernel.body
    (first, second) = nest.body  # type: ignore[attr-defined]
    nest = replace(nest, body=(replace(first, array="u"), second))  # type: ignore[call-arg]
    kernel = replace(kernel, arrays=tuple(a for a in kernel.arrays if a.name != "r0"), body=(nest,))
    after = order(device_kernel(kernel))
    stored = False
    for s in flat(after.body):
        if isinstance(s, Let) and stored:
            assert not any(kernel.values[n].op == "load" for n in s.values)
        stored |= isinstance(s, Store) and s.array == "u"
    assert stored


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), min_size=80, max_size=160), st.data())
def test_any_values_are_computed_before_their_use(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    grid = hc.Grid((8, 8), (1.0, 1.0), periodic=True)
    fields = [grid.field(f"f{n}") for n in range(4)]
    values: list[Expr] = [f + 0.5 for f in fields]
    for a, b in pairs:
        values.append(hc.maximum(values[a % len(values)], hc.sqrt(values[b % len(values)])))
    chosen = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=5, unique=True))
    before = device_kernel(in_nest(kernel_of(*(values[n] for n in chosen))))
    after = order(before)
    verify(after)
    assert most(after) <= most(before)
    assert {n for s in statements(after, Let) for n in s.values} >= {  # type: ignore[attr-defined]
        s.value  # type: ignore[attr-defined]
        for s in statements(before, Store)
    }


# -- results that replace values which other results read --------------------------------------------------


def rotated(u: hc.Field, v: hc.Field, w: hc.Field) -> None:
    hc.assign({u: v, v: w, w: u})
    x = u.grid.field("x")
    x.set(large(x + 1.0))


def swapped_beside(u: hc.Field, v: hc.Field, w: hc.Field) -> None:
    hc.assign({u: v, v: u, w: large(w)})


def summed_before(u: hc.Field, v: hc.Field, w: hc.Field) -> None:
    hc.scalar("total").set(hc.sum(u))
    hc.assign({u: large(w), v: 2.0 * v})


def each_of_the_others(u: hc.Field, v: hc.Field, w: hc.Field) -> None:
    hc.assign({u: large(v) + w, v: large(w) + u, w: large(u) + v})


def large_value(field: np.ndarray) -> np.ndarray:
    """Return the value of `large`, computed by NumPy."""
    parts = [np.sqrt(field * field + float(n)) for n in range(MANY)]
    one, other = parts[0] * 2.0, parts[0] * 3.0
    for part in parts[1:]:
        one, other = one / part, other / part
    return one - other


RESULTS = {  # per program: u, v and w after it, computed by NumPy
    rotated: lambda u, v, w: (v, w, u),
    swapped_beside: lambda u, v, w: (v, u, large_value(w)),
    summed_before: lambda u, v, w: (large_value(w), 2.0 * v, w),
    each_of_the_others: lambda u, v, w: (large_value(v) + w, large_value(w) + u, large_value(u) + v),
}


@cases("statements", RESULTS, default=[rotated, each_of_the_others])
def test_every_result_is_stored_after_reads_of_old_values(
    statements: Callable[[hc.Field, hc.Field, hc.Field], None], opencl: None
) -> None:
    starts = [1.0 + np.arange(42.0).reshape(6, 7) % (5 + n) for n in range(3)]
    checksums = []
    for device in (None, "opencl:0"):
        grid = hc.Grid((6, 7), (1.0, 1.0), periodic=True)
        fields = [grid.field(name) for name in "uvw"]
        sim = hc.Simulation(grid, hc.program(lambda fields=fields: statements(*fields)), device=device)
        for f, start in zip(fields, starts, strict=True):
            sim[f] = start
        scalars = dict(sim.run().scalars)
        for f, expected in zip(fields, RESULTS[statements](*starts), strict=True):
            np.testing.assert_allclose(sim.gather(f), expected, rtol=1e-12)
        assert scalars.get("total", 0.0) == (starts[0].sum() if statements is summed_before else 0.0)
        checksums.append([sim.checksum(f) for f in fields])
    assert checksums[0] == checksums[1]
