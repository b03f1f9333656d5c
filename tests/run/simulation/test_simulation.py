"""Simulations from the view of a user: parameters, runs, memory and reports."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError, RunError
from small_programs import keep, square
from suites import cases


def test_parameters_apply_from_the_next_run(caplog: pytest.LogCaptureFixture) -> None:
    grid = hc.Grid(5, periodic=True)
    u = grid.field("u")

    @hc.program
    def scale(u: Any, factor: Any) -> None:
        u.set(factor * u)

    sim = hc.Simulation(grid, scale, parameters={"factor": 2, "fcator": 7.0})
    assert [r.getMessage() for r in caplog.records] == [
        "parameter fcator is given, but these equations do not read it"
    ]
    assert dict(sim.parameters) == {"factor": 2.0, "fcator": 7.0}
    sim[u] = hc.parameter("factor") + 1.0  # reads the current value
    sim.parameters["factor"] = 5
    sim.run()
    np.testing.assert_array_equal(sim[u], np.full(5, 15.0))
    with pytest.raises(InputError, match=r"parameter 'factor' cannot be removed"):
        del sim.parameters["factor"]

    problem = hc.LinearProblem(
        lambda v: hc.parameter("shift") * v - hc.laplacian(v), u, 6.0, parameters={"shift": 2.0}
    )
    for shift in (2.0, 3.0):
        problem.parameters["shift"] = shift
        solution = problem.solve(rtol=1e-12)
        np.testing.assert_allclose(solution.fields[u], np.full(5, 6.0 / shift), rtol=1e-10)


# --- values of fields ---


@pytest.mark.ranks(1, 4, long=(1,))
def test_a_nonfinite_value_is_reported_with_field_and_cell() -> None:
    """All ranks raise the same error before the first step."""
    grid, _, v = square()
    sim = hc.Simulation(grid, hc.program(keep))
    for bad in (math.nan, math.inf):
        array = np.ones((8, 6))
        array[5, 4] = array[6, 0] = bad
        sim[v] = array
        with pytest.raises(
            InputError, match=rf"field 'v' is {bad} at cell \(5, 4\) before the run; all values must"
        ):
            sim.run()
    sim[v] = 1.0
    sim.run()
    assert sim.steps == 1


def test_values_that_grow_without_bound_are_reported_with_the_step() -> None:
    grid, u, _ = square()
    sim = hc.Simulation(grid, lambda u: {u: u * u * 1e200}, scheme=hc.Euler(), dt=1.0)
    sim[u] = 1.0
    with pytest.raises(
        RunError, match=r"field 'u' is inf at cell \(0, 0\) after step \d+ .*a smaller time step may help"
    ):
        sim.run(steps=20)


# --- coordinates, places, reductions ---


def test_runs_end_at_their_time_and_count_of_steps() -> None:
    grid, u, _ = square()
    sim = hc.Simulation(grid, lambda u: {u: 1.0 + 0.0 * u}, scheme=hc.Euler(), dt=0.3)
    sim[u] = 0.0
    times: list[float] = []
    sim.run(until=1.0, every=0.5, exact=True, callback=lambda s: times.append(s.time))
    assert times == [0.5, 1.0]
    assert sim.steps == 4
    np.testing.assert_allclose(sim[u], 1.0, rtol=1e-15)
    sim.run(steps=2)
    assert sim.steps == 6
    assert sim.time == pytest.approx(1.6)
    for wrong, message in [
        ({"until": math.inf}, "until is inf"),
        ({"steps": -1}, "steps is -1"),
        ({"steps": 1.5}, "steps is 1.5"),
        ({"every": 0.0}, "every is 0.0"),
    ]:
        with pytest.raises(InputError, match=message):
            sim.run(**{"until": 2.0, **wrong})


def test_halos_grow_on_demand_without_loss_of_values() -> None:
    """`evaluate` allocates a wider halo, and the field and its second buffer remain a pair."""
    grid = hc.Grid(8, periodic=True)
    u = grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(u[1] + 1.0)))
    sim[u] = np.arange(8.0)
    sim.run()
    assert sim.evaluate(hc.max(abs(u[3] - u))) == 5.0
    sim.run()
    assert sim[u].tolist() == [4, 5, 6, 7, 8, 9, 2, 3]


@cases(
    "scheme, order",
    [(hc.Euler(), 1), (hc.RK2(), 2), (hc.RK3(), 3), (hc.RK3Previous(), 3), (hc.RK4(), 4), (hc.SSPRK3(), 3)],
    lambda case: case[1] in (1, 4),
)
def test_time_integration_schemes_have_their_order(scheme: Any, order: int) -> None:
    """The order holds for equations that depend on time too, since each stage has its own time."""
    ends = []
    for dt in (0.1, 0.05, 0.025):
        grid = hc.Grid(2)
        u = grid.field("u")

        def equation(u: Any, t: Any) -> Any:
            return {u: u * hc.cos(t) + hc.sin(3.0 * t) - 0.1 * u * u}

        sim = hc.Simulation(grid, equation, scheme=scheme, dt=dt)
        sim[u] = 1.0
        sim.run(until=2.0)
        assert sim.time == 2.0
        ends.append(float(sim[u][0]))
    first, second = ends[0] - ends[1], ends[1] - ends[2]
    assert math.log2(first / second) == pytest.approx(order, abs=0.25)


# --- operators ---


def test_a_run_and_a_solve_report_their_share_of_memory_bandwidth() -> None:
    grid, u, _ = square()
    sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-6)
    assert sim.share_of_bound() is None
    sim[u] = 1.0
    sim.run(steps=100)
    share = sim.share_of_bound()
    assert share is not None
    assert 0 < share < 2
    solution = hc.solve(lambda u: u - 1e-3 * hc.laplacian(u), u, 1.0)
    assert solution.bandwidth_share is not None
    assert 0 < solution.bandwidth_share < 2


def test_a_stop_after_a_step_keeps_time_and_fields_consistent() -> None:
    grid, u, _ = square()
    times: list[float] = []
    sim = hc.Simulation(
        grid,
        lambda u: {u: 1.0 + 0.0 * u},
        scheme=hc.RK3(),
        dt=0.5,
        after_step=lambda u, t: hc.stop((hc.min(u) > 1.4) & (t > 1.4), "risen"),
    )
    sim[u] = 0.0
    outcome = sim.run(until=10.0, every=2.0, callback=lambda s: times.append(s.time))
    assert (outcome.reason, sim.time, sim.steps, times) == ("risen", 1.5, 3, [])
    assert sim.evaluate(hc.max(u)) == pytest.approx(1.5)
