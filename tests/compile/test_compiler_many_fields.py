"""Compilation of programs with many fields: the work grows in proportion to the length."""

from __future__ import annotations

import re

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.passes.nests import MAX_RESULTS, MAX_SHARING_REDUCTIONS
from halocline.lang.grid import Grid
from halocline.lang.program import Program
from halocline.lang.trace import tracing
from programs_of_many_fields import Statements, compiled, products, steps, sums


@pytest.mark.parametrize("statements", [sums, products, steps])
def test_no_function_grows_with_the_number_of_fields(statements: Statements) -> None:
    """The number of sums of a function is bounded, since compilation time grows as its square."""
    sizes = []
    for count in (100, 200):
        source = compiled(statements, count).source
        sizes.append(max(len(re.findall("hc_sum_close", part)) for part in source.split("hc_box *box)")))
        assert 0 < sizes[-1] <= 4 * MAX_RESULTS  # in whole vectors and in the remainder, of both kernels
    assert sizes[0] == sizes[1]


def test_reductions_that_share_fields_read_them_once() -> None:
    grid = Grid((8, 8), periodic=True)
    u = grid.field("u")
    program = Program("shared")
    with tracing(program):
        for number in range(MAX_SHARING_REDUCTIONS):
            program.internal_scalar(f"result{number}").set(hc.sum(u * (number + 1.0)))
    source = compile_program(program, grid).source
    assert source.count("for (int64_t i = ") == 2  # a loop of each kernel


@pytest.mark.parametrize("shared", [False, True], ids=["apart", "sharing"])
def test_reductions_in_separate_loops_use_values_before_the_sweep(shared: bool) -> None:
    """Reductions read the old values of fields that later statements set in place in the same sweep."""
    count = MAX_SHARING_REDUCTIONS + 2 * MAX_RESULTS + 1
    grid = hc.Grid((6, 40), periodic=True)
    fields = [grid.field(f"f{number}") for number in range(count)]

    @hc.program
    def change() -> None:
        for number, field in enumerate(fields):
            term = field * fields[number - 1] if shared else field
            hc.scalar(f"total{number}").set(hc.sum(term))
            hc.scalar(f"least{number}").set(hc.min(term))
        hc.assign({field: 2.0 * field for field in fields})

    sim = hc.Simulation(grid, change, threads=2)
    assert sum("total" in name for name in sim.schedule.scalars) == count
    assert len([s for s in sim.schedule.sweeps() if s.reductions]) == 1
    assert not any(name.endswith("'") for name in (f.name for f in sim.schedule.fields))  # in place
    draw = np.random.default_rng(5)
    before = [draw.integers(-9, 9, grid.shape).astype(float) for _ in fields]
    for field, values in zip(fields, before, strict=True):
        sim[field] = values
    sim.run(steps=1)
    for number, (field, values) in enumerate(zip(fields, before, strict=True)):
        term = values * before[number - 1] if shared else values
        assert sim.values[f"total{number}"] == term.sum()  # whole numbers: no rounding
        assert sim.values[f"least{number}"] == term.min()
        assert np.array_equal(sim.gather(field), 2 * values)
