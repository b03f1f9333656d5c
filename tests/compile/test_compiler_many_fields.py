"""Programs of many fields: the work of compiling them grows as their length, not as its square."""

from __future__ import annotations

import cProfile
import itertools
import pstats
import re
from collections.abc import Callable

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.passes.nests import MOST, MOST_SHARING
from halocline.compile.schedule import Schedule
from halocline.lang.grid import Field, Grid
from halocline.lang.program import Program
from halocline.lang.trace import tracing

Statements = Callable[[Program, list[Field]], None]


def sums(program: Program, fields: list[Field]) -> None:
    """One sum of each field."""
    for number, field in enumerate(fields):
        program.own(f"result{number}").set(hc.sum(field))


def products(program: Program, fields: list[Field]) -> None:
    """Sums that share each field with the next one."""
    for number, (left, right) in enumerate(itertools.pairwise(fields)):
        program.own(f"result{number}").set(hc.dot(left, right))


def steps(program: Program, fields: list[Field]) -> None:
    """Each field takes a step of diffusion and is summed."""
    for number, field in enumerate(fields):
        field.set(field + 0.1 * hc.laplacian(field))
        program.own(f"result{number}").set(hc.sum(field))


def compiled(statements: Statements, count: int) -> Schedule:
    """Return the schedule for that many fields."""
    grid = Grid((8, 8), periodic=(True, False))
    fields = [grid.field(f"f{number}", boundary=hc.Value(0)) for number in range(count)]
    program = Program("many")
    with tracing(program):
        statements(program, fields)
    return compile_program(program, grid)


def counted(statements: Statements, count: int) -> tuple[Schedule, int]:
    """Return the schedule for that many fields, and how many functions Python called to make it."""
    with cProfile.Profile() as profile:
        schedule = compiled(statements, count)
    return schedule, pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


@pytest.mark.long
@pytest.mark.parametrize("statements", [sums, products, steps])
def test_twice_as_many_fields_are_twice_the_work(statements: Statements) -> None:
    """What is the same for any number of fields falls out of differences."""
    compiled(statements, 2)  # what is imported at the first use
    few, more, most = (counted(statements, count) for count in (50, 100, 200))
    calls = [found[1] for found in (few, more, most)]
    text = [len(found[0].source) for found in (few, more, most)]
    for lengths in (calls, text):
        assert lengths[2] - lengths[1] <= 2.2 * (lengths[1] - lengths[0])


@pytest.mark.parametrize("statements", [sums, products, steps])
def test_no_function_grows_with_the_number_of_fields(statements: Statements) -> None:
    """The time that a C++ compiler takes for a loop grows as the square of its sums."""
    sizes = []
    for count in (100, 200):
        source = compiled(statements, count).source
        sizes.append(max(len(re.findall("hc_sum_close", part)) for part in source.split("hc_box *box)")))
        assert 0 < sizes[-1] <= 4 * MOST  # in lines and in the rest, of both kernels
    assert sizes[0] == sizes[1]


def test_few_reductions_that_share_fields_read_these_once() -> None:
    grid = Grid((8, 8), periodic=True)
    u = grid.field("u")
    program = Program("shared")
    with tracing(program):
        for number in range(MOST_SHARING):
            program.own(f"result{number}").set(hc.sum(u * (number + 1.0)))
    source = compile_program(program, grid).source
    assert source.count("for (int64_t i = ") == 2  # a loop of each kernel


@pytest.mark.parametrize("shared", [False, True], ids=["apart", "sharing"])
def test_reductions_in_loops_of_their_own_see_the_values_from_before(shared: bool) -> None:
    """Fields are set in place by the same sweep, statements after the reductions."""
    count = MOST_SHARING + 2 * MOST + 1
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
