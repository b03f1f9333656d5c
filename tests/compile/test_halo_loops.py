"""Halos that stay valid from one pass of a loop to the next: one exchange before the loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halocline as hc
from halocline.compile.compiler import arranged, compile_program
from halocline.compile.footprint import Direction
from halocline.compile.lower import LoopGraph, OperationGraph, SweepGraph
from halocline.compile.lower import sweeps as all_sweeps
from halocline.compile.numbering import Sweeps
from halocline.compile.schedule import Loop, Operation, Schedule, Sweep
from halocline.compile.strategy import Strategy
from halocline.compile.walls import neighbours
from halocline.run.ranks.mpi import world
from halocline.solvers.cg import solve_program
from random_loops import FIELDS, SHAPE, check_random_programs, statements, traced

# --- places of exchanges ---


def program_of(function: Callable[..., None], grid: hc.Grid, *parameters: str, **options: Any) -> Schedule:
    traced = hc.program(function).trace(*map(hc.parameter, parameters))
    return compile_program(traced, grid, **options)


def exchanged(schedule: Schedule, operations: Sequence[Operation] | None = None) -> list[Any]:
    """Return the names of the fields that each sweep exchanges.

    A loop is a list of its own, and an exchange without a kernel is a tuple.
    """
    summary: list[Any] = []
    for operation in schedule.operations if operations is None else operations:
        if isinstance(operation, Sweep):
            names = sorted(schedule.fields[n].name for n in operation.exchange)
            summary.append("".join(names) if operation.computes else tuple(names))
        elif isinstance(operation, Loop):
            summary.append(exchanged(schedule, operation.body))
    return summary


def fields_of(names: str, **options: Any) -> tuple[hc.Grid, list[hc.Field]]:
    grid = hc.Grid(SHAPE, periodic=True)
    return grid, [grid.field(name, **options) for name in names]


@pytest.mark.parametrize("device", [None, Strategy()])
def test_a_coefficient_is_exchanged_before_the_loop(device: Strategy | None) -> None:
    grid, (k, u) = fields_of("ku")

    def program() -> None:
        with hc.loop(limit=3):
            u.set(u[1, 0] + k[1, 0] * k[0, 1])

    assert exchanged(program_of(program, grid, device=device)) == [("k",), ["u"]]


def test_a_coefficient_that_is_assigned_before_the_loop_is_exchanged_after_that() -> None:
    grid, (k, u) = fields_of("ku")

    def program() -> None:
        k.set(0.5 * u)
        with hc.loop(limit=3):
            u.set(u[1, 0] + k[1, 0])

    assert exchanged(program_of(program, grid)) == ["", ("k",), ["u"]]


def test_nested_loops_exchange_each_field_before_the_outermost_that_keeps_it() -> None:
    grid, (k, l, u) = fields_of("klu")

    def program() -> None:
        with hc.loop(limit=3):
            l.set(l + u)
            with hc.loop(limit=3):
                u.set(u[1, 0] + k[1, 0] + l[1, 0])

    assert exchanged(program_of(program, grid)) == [("k",), ["", ("l",), ["u"]]]


def test_nothing_is_exchanged_before_a_conditional_statement() -> None:
    """The statement may rarely run; only fields that the loop never assigns are exchanged before the loop."""
    grid, (k, u, v) = fields_of("kuv")

    def program(flag: Any) -> None:
        with hc.loop(limit=3):
            u.set(0.5 * u)
            with hc.when(flag > 0.5):
                v.set(u[1, 0] + k[1, 0])

    assert exchanged(program_of(program, grid, "flag")) == [("k",), ["", ["u"]]]


def test_a_field_that_a_conditional_statement_assigns_is_exchanged_in_each_pass() -> None:
    grid, (k, u) = fields_of("ku")

    def program(flag: Any) -> None:
        with hc.loop(limit=3):
            u.set(u + k[1, 0])
            with hc.when(flag > 0.5):
                k.set(0.5 * k)

    assert exchanged(program_of(program, grid, "flag")) == [["k", [""]]]


def test_a_halo_that_is_computed_in_each_pass_is_exchanged_before_the_loop() -> None:
    """The halo of the older of two levels is computed from the newer one."""
    grid, (current, old, new) = fields_of("uvw")

    def program() -> None:
        with hc.loop(limit=3):
            new.set(current[1, 0] + current[-1, 0] - old[1, 0])
            old.set(current)
            current.set(new)

    assert exchanged(program_of(program, grid)) == [("v",), ["u"]]


def test_a_halo_from_the_end_of_a_pass_is_not_exchanged_again_at_the_start_of_the_next() -> None:
    grid, (g, u, v) = fields_of("guv")

    def program() -> None:
        with hc.loop(limit=3):
            u.set(u[1, 0] + g)
            v.set(u[1, 0])

    assert exchanged(program_of(program, grid)) == [("u",), ["", "u"]]


def test_a_narrower_halo_that_a_pass_leaves_is_not_exchanged_before_the_loop() -> None:
    """An exchange before the loop would be useless, since each pass needs two layers and exchanges them."""
    grid, (g, u, v) = fields_of("guv")

    def program() -> None:
        with hc.loop(limit=3):
            v.set(v + u[2, 0])
            u.set(u + g)
            v.set(v + u[1, 0])

    assert exchanged(program_of(program, grid)) == [["u", "u"]]


def test_rows_of_coefficients_are_not_wrapped_in_each_pass() -> None:
    grid = hc.Grid(16, periodic=True)
    k, u = grid.field("k"), grid.field("u")

    def program() -> None:
        with hc.loop(limit=3):
            u.set(u[1] + k[1])

    schedule = program_of(program, grid)
    assert [schedule.fields[n].name for s in schedule.sweeps() for n in s.wraps] == ["u"]


@pytest.mark.parametrize("method", ["cg", "cg-fused"])
def test_the_coefficient_of_a_linear_problem_is_exchanged_once(method: str) -> None:
    grid = hc.Grid((16, 16), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    k = grid.field("k", boundary=hc.Derivative(0.0))
    schedule = compile_program(solve_program(method, lambda u: -hc.div(k * hc.grad(u)), u, 1.0), grid)
    assert any(isinstance(operation, Loop) for operation in schedule.operations)
    number = [info.name for info in schedule.fields].index("k")
    inside = [number in sweep.exchange for sweep in schedule.pass_sweeps()]
    assert len(inside) > 1
    assert not any(inside)
    assert sum(number in sweep.exchange for sweep in schedule.sweeps()) == 1


# --- random programs ---


class Halos:
    """Halo of each field during a run, by direction: its layers, and the version of its values."""

    def __init__(self, sweeps: Sweeps, rng: Random) -> None:
        self.sweeps, self.rng = sweeps, rng
        self.values = dict.fromkeys(FIELDS, 0)  # number of assignments of each field
        self.layers: dict[tuple[str, Direction], tuple[tuple[int, ...], int]] = {}
        self.checked = 0

    def run(self, operations: list[OperationGraph]) -> None:
        for operation in operations:
            if isinstance(operation, SweepGraph):
                self.sweep(operation)
            elif isinstance(operation, LoopGraph):
                for _ in range(self.rng.randint(0, 1 if operation.often is not None else 3)):
                    self.run(operation.body)

    def sweep(self, sweep: SweepGraph) -> None:
        halo = self.sweeps.halos[sweep]
        for f, footprint in halo.exchange.items():
            for direction, width in footprint:
                self.layers[f.name, direction] = width, self.values[f.name]
        for f, footprint in halo.reads.items():
            for direction, width in neighbours(footprint):
                valid, version = self.layers.get((f.name, direction), (width, -1))
                assert version == self.values[f.name], f"{f.name} is stale in {direction}"
                assert all(w <= t for w, t in zip(width, valid, strict=True))
                self.checked += 1
        for f in sweep.sets:
            self.values[f.name] += 1
        for f, footprint in halo.extended.items():
            for direction, width in footprint:
                self.layers[f.name, direction] = width, self.values[f.name]


def repeated(operations: list[OperationGraph]) -> Iterator[LoopGraph]:
    """Yield all loops except conditional statements."""
    for operation in operations:
        if isinstance(operation, LoopGraph):
            yield from [operation] * (operation.often is None)
            yield from repeated(operation.body)


@given(st.integers(0, 2**32))
def test_no_random_program_reads_a_stale_halo_or_exchanges_an_invariant_one(seed: int) -> None:
    rng = Random(seed)
    grid = hc.Grid(SHAPE, periodic=True)
    fields = {name: grid.field(name) for name in FIELDS}
    all_statements = [*statements(rng), ("set", "a", "b", (1, 1), "c")]
    arrangement = arranged(
        traced(all_statements, fields).trace(hc.parameter("no"), hc.parameter("yes")), grid
    )
    for loop in repeated(arrangement.operations):
        inside = all_sweeps(loop.body)
        assigned = {f for sweep in inside for f in sweep.sets}
        assert all(assigned.issuperset(arrangement.halos[sweep].exchange) for sweep in inside)
    for _ in range(5):
        halos = Halos(arrangement, rng)
        halos.run(arrangement.operations)
        assert halos.checked


@pytest.mark.ranks(1, 2, long=(1,))
def test_random_programs_compute_the_bits_of_numpy() -> None:
    check_random_programs(range(3, 4))


# --- runs ---


def diffusion(**options: Any) -> tuple[hc.Simulation, hc.Field, hc.Field]:
    grid = hc.Grid(16, 16.0, periodic=True)
    u, k = grid.field("u"), grid.field("k")

    @hc.program
    def step(u: Any, k: Any) -> None:
        u.set(0.5 * u + 0.25 * (k[1] * u[1] + k[-1] * u[-1]))

    return hc.Simulation(grid, step, threads=1, **options), u, k


def diffused(u: Any, k: Any, steps: int) -> Any:
    for _ in range(steps):
        u = 0.5 * u + 0.25 * (np.roll(k, -1) * np.roll(u, -1) + np.roll(k, 1) * np.roll(u, 1))
    return u


@pytest.mark.ranks(1, 2)
def test_a_coefficient_set_between_two_runs_is_exchanged() -> None:
    sim, u, k = diffusion()
    u0 = np.arange(1.0, 17.0)
    sim[u] = u0
    for step, factor in enumerate((1.0, 0.5, 2.0)):
        sim[k] = factor * np.where(np.arange(16) % 8 == 0, 0.5, 1.0)
        sim.run(steps=3)
        u0 = diffused(u0, factor * np.where(np.arange(16) % 8 == 0, 0.5, 1.0), 3)
        gathered = sim.gather(u)
        assert gathered is None or np.allclose(gathered, u0, rtol=1e-14), f"after run {step}"


@pytest.mark.ranks(2)
@pytest.mark.parametrize("method", ["mpi", "rma"])
def test_an_invariant_coefficient_is_packed_once(tmp_path: Path, method: str) -> None:
    comm = world()
    file = Path(comm.bcast(str(tmp_path))) / "trace.json"
    sim, u, k = diffusion(methods=f"self,{method}", trace=file)
    sim[u], sim[k] = 1.0, 1.0
    steps = 40
    sim.run(steps=steps)
    exchange, sweep = sim.plan.subdomains[0].sweeps
    assert exchange.bytes_sent == sweep.bytes_sent == 2 * 8
    if comm.rank == 0:
        events = json.loads(file.read_text())["traceEvents"]
        packs = [e for e in events if e["ph"] == "X" and e["cat"] == "pack" and e["pid"] == 0]
        assert len(packs) == 2 * steps + 2


def test_devices_have_the_same_bits(opencl: Any) -> None:
    checksums = set()
    for options in ({}, {"device": "opencl", "subdomains_per_rank": 2}):
        sim, u, k = diffusion(**options)
        sim[u], sim[k] = np.arange(1.0, 17.0), np.linspace(0.5, 1.0, 16)
        sim.run(steps=5)
        checksums.add(sim.checksum(u))
    assert len(checksums) == 1


@pytest.mark.parametrize("parts", [1, 3])
def test_ghosts_of_a_field_that_never_changes_follow_a_scalar(parts: int) -> None:
    """The halo is exchanged once, but the ghosts beyond the wall change in each pass."""
    grid = hc.Grid(12, 12.0)
    level = hc.parameter("level")
    u = grid.field("u", boundary={"x-": hc.Value(level), "x+": hc.Value(0.0)})
    v = grid.field("v")

    @hc.program
    def program(level: Any) -> None:
        with hc.loop(limit=3):
            v.set(v + u[-1] + u[1])
            level.set(level + 1.0)

    sim = hc.Simulation(
        grid, program, parameters={"level": 4.0}, decomposition=(parts,), subdomains_per_rank=parts
    )
    u0 = np.arange(1.0, 13.0)
    sim[u] = u0
    sim.run()
    assert [sweep.computes for sweep in sim.schedule.sweeps()] == [False, True]
    expected = sum(np.r_[2 * value - u0[0], u0[:-1]] + np.r_[u0[1:], -u0[-1]] for value in (4.0, 5.0, 6.0))
    assert np.array_equal(sim[v], expected)
