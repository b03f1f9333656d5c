"""Conditional statements: with hc.when(...), with hc.every(...)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.model.execute import execute
from halocline.plan.machine import load_machine
from halocline.run.domain.execution import Execution

STEPS = 23


def relaxed(**options: Any) -> tuple[hc.Simulation, dict[str, float], np.ndarray]:
    """Return a run of a field that spreads, is halved above a limit, and is summed every five steps."""
    grid = hc.Grid((12, 20), periodic=(True, False))
    u = grid.field("u", boundary=hc.Value(0.5))

    @hc.program
    def step(u: Any) -> None:
        halved, total, halved_count = hc.scalars("halved total seen")
        u.set(u + 0.3 * (u[1, 0] - 2 * u + u[-1, 0]) + 0.05)
        with hc.when(hc.max(u) > 1.5):
            halved.set(halved + 1)
            u.set(0.5 * u + 0.01 * (u[0, 1] + u[0, -1]))
        with hc.every(5):
            total.set(total + hc.sum(u))
            with hc.when(halved > 1):
                halved_count.set(halved_count + 1)

    sim = hc.Simulation(grid, step, **options)
    x, y = np.meshgrid(np.arange(12.0), np.arange(20.0), indexing="ij")
    sim[u] = 1 + np.sin(x) * np.cos(y)
    outcome = sim.run(steps=STEPS)
    return sim, dict(outcome.scalars), np.array(sim[u])


def expected() -> tuple[dict[str, float], np.ndarray]:
    """Return the results of the same program in NumPy."""
    x, y = np.meshgrid(np.arange(12.0), np.arange(20.0), indexing="ij")
    u = 1 + np.sin(x) * np.cos(y)
    halved = total = halved_count = 0.0
    for step in range(STEPS):
        u = u + 0.3 * (np.roll(u, -1, 0) - 2 * u + np.roll(u, 1, 0)) + 0.05
        if u.max() > 1.5:
            halved += 1
            wide = np.pad(u, ((0, 0), (1, 1)))
            wide[:, 0], wide[:, -1] = 2 * 0.5 - u[:, 0], 2 * 0.5 - u[:, -1]
            u = 0.5 * u + 0.01 * (wide[:, 2:] + wide[:, :-2])
        if step % 5 == 0:
            total += u.sum()
            halved_count += halved > 1
    return {"halved": halved, "total": total, "seen": halved_count}, u


def test_statements_run_if_the_condition_is_true() -> None:
    sim, scalars, u = relaxed()
    exact, field = expected()
    assert 0 < exact["halved"] < STEPS  # the condition holds in some steps only
    assert 0 < exact["seen"] < 5
    assert {name: scalars[name] for name in exact} == pytest.approx(exact, rel=1e-12)
    np.testing.assert_allclose(u, field, rtol=1e-12)
    assert sim.steps == STEPS


# for any ranks, threads, patches and devices, and on any machine
BITS = "7a9dcb23c00a22536f2ed9829291fdfa", "0x1.0e8d33b2fcf3ap+10"


@pytest.mark.ranks(1, 2, 3, long=(1, 2))
def test_conditional_statements_have_the_same_bits_on_ranks() -> None:
    sim, scalars, _ = relaxed(threads=2)
    assert (sim.checksum("u"), scalars["total"].hex()) == BITS


def test_conditional_statements_have_the_same_bits_with_patches_and_on_devices(opencl: Any) -> None:
    for options in ({"threads": 2, "patch": 7}, {"device": "opencl"}):
        sim, scalars, _ = relaxed(**options)
        assert (sim.checksum("u"), scalars["total"].hex()) == BITS


def test_expressions_from_before_the_block_keep_their_values() -> None:
    """A value from before the block keeps its meaning after the block, or its use is an error."""
    grid = hc.Grid(6, periodic=True)
    u, v = grid.field("u"), grid.field("v")

    @hc.program
    def program(u: Any, v: Any, p: Any) -> None:
        before = u * 2
        with hc.when(p > 0):
            v.set(u[1])
        v.set(v + before)

    sim = hc.Simulation(grid, program, parameters={"p": 1.0})
    for p, shifted in ((1.0, np.roll(np.arange(6.0), -1)), (-1.0, np.zeros(6))):
        sim.parameters["p"] = p
        sim[u], sim[v] = np.arange(6.0), np.zeros(6)
        sim.run(steps=1)
        np.testing.assert_array_equal(sim[v], shifted + 2 * np.arange(6.0))

    @hc.program
    def gone(u: Any, v: Any, p: Any) -> None:
        before = u * 2
        with hc.when(p > 0):
            u.set(1.0)
        v.set(before)

    with pytest.raises(InputError, match="the value that field 'u' had before"):
        hc.Simulation(grid, gone, parameters={"p": 1.0})


def test_invalid_conditions_are_rejected() -> None:
    grid = hc.Grid(6, periodic=True)
    grid.field("u")

    def run(body: Any) -> None:
        hc.Simulation(grid, hc.program(body))

    def on_a_field(u: Any) -> None:
        with hc.when(u > 0):
            u.set(1.0)

    with pytest.raises(InputError, match=r"u > 0.*; expected a comparison of scalars.*hc.branch"):
        run(on_a_field)

    def no_condition(u: Any, t: Any) -> None:
        with hc.when(t):
            u.set(1.0)

    with pytest.raises(InputError, match="the condition is t; expected a comparison of scalars"):
        run(no_condition)

    def empty(u: Any, t: Any) -> None:
        with hc.when(t > 1):
            pass
        u.set(1.0)

    with pytest.raises(InputError, match="has no statements"):
        run(empty)

    def never(u: Any) -> None:
        with hc.every(0):
            u.set(1.0)

    with pytest.raises(InputError, match="every"):
        run(never)


def test_explain_and_the_model_count_conditional_statements() -> None:
    sim, _, _ = relaxed()
    text = str(hc.explain(sim, ranks=4))
    assert "when      halved > 1" in text
    assert "(one time in 5)" in text

    def program(k: int) -> Any:
        @hc.program
        def step(u: Any, step: Any) -> None:
            with hc.every(k):
                u.set(u + 0.1 * (u[1, 0] + u[-1, 0]))

        return step

    bytes_per_cell, predicted = [], []
    for k in (1, 4):
        grid = hc.Grid((512, 512), periodic=True)
        grid.field("u")
        sim = hc.Simulation(grid, program(k))
        (sweep,) = sim.schedule.sweeps()
        assert sweep.share == 1 / k
        bytes_per_cell.append(hc.explain(sim, ranks=4).bytes_per_cell)
        large = hc.Grid((16384, 16384), periodic=True)  # large, so that work takes most of the time
        layout = Execution().layout(sim.schedule, large, 4, 4)
        predicted.append(execute(sim.schedule, layout, load_machine("puhti")).seconds)
    assert bytes_per_cell[0] == 4 * bytes_per_cell[1]
    assert 3.5 < predicted[0] / predicted[1] <= 4.0
