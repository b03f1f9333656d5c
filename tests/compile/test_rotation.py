"""Fields that take over buffers: which fields, which memory traffic, and the same values as copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.rotation import rotations, stored_fields
from halocline.compile.schedule import Sweep
from halocline.run.domain.domain import Domain
from halocline.run.engine.prepare import prepare
from halocline.run.memory.store import FieldStore

NAMES = "abcd"


def fields(n: int = 12, **options: Any) -> tuple[hc.Grid, list[Any]]:
    grid = hc.Grid((n, n - 3), periodic=True)
    return grid, [grid.field(name, **options) for name in NAMES]


def only_sweep(grid: hc.Grid, *assignments: dict[Any, Any]) -> tuple[Sweep, tuple[str, ...]]:
    """Return the only sweep of a program, and the names of its buffers."""

    def step() -> None:
        for values in assignments:
            hc.assign(values)

    schedule = compile_program(hc.program(step).trace(), grid)
    (sweep,) = schedule.sweeps()
    return sweep, tuple(info.name for info in schedule.fields)


# -- selection ---------------------------------------------------------------------------------------------


def test_a_copy_of_old_values_takes_over_their_buffer() -> None:
    _, (a, b, c, d) = fields()
    sets = {a: a[1, 0] + b, b: a.expr, c: b.expr, d: 2.0 * d}
    assert rotations(sets) == {a: (b, c)}
    assert list(stored_fields(sets)) == [a, d]


def test_only_one_field_takes_over_a_buffer() -> None:
    _, (a, b, c, _) = fields()
    assert rotations({a: a + 1.0, b: a.expr, c: a.expr}) == {a: (b,)}


def test_exchanged_fields_and_unchanged_fields_are_copied() -> None:
    _, (a, b, c, _) = fields()
    assert rotations({a: b.expr, b: a.expr}) == {}  # no kernel stores a new value
    assert rotations({a: a.expr, b: c.expr}) == {}
    assert rotations({b: a[1, 0], a: a + 1.0}) == {}


def test_fields_of_another_precision_or_location_are_copied() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    a, b = grid.field("a"), grid.field("b", dtype="float32")
    c = grid.field("c", location="face-x")
    assert rotations({a: a + 1.0, b: a.expr}) == {}
    assert rotations({c: c + 1.0, a: c.expr}) == {}


# -- schedule ----------------------------------------------------------------------------------------------


def test_a_leapfrog_step_reads_two_arrays_and_writes_one() -> None:
    grid, (u, before, *_) = fields()
    sweep, buffers = only_sweep(grid, {u: 2.0 * u - before + hc.laplacian(u), before: u})
    assert buffers == ("a", "b")  # u needs no second buffer
    assert (sweep.operands, sweep.bytes, sweep.swaps, sweep.overwrites) == ((0, 1), 24.0, ((0, 1),), (1,))


def test_a_field_that_is_read_at_neighbours_is_not_overwritten() -> None:
    grid, (u, before, *_) = fields()
    sweep, buffers = only_sweep(grid, {u: u[1, 0] - before[1, 0], before: u})
    assert buffers == ("a", "b", "a'")
    assert (sweep.operands, sweep.swaps, sweep.overwrites) == ((0, 1, 2), ((1, 2), (0, 1)), ())


def test_a_rotation_uses_a_second_buffer_that_the_program_needs_anyway() -> None:
    grid, (u, before, *_) = fields()

    def step() -> None:
        before.set(0.5 * before[1, 0])
        hc.assign({u: u + before[0, 1], before: u})

    schedule = compile_program(hc.program(step).trace(), grid)
    assert sorted(info.name for info in schedule.fields) == ["a", "b", "b'"]


def test_later_statements_of_a_sweep_read_the_copy() -> None:
    """The statements become one sweep, so the copy is a plain read of the old values."""
    grid, (u, before, total, _) = fields()
    sweep, _ = only_sweep(grid, {before: u, u: u[1, 0] + 1.0}, {total: total + before})
    assert sweep.swaps == ((0, 1),)
    assert sweep.names == ("b", "a", "c")


def test_fields_that_swap_buffers_have_equal_halos() -> None:
    grid, (a, b, c, _) = fields()

    def step() -> None:
        hc.assign({b: a, a: a[3, 0] + 1.0})
        hc.assign({c: b, b: 2.0 * b[0, 1]})

    schedule = compile_program(hc.program(step).trace(), grid)
    assert len({info.halo for info in schedule.fields}) == 1


# -- values ------------------------------------------------------------------------------------------------

# each field becomes a copy of a field, or the sum of two fields at random offsets; the values remain
# integers, so that the order of additions does not matter
offset = st.tuples(st.integers(-2, 2), st.integers(-1, 1))
new_value = st.tuples(st.integers(0, 3)) | st.tuples(
    st.integers(0, 3), offset, st.integers(0, 3), st.just((0, 0)) | offset
)
assignment = st.dictionaries(st.integers(0, 3), new_value, min_size=1)
programs = st.lists(assignment, min_size=1, max_size=3)


def traced(steps: list[dict[int, Any]], symbols: list[Any]) -> hc.Program:
    def value(rule: Any) -> Any:
        if len(rule) == 1:
            return symbols[rule[0]]
        one, at, other, beside = rule
        return symbols[one][at] - 0.5 * symbols[other][beside]

    def step() -> None:
        with hc.loop(limit=3):
            for sets in steps:
                hc.assign({symbols[n]: value(rule) for n, rule in sets.items()})

    return hc.program(step)


def computed(steps: list[dict[int, Any]], arrays: list[np.ndarray]) -> list[np.ndarray]:
    def at(n: int, offset: tuple[int, int]) -> np.ndarray:
        return np.roll(arrays[n], (-offset[0], -offset[1]), (0, 1))

    for _ in range(3):
        for sets in steps:
            values = {
                n: at(rule[0], (0, 0)) if len(rule) == 1 else at(*rule[:2]) - 0.5 * at(*rule[2:])
                for n, rule in sets.items()
            }
            arrays = [values.get(n, array) for n, array in enumerate(arrays)]
    return arrays


def check(steps: list[dict[int, Any]], **options: Any) -> None:
    """Compare two runs of a program with the same statements in NumPy."""
    grid, symbols = fields()
    sim = hc.Simulation(grid, traced(steps, symbols), **options)
    arrays = [np.random.default_rng(n).integers(0, 2**20, grid.shape).astype(float) for n in range(4)]
    for symbol, array in zip(symbols, arrays, strict=True):
        sim[symbol] = array
    for _ in range(2):
        sim.run()
        arrays = computed(steps, arrays)
        for symbol, array in zip(symbols, arrays, strict=True):
            gathered = sim.gather(symbol)
            if gathered is not None:  # on rank 0
                np.testing.assert_array_equal(gathered, array)


@settings(max_examples=15, deadline=None)
@given(steps=programs)
def test_random_programs_have_the_values_of_copies(steps: list[dict[int, Any]]) -> None:
    check(steps, threads=1)


@settings(max_examples=4, deadline=None)
@given(steps=programs)
@pytest.mark.usefixtures("opencl")
def test_random_programs_have_the_values_of_copies_on_devices(steps: list[dict[int, Any]]) -> None:
    check(steps, device="opencl:0,1")


LEAPFROG = {0: (0, (1, 0), 1, (0, 0)), 1: (0,)}
FIXED = (
    [LEAPFROG],
    [{**LEAPFROG, 2: (1,)}],
    [{0: (0, (1, 0), 1, (1, 0)), 1: (0,), 2: (1,), 3: (2,)}, LEAPFROG],
    [{1: (0,), 0: (1, (0, 0), 2, (0, 0))}, {2: (0, (0, -1), 1, (2, 1))}],
)


@pytest.mark.ranks(1, 2, 3, long=(1, 2))
def test_ranks_and_subdomains_have_the_values_of_copies() -> None:
    for steps in FIXED:
        for options in (
            {"threads": 2, "patch": 4},
            {"subdomains_per_rank": 2, "overlap": False},
            {"halo": "uniform", "methods": "mpi"},
        ):
            check(steps, **options)


def test_halos_grow_for_all_fields_that_swap_buffers() -> None:
    """`evaluate` needs a wider halo of one field; the field that takes over its buffer gets the same."""
    grid = hc.Grid(8, periodic=True)
    u, before = grid.field("u"), grid.field("before")
    sim = hc.Simulation(grid, hc.program(lambda u, before: hc.assign({u: u[1] + 1.0, before: u})))
    sim[u] = np.arange(8.0)
    sim.run()
    assert sim.evaluate(hc.max(abs(u[3] - u))) == 5.0
    sim.run()
    assert sim[u].tolist() == [4, 5, 6, 7, 8, 9, 2, 3]
    assert sim[before].tolist() == [2, 3, 4, 5, 6, 7, 8, 1]


def test_a_field_without_memory_leaves_the_fields_that_swap_buffers() -> None:
    grid = hc.Grid(8, periodic=True)
    u, before, oldest = (grid.field(name) for name in ("u", "before", "oldest"))
    store = FieldStore(Domain(grid))

    def allocate(values: dict[Any, Any]) -> None:
        prepare(store, hc.program(lambda: hc.assign(values)).trace(), [])

    allocate({u: u[1] + 1.0, before: u, oldest: before})
    store.forget("before")
    allocate({u: u[-3] + oldest})  # with a wider halo
    assert "before" not in store.storages
    assert store._widths["oldest"] == store._widths["u"]
    allocate({before: 2.0 * before})  # a new field, which needs no halo
    assert store._widths["before"] == ((0, 0),)
    allocate({u: u[1] + 1.0, before: u})
    assert store._widths["oldest"] == store._widths["u"] == store._widths["before"]


@pytest.mark.usefixtures("opencl")
def test_a_stop_restores_the_buffers_of_passes_that_did_not_run() -> None:
    """The device queues passes before the host knows that the run stops; three buffers rotate."""

    def run(device: Any) -> list[list[float]]:
        grid = hc.Grid(8, periodic=True)
        u, before, oldest = (grid.field(name) for name in ("u", "before", "oldest"))

        def step() -> None:
            with hc.loop(limit=50):
                hc.assign({u: u[1] + before - oldest[1], before: u, oldest: before})
                hc.stop(hc.max(abs(u)) > 1e3, "large")

        sim = hc.Simulation(grid, hc.program(step), device=device, threads=1)
        sim[u] = np.arange(8.0)
        sim.run()
        return [sim[f].tolist() for f in (u, before, oldest)]

    assert run("opencl:0") == run(None)
