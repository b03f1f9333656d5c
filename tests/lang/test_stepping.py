"""Time steps that are reduced from fields: exact, or one step late during a reduction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.schedule import Await, Loop, Sweep
from halocline.errors import InputError


def burgers(u: Any) -> Any:
    return {u: -u * hc.derivative(u, 0) + 1e-3 * hc.laplacian(u)}


def wave_on(grid: hc.Grid, **options: Any) -> hc.Simulation:
    u = grid.fields["u"] if "u" in grid.fields else grid.field("u")
    sim = hc.Simulation(grid, burgers, scheme=hc.RK3(), **options)
    sim[u] = start
    return sim


def start(x: Any, y: Any) -> Any:
    return 1.0 + 0.5 * np.sin(2 * np.pi * x) * np.cos(2 * np.pi * y)


def limit(grid: hc.Grid) -> Any:
    return lambda u, t: 0.3 * grid.h(0) / hc.max(abs(u)) * (1.0 + t)


@pytest.mark.ranks(1, 3, long=(1,))
def test_a_delayed_step_uses_the_fields_of_the_previous_step() -> None:
    grid = hc.Grid((20, 24), periodic=True)
    delayed = wave_on(grid, dt=limit(grid), time_step="delayed", threads=2)
    delayed.run(steps=5)

    by_hand = wave_on(grid, dt=lambda size: size, parameters={"size": 1.0})
    u = grid.fields["u"]
    sizes = []
    for n in range(5):
        t = by_hand.time
        size = by_hand.evaluate(0.3 * grid.h(0) / hc.max(abs(u)))
        sizes.append(size * (1.0 + t))
        by_hand.parameters["size"] = sizes[max(n - 1, 0)]
        by_hand.run(steps=1)
    assert len(set(sizes)) == 5
    assert delayed.time == pytest.approx(by_hand.time, rel=1e-14)
    a, b = delayed.gather(u), by_hand.gather(u)
    assert a is None or np.allclose(a, b, rtol=1e-13, atol=0)

    exact = wave_on(grid, dt=limit(grid))
    exact.run(steps=5)
    assert exact.time != delayed.time


@pytest.mark.ranks(1, 2, 3, long=(1, 2))
def test_a_delayed_step_has_the_same_bits_on_any_layout() -> None:
    results = set()
    ways: list[tuple[dict[str, Any], list[int]]] = [
        ({"communicator": world_of_one()}, [100]),
        ({"threads": 2, "patch": 7}, [3, 5, 1, 100]),
        ({"methods": "mpi", "overlap": False}, [1, 100]),
        ({"subdomains_per_rank": 2, "schedule": "dynamic", "threads": 2}, [100]),
    ]
    for options, runs in ways:
        grid = hc.Grid((20, 24), periodic=True)
        sim = wave_on(grid, dt=limit(grid), time_step="delayed", **options)
        for steps in runs:
            sim.run(until=0.3, steps=steps)
        results.add((sim.checksum("u"), sim.time, sim.steps))
    assert len(results) == 1


def world_of_one() -> Any:
    from mpi4py import MPI

    return MPI.COMM_SELF


def test_changed_fields_and_parameters_affect_a_delayed_step_immediately() -> None:
    grid = hc.Grid((16, 16), periodic=True)
    sim = wave_on(grid, dt=lambda u, cfl: cfl * grid.h(0) / hc.max(abs(u)), time_step="delayed",
                  parameters={"cfl": 0.1})  # fmt: skip
    sim.run(steps=1)
    sim.run(steps=1)
    sim["u"] = 2.0
    before = sim.time
    sim.run(steps=1)
    assert sim.time - before == pytest.approx(0.1 / 16 / 2)
    sim.parameters["cfl"] = 0.2
    before = sim.time
    sim.run(steps=1)
    assert sim.time - before == pytest.approx(0.2 / 16 / 2)


def test_the_reduction_of_a_delayed_step_costs_no_sweep_and_is_awaited_last() -> None:
    grid = hc.Grid((16, 16), periodic=True)
    bodies = []
    for time_step in ("exact", "delayed"):
        *_, last = wave_on(grid, dt=limit(grid), time_step=time_step).schedule.operations
        assert isinstance(last, Loop)
        bodies.append(last.body)
    exact, delayed = ([type(operation) for operation in body] for body in bodies)
    assert exact.count(Sweep) == delayed.count(Sweep) + 1
    assert exact.index(Await) < exact.index(Sweep, exact.index(Sweep) + 1)
    assert Sweep not in delayed[delayed.index(Await) :]


def test_results_are_awaited_before_they_are_used() -> None:
    """Statements that wait for a reduction, and statements that do not, keep the meaning of the text."""
    grid = hc.Grid((12,), periodic=True)
    u = grid.field("u")

    @hc.program
    def step(u: Any) -> None:
        a, b, c, d = hc.scalars("a b c d")
        d.set(1.0)
        a.set(hc.sum(u))
        b.set(d + 1.0)  # needs no result
        c.set(a + d)  # needs the sum, and the current d
        d.set(7.0)
        u.set(u + b)  # needs no sum
        u.set(u[1] + 0.0 * u[-1] + c)
        b.set(b + d)

    sim = hc.Simulation(grid, step)
    sim[u] = np.arange(12.0)
    sim.run()
    total = float(np.arange(12.0).sum())
    assert sim.values["a"] == total
    assert sim.values["b"] == 9.0
    assert sim.values["c"] == total + 1.0
    assert sim.values["d"] == 7.0
    assert np.array_equal(sim[u], np.roll(np.arange(12.0) + 2.0, -1) + total + 1.0)
    kinds = [type(operation) for operation in sim.schedule.operations[-1].body]
    assert kinds.count(Await) == 1


def test_invalid_time_steps_are_reported() -> None:
    grid = hc.Grid((16, 16), periodic=True)
    with pytest.raises(InputError, match="time_step 'late' is unknown; known: exact, delayed"):
        wave_on(grid, dt=0.1, time_step="late")
    with pytest.raises(
        InputError, match=r"time_step='delayed' needs a dt that is reduced over fields, .*; got dt=0\.1"
    ):
        wave_on(grid, dt=0.1, time_step="delayed")
    with pytest.raises(InputError, match="dt varies from cell to cell"):
        wave_on(grid, dt=lambda u: 0.1 * u, time_step="delayed")
