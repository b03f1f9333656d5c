"""Evaluations of numbers and expressions: compiled once, with the current values of fields and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.program import Program
from halocline.run.fields import fields as fields_module
from halocline.run.fields import pointwise as pointwise_module

SHAPE = (8, 6)


def simulation(threads: int = 1) -> tuple[hc.Simulation, hc.Field, hc.Field]:
    grid = hc.Grid(SHAPE, periodic=True)
    u, v = grid.field("u"), grid.field("v", dtype="float32")
    sim = hc.Simulation(
        grid,
        lambda u, v, kappa: {u: kappa * hc.laplacian(u), v: -v},
        parameters={"kappa": 0.5},
        scheme=hc.Euler(),
        dt=1e-4,
        threads=threads,
    )
    sim[u], sim[v] = 0.0, 0.0
    sim.settle()
    return sim, u, v


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Force the compilation of pointwise programs."""
    monkeypatch.setattr(pointwise_module, "MOST_WORK", -1)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch, compiled: None) -> list[str]:
    """Return the list of the programs that fields have compiled, by name."""
    names: list[str] = []
    prepare: Callable[..., Any] = vars(fields_module)["prepare"]

    def counted(store: Any, program: Program, values: Any) -> Any:
        names.append(program.name)
        return prepare(store, program, values)

    monkeypatch.setattr(fields_module, "prepare", counted)
    return names


# -- number of compilations ----------------------------------------------------------------------------------


def test_numbers_share_one_program(prepared: list[str]) -> None:
    sim, u, v = simulation()
    prepared.clear()
    numbers = [0.0, -0.0, 1.5, -3.0, 1e-310, 0.1, 2**-149, 1e30, 7]
    for number in numbers:
        for field in (u, v):
            sim[field] = number
            values = np.asarray(sim[field])
            expected = np.full(SHAPE, number, field.dtype)
            assert values.tobytes() == expected.tobytes()
    assert prepared == ["initial_values"] * 2  # one program per field


def test_a_number_out_of_range_is_rejected() -> None:
    sim, _, v = simulation()
    sim[v] = 2.0
    with pytest.raises(InputError, match="float32"):
        sim[v] = 1e39
    assert np.all(np.asarray(sim[v]) == 2.0)


def test_expressions_are_compiled_once(prepared: list[str]) -> None:
    sim, u, v = simulation()
    kappa = trace.scalar("kappa")
    formula = lambda x, y: np.sin(x) + y  # noqa: E731
    prepared.clear()
    for step in range(5):
        sim.parameters["kappa"] = 0.25 * step
        sim[u] = step + 1.0
        sim[v] = formula
        held = np.array(sim[v], np.float64)
        gathered = sim.gather(kappa * u + v)
        assert gathered is not None
        assert np.array_equal(gathered, 0.25 * step * (step + 1.0) + held)
        assert sim.evaluate(hc.max(u)) == step + 1.0
    assert sorted(prepared) == ["evaluate", "initial_values", "values"]


def test_programs_are_bounded_and_hold_no_temporary_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields_module, "MOST_PROGRAMS", 3)
    sim, u, _ = simulation()
    before, memory = set(sim.store.storages), sim.store.memory_bytes
    for number in range(6):
        gathered = sim.gather(u + (number + 0.5))
        assert gathered is not None
        assert np.all(gathered == number + 0.5)
    assert len(sim._programs) == 3
    assert set(sim.store.storages) == before
    assert sim.store.memory_bytes == memory
    assert all(program.native_engine is None for key, program in sim._programs.items() if key[0] == "values")


def test_engines_of_narrower_halos_are_released(compiled: None) -> None:
    sim, u, _ = simulation()
    assert sim.evaluate(hc.max(u)) == 0.0
    engine = next(program for key, program in sim._programs.items() if key[0] == "evaluate")
    generation = sim.store.generation
    assert sim.evaluate(hc.max(u[3, 0])) == 0.0  # this read needs a wider halo
    assert sim.store.generation > generation
    sim.settle()
    assert engine.native_engine is None
    sim[u] = 3.0
    assert sim.evaluate(hc.max(u)) == 3.0


def test_held_expressions_may_be_nested() -> None:
    sim, u, _ = simulation()
    sim[u] = 3.0
    for _ in range(2):
        with sim.values_as_field(2.0 * u) as first, sim.values_as_field(u - 1.0) as second:
            assert first is not second
            assert np.all(np.asarray(sim[first]) == 6.0)
            assert np.all(np.asarray(sim[second]) == 2.0)
    assert set(sim.grid.fields) == {"u", "v"}


# -- equal values with and without cached programs -----------------------------------------------------------


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 9))])
def test_cached_programs_do_not_change_values(seed: int) -> None:
    """Random operations give equal results on two simulations, one of which compiles every program again."""
    rng = np.random.default_rng(seed)
    cached, recompiled = simulation(), simulation()
    kappa = trace.scalar("kappa")
    expressions: list[Callable[[Any, Any], Any]] = [
        lambda u, v: 0.5 * v + u[1, 0],
        lambda u, v: kappa * u,
        lambda u, v: v - u[0, 3],
    ]
    function = lambda x, y: np.cos(3.0 * x) * y  # noqa: E731
    operations = 0
    for _ in range(25):
        kind, number_of_field = rng.integers(8), int(rng.integers(2))
        number, array = float(np.round(rng.normal(), 1)), rng.normal(size=SHAPE)
        first, second = (expressions[n] for n in rng.integers(len(expressions), size=2))
        results = []
        for sim, u, v in (cached, recompiled):
            if sim is recompiled[0]:
                sim._forget_programs()
            field = (u, v)[number_of_field]
            if kind == 0:
                sim[field] = number
            elif kind == 1:
                sim[field] = array
            elif kind == 2:
                sim[field] = first(u, v)
            elif kind == 3:
                sim.parameters["kappa"] = abs(number)
            elif kind == 4:
                sim.run(steps=2)
            elif kind == 5:
                sim[field][2, 3] = number
            elif kind == 6:
                sim[field] = function
            gathered = sim.gather(second(u, v))
            assert gathered is not None
            results.append(
                [
                    gathered.tobytes(),
                    sim.checksum(u),
                    sim.checksum(v),
                    sim.evaluate(hc.sum(u), hc.min(v)),
                ]
            )
        assert results[0] == results[1]
        operations += 1
    assert operations == 25


def test_active_blocks_change_between_evaluations() -> None:
    grid = hc.Grid((8, 8), periodic=True, active=[[True, False], [True, True]])
    u = grid.field("u")
    sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.1, threads=1)
    for active in ([[True, False], [True, True]], [[True, True], [False, True]]):
        sim.activate(active)
        mask = np.kron(np.array(active, float), np.ones((4, 4)))
        for number in (2.0, 3.0):
            sim[u] = number
            gathered, doubled = sim.gather(u), sim.gather(2.0 * u)
            assert gathered is not None
            assert doubled is not None
            assert np.array_equal(gathered, number * mask)
            assert np.array_equal(doubled, 2.0 * number * mask)


@pytest.mark.ranks(2)
def test_ranks_must_evaluate_the_same() -> None:
    sim, u, _ = simulation()
    rank = sim.domain.comm.rank
    for number in (1.0, 2.0):  # the ranks cache both expressions
        assert sim.evaluate(hc.max(u + number)) == number
    with pytest.raises(InputError, match="not the same on ranks 0 and 1"):
        sim.evaluate(hc.max(u + (1.0 + rank)))
    sim[u] = 4.0
    assert sim.evaluate(hc.max(u)) == 4.0
