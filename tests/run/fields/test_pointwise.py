"""Pointwise evaluation: programs have the bits of compiled ones, without compilation.

Fixed expressions cover every operation. Random expressions nest all operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.errors import InputError
from halocline.lang.expression import cast
from halocline.run.engine.prepared import Prepared
from halocline.run.fields import pointwise as module
from halocline.run.fields.pointwise import OPERATIONS, Pointwise
from random_expressions import check_random_expressions, few, trees


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Return a function that forces or prevents the compilation of pointwise programs."""

    def choose(always: bool) -> None:
        monkeypatch.setattr(module, "MOST_WORK", -1 if always else 2**40)

    return choose


Makes = Callable[[Any, Any, Any], Any]

EXPRESSIONS: list[Makes] = [
    lambda g, u, v: 0.1 * g.x + hc.sin(3 * g.x) * g.y - 2.0,
    lambda g, u, v: hc.exp(-50 * ((g.x - 0.5) ** 2 + (g.y - 0.5) ** 2)) / (1.0 + hc.sqrt(abs(u))),
    lambda g, u, v: hc.cos(1e9 * u) + hc.sin(g.y * v) - hc.log(abs(v) + 1e-300) ** 3,
    lambda g, u, v: (abs(u) + 0.25) ** 0.3 + hc.minimum(u, v) * hc.maximum(u, -v, g.x),
    lambda g, u, v: hc.where((u > v) & ~(u < 0.25) | (g.x >= 0.5), u * v + g.x, hc.branch(u != v, v, 1.5)),
    lambda g, u, v: hc.random(7, index=g.cell_number()) - 0.5 + hc.sign(v) * hc.where(u == v, 2.0, -u),
    lambda g, u, v: hc.where((u <= v) | (u == 0.5), 1e300 * u, -v) + u * v - v * u + u * u,
    lambda g, u, v: cast(u / 3.0, "float32") + 1.0 / (v + 3.0),
    lambda g, u, v: hc.lookup([0.5, -1.0, 3.0], 4 * g.x - 1) + hc.symmetric_sum(u, v, g.x),
]

NUMBERS: list[Makes] = [
    lambda g, u, v: hc.max(u),
    lambda g, u, v: hc.min(abs(v)) + hc.sum(u * v) * hc.sum(g.x * u),
    lambda g, u, v: hc.norm(u - hc.sum(u) / 35.0),
    lambda g, u, v: hc.count(u > 0.25) + hc.dot(u, v),
    lambda g, u, v: hc.value(u, at=(3, 4)) - 2.0 * hc.value(v, at=(6, 0)),
    lambda g, u, v: hc.max(u / v) + hc.sum(hc.exp(v)),
]


def simulation() -> tuple[hc.Simulation, hc.Field, hc.Field]:
    """Return a simulation of fields with random values, and two of the fields."""
    grid = hc.Grid((7, 5), extent=(1.0, 2.0), periodic=True)
    u, v = grid.field("u"), grid.field("v")
    results = [grid.field(f"w{n}", dtype=("float64", "float32")[n % 2]) for n in range(len(EXPRESSIONS))]
    sim = hc.Simulation(grid, lambda: {f: -f for f in (u, v, *results)}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim[u], sim[v] = np.random.default_rng(5).normal(size=(2, 7, 5))
    return sim, u, v


def evaluated(sim: hc.Simulation, u: hc.Field, v: hc.Field) -> list[Any]:
    """Return checksums of all expressions, evaluated in one program, and all numbers, in another."""
    fields = [sim.grid.fields[f"w{n}"] for n in range(len(EXPRESSIONS))]
    for field, make in zip(fields, EXPRESSIONS, strict=True):
        sim[field] = make(sim.grid, u, v)
    sums = [sim.checksum(field) for field in fields]
    numbers = sim.evaluate(*(make(sim.grid, u, v) for make in NUMBERS), hc.max(fields[1]))
    return [*sums, *(number.hex() for number in numbers)]


@pytest.mark.ranks(1, 2)
def test_values_have_the_bits_of_compiled_programs(compiled: Callable[[bool], None]) -> None:
    results = []
    for always in (False, True):
        compiled(always)
        sim, u, v = simulation()
        results.append(evaluated(sim, u, v))
        programs = [*sim._programs.values()]
        assert len(programs) == 2
        assert all(isinstance(program, Prepared if always else Pointwise) for program in programs)
        if not always:
            sweeps = [step for p in programs for step in p.steps if not isinstance(step, tuple)]
            assert {value.op for sweep in sweeps for value in sweep.kernel.values} == OPERATIONS
    assert results[0] == results[1]
    assert len(set(results[0])) == len(EXPRESSIONS) + len(NUMBERS) + 1


@pytest.mark.parametrize("location", ["node", pytest.param("face-x", marks=pytest.mark.long)])
def test_values_on_walls_have_the_bits_of_compiled_programs(
    location: str, compiled: Callable[[bool], None]
) -> None:
    results = []
    for always in (False, True):
        compiled(always)
        grid = hc.Grid((6, 5))
        w = grid.field("w", location=location, boundary=hc.Value(lambda x, y: 1.0 + x + y))
        sim = hc.Simulation(grid, lambda w: {w: -w}, scheme=hc.Euler(), dt=0.1, threads=1)
        sim[w] = lambda x, y: np.cos(x) + 2.0 * y
        first = sim.checksum(w)
        results.append((first, sim.evaluate(hc.sum(w)), sim.evaluate(hc.max(w))))
    assert results[0] == results[1]


@settings(few, max_examples=1)
@given(described=st.lists(trees, min_size=16, max_size=16))
def test_random_expressions_have_the_bits_of_compiled_programs(
    described: list[Any], compiled: Callable[[bool], None]
) -> None:
    check_random_expressions(described, compiled)


def test_programs_with_neighbours_are_compiled(compiled: Callable[[bool], None]) -> None:
    compiled(False)
    sim, u, v = simulation()
    sim._forget_programs()
    for expression in (hc.max(u[1, 0]), hc.sum(hc.laplacian(u))):
        sim.evaluate(expression)
    assert [type(p) for p in sim._programs.values()] == [Prepared] * 2
    sim.evaluate(hc.max(u + v))
    assert type([*sim._programs.values()][-1]) is Pointwise


def test_a_program_that_runs_often_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    sim, u, _ = simulation()
    first = sim.evaluate(hc.max(u))
    (program,) = sim._programs.values()
    assert isinstance(program, Pointwise)
    assert program.done == program.work == 2 * 35  # one load and one result per point
    monkeypatch.setattr(module, "MOST_WORK", 3 * program.work)
    for _ in range(2):
        assert sim.evaluate(hc.max(u)) == first
    assert type(*sim._programs.values()) is Pointwise
    assert sim.evaluate(hc.max(u)) == first
    assert type(*sim._programs.values()) is Prepared


def test_a_parameter_without_a_value_is_rejected(compiled: Callable[[bool], None]) -> None:
    messages = []
    for always in (False, True):
        compiled(always)
        sim, u, _ = simulation()
        with pytest.raises(InputError) as caught:
            sim.evaluate(hc.max(u) * hc.parameter("kapa"))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "kapa" in messages[0]
