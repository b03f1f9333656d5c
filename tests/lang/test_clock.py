"""Time of runs: steps to an end time, steps at which an interval is due, and both after a restart."""

from __future__ import annotations

import json
import logging
import math
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import halocline as hc
import suites
from halocline.archive.arrays import GROUP
from halocline.archive.reader import FACTS
from halocline.errors import InputError, RunError
from halocline.lang import equations
from halocline.lang.clock import (
    END,
    FIRST,
    LAST_STEP,
    MOST_STEPS,
    REACHED,
    START,
    STATE,
    TOLERANCE,
    ConstantStepClock,
    VaryingStepClock,
    clock_of,
)
from halocline.run.output import restart as checkpoints
from halocline.run.output.every import Every
from halocline.run.simulation.course import Occasion

MOST = 10**9  # steps


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    """Return numbers with evenly distributed logarithms."""
    return st.floats(math.log10(low), math.log10(high)).map(lambda power: 10.0**power)


time_steps = powers(1e-12, 1e6) | st.sampled_from([1e-4, 1e-3, 0.005, 0.05, 0.1, 0.3, 1 / 3, 2.0**-20])
counts = st.integers(1, MOST) | st.integers(1, 20_000) | powers(1, MOST).map(int)


def begun(dt: float, start: float = 0.0, first: int = 0) -> ConstantStepClock:
    return ConstantStepClock(start, first, dt, start, first)


def time_at(clock: ConstantStepClock, step: int) -> float:
    """Return the time after a step that was not shortened."""
    exact = Fraction(clock.start) + (step - clock.first) * Fraction(clock.dt)
    return float(exact) if abs(exact) <= sys.float_info.max else math.inf * (1 if exact > 0 else -1)


def at(clock: ConstantStepClock, step: int) -> ConstantStepClock:
    """Return the clock after a step that was not shortened."""
    return ConstantStepClock(time_at(clock, step), step, clock.dt, clock.start, clock.first)


# -- ends, without steps -------------------------------------------------------------------------------------


@given(time_steps, counts)
@example(1e-4, 10_575)
@example(1e-3, 11_621)
@example(0.005, 30_000)
@example(1e-12, MOST)
@example(1e6, MOST)
def test_a_multiple_of_the_time_step_is_reached_after_as_many_whole_steps(dt: float, count: int) -> None:
    clock, until = begun(dt), count * dt
    assert clock.step_at(until) == count
    steps_near_end = [n for n in (count - 3, count - 2, count - 1) if n >= 0]
    for step in steps_near_end:
        clock_at_step = at(clock, step)
        scalars = clock_at_step.scalars_for(until, math.inf, math.inf)
        assert not clock_at_step.has_reached(until)
        assert (scalars["steps"], scalars[END], scalars[LAST_STEP]) == (count - step, count, dt)
        assert clock_at_step.time == pytest.approx(step * dt, rel=1e-15)
        assert clock_at_step.time < at(clock, step + 1).time
    assert steps_near_end
    assert at(clock, count).has_reached(until)


@given(time_steps, counts, st.floats(0.001, 0.999))
def test_the_last_step_is_shortened_to_reach_the_end_time(dt: float, count: int, part: float) -> None:
    until = float(Fraction(dt) * (count - 1) + Fraction(part) * Fraction(dt))
    clock = at(begun(dt), count - 1)
    assume(clock.time < until)
    scalars = clock.scalars_for(until, math.inf, math.inf)
    assert (scalars["steps"], scalars[END]) == (1, count)
    assert 0 < scalars[LAST_STEP] < dt
    assert scalars[LAST_STEP] == pytest.approx(until - clock.time, abs=4 * math.ulp(until))
    state = clock.state({**scalars, "t": until, "step": float(count)})
    assert state == {START: until, FIRST: count}  # steps are counted from this time
    after = clock_of({"t": until, "step": float(count), "dt_wanted'": dt, **state})
    assert after.has_reached(until)
    assert after.scalars_for(until + 3 * dt, math.inf, math.inf)["steps"] == 3


@given(time_steps, st.floats(-1e6, 1e6), st.integers(0, MOST), st.integers(1, 10**6))
def test_steps_are_counted_from_any_time_and_step(dt: float, start: float, first: int, count: int) -> None:
    assume(math.ulp(start) < 1e-7 * dt)
    clock = begun(dt, start, first)
    until = float(Fraction(start) + count * Fraction(dt))
    assert clock.step_at(until) == first + count
    assert clock.scalars_for(until, math.inf, math.inf)[LAST_STEP] == dt
    assert clock.scalars_for(until, math.inf, 7.0)["steps"] == min(7, count)
    assert clock.scalars_for(start, math.inf, math.inf)["steps"] == 0


finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(0.0, exclude_min=True, allow_nan=False, allow_infinity=False)


@given(finite, positive, finite, st.integers(0, MOST), st.integers(0, MOST), positive)
@example(1e308, 1e-4, 0.0, 0, 0, 1.0)
@example(sys.float_info.max, 0.1, 0.0, 0, 0, 1.0)
@example(1e300, 1e-10, 0.0, 0, 0, 1.0)
@example(1.0, 5e-324, 0.0, 0, 0, 5e-324)
@example(-1e308, 5e-324, 1e308, 0, 9, sys.float_info.max)
@example(1e300, sys.float_info.max, -sys.float_info.max, 0, 0, 1.0)
def test_ends_and_intervals_cover_all_numbers(
    until: float, dt: float, start: float, first: int, count: int, every: float
) -> None:
    clock = at(begun(dt, start, first), first + count)
    exact = first + (Fraction(until) - Fraction(start)) / Fraction(dt)
    end = clock.step_at(until)
    if math.isinf(end):
        assert abs(exact) >= 2**53
        assert (end > 0) == (exact > 0)
    else:
        assert end == math.ceil(exact - Fraction(1, 10**6))
    assert clock.has_reached(until) == (end <= clock.step)
    scalars = clock.scalars_for(until, math.inf, 3.0)
    assert scalars["steps"] == max(0.0, min(3.0, end - clock.step))
    assert scalars[END] == end
    assert 0.0 < scalars[LAST_STEP] <= max(dt * (1 + 2 * TOLERANCE), math.nextafter(dt, math.inf)) or (
        abs(scalars[LAST_STEP] - dt) <= 8 * math.ulp(max(abs(until), abs(start)))
    )
    due = clock.next_multiple(every)
    assert not clock.has_reached(due)
    assert clock.limits(due).last > clock.step
    varying = VaryingStepClock(clock.time, clock.step, clock.time)
    assert varying.next_multiple(every) > clock.time or math.isinf(clock.time)
    assert clock.shortest_step(until) > 0.0
    assert varying.shortest_step(until) > 0.0


# -- intervals, without steps --------------------------------------------------------------------------------


@given(time_steps, counts, st.integers(1, 1000))
@example(0.05, 330_196, 2)
@example(0.1, 330_196, 3)
@example(1e-3, 330_196, 100)
def test_multiples_of_the_time_step_are_due_after_as_many_steps(dt: float, count: int, multiple: int) -> None:
    """If the interval is a multiple of the time step up to rounding, it is due only at its multiples."""
    every = multiple * dt
    clock = at(begun(dt), count)
    due_steps = []
    for _ in range(3):
        due = clock.next_multiple(every)
        step = int(clock.step_at(due))
        assert not clock.has_reached(due)
        assert step > clock.step
        due_steps.append(step)
        clock = at(clock, step)
        assert clock.has_reached(due)
    first = (count // multiple + 1) * multiple
    assert due_steps == [first, first + multiple, first + 2 * multiple]


@given(time_steps, counts, powers(1e-14, 1e8), st.floats(-1e3, 1e3), st.integers(0, 1000))
@example(0.05, 330_196, 0.1, 0.0, 0)
@example(0.05, 20, 1e-300, 0.0, 0)
@example(0.05, 20, 5e-324, 0.0, 0)
@example(1e-3, 20, 1.7e308, 0.0, 0)
@example(1e6, MOST, 5e-324, 1e3, 9)
def test_due_steps_agree_with_rational_arithmetic(
    dt: float, count: int, every: float, start: float, first: int
) -> None:
    assume(math.ulp(abs(start) + count * dt) < TOLERANCE * dt / 4)
    clock = at(begun(dt, start, first), first + count)
    reached = Fraction(start) + Fraction(dt) * count + Fraction(dt) / 10**6
    for _ in range(3):
        due = clock.next_multiple(every)
        step = clock.step_at(due)
        k = math.floor(reached / Fraction(every)) + 1
        if every > 4 * math.ulp(clock.time) and k * Fraction(every) < 1e308:
            exact = (k * Fraction(every) - Fraction(start)) / Fraction(dt)
            # rounding the time to a float can change the step only next to the tolerance
            candidates = {first + math.ceil(exact - Fraction(parts, 2 * 10**6)) for parts in (1, 2, 3)}
            assert step in candidates or (step == math.inf and max(candidates) > MOST_STEPS)
        assert step > clock.step  # the run makes progress
        if every < dt * (1 - 2 * TOLERANCE):
            assert step == clock.step + 1
        if step == math.inf:
            break
        clock = at(clock, int(step))
        assert clock.has_reached(due)
        reached = Fraction(start) + Fraction(dt) * (clock.step - first) + Fraction(dt) / 10**6


@given(st.floats(0, 1e12), powers(1e-320, 1e300))
@example(0.0, 5e-324)
@example(1e12, 5e-324)
@example(3.3, 1.7e308)
def test_with_varying_steps_the_next_multiple_is_in_the_future(reached: float, every: float) -> None:
    clock = VaryingStepClock(reached, 0, reached)
    due = clock.next_multiple(every)
    assert due > reached
    assert not clock.has_reached(due)
    assert VaryingStepClock(due, 1, due).has_reached(due)
    if every > 4 * math.ulp(reached):
        assert due <= reached + every + math.ulp(reached + every)


@given(time_steps, counts, powers(1e-3, 1e3), st.integers(0, 5))
def test_due_steps_are_the_same_after_a_stop(dt: float, count: int, ratio: float, steps: int) -> None:
    """An interval that is computed again, as after a restart, is due at the same step."""
    every, happened = ratio * dt, []
    occasion = Occasion(Every(time=every), lambda: happened.append(True))
    occasion.begin(at(begun(dt), count), math.inf)
    for step in range(count + 1, count + steps + 1):
        occasion.act_if_due(at(begun(dt), step))
    again = Occasion(Every(time=every), lambda: None)
    again.begin(at(begun(dt), count + steps), math.inf)
    assert again.limits(at(begun(dt), count + steps), math.inf) == occasion.limits(
        at(begun(dt), count + steps), math.inf
    )


# -- ends and intervals of runs ------------------------------------------------------------------------------


@cache
def still(kind: str = "number") -> hc.Simulation:
    """Return a simulation with cheap steps and one kind of time step; `placed` sets its time."""
    grid = hc.Grid((2,), periodic=True)
    grid.field("u")
    options: dict[str, Any] = {"scheme": hc.Euler(), "threads": 1}
    if kind == "number":
        return hc.Simulation(grid, lambda u: {u: 0.0 * u}, dt=1.0, **options)
    if kind == "program":
        return hc.Simulation(grid, hc.program(lambda u: u.set(u)), dt=1.0, threads=1)
    options["time_step"] = "delayed" if kind == "delayed" else "exact"
    options["parameters"] = {"h": 1.0}
    return hc.Simulation(grid, lambda u: {u: 0.0 * u}, dt=lambda u, h: h + 0.0 * hc.max(u), **options)


def placed(kind: str, dt: float, step: int = 0, time: float | None = None) -> hc.Simulation:
    """Return the simulation in the state after a step, without doing the steps."""
    sim = still(kind)
    sim.start_new_run()
    if kind in ("number", "program"):
        sim.dt = dt
        clock = at(begun(dt), step)
        sim.values.update({"t": clock.time, "step": float(step), START: 0.0, FIRST: 0.0})
    else:
        sim.parameters["h"] = dt
        sim.values.update({"t": step * dt if time is None else time, "step": float(step)})
    sim["u"] = 1.0
    return sim


@pytest.mark.parametrize("kind", ["number", "program"])
@settings(max_examples=suites.examples(15, 40))
@given(dt=time_steps, count=st.integers(4, MOST), multiple=st.integers(1, 3))
def test_a_run_ends_at_the_computed_step(kind: str, dt: float, count: int, multiple: int) -> None:
    sim, callbacks = placed(kind, dt, count - 4), []
    outcome = sim.run(
        until=count * dt, every=multiple * dt, callback=lambda sim: callbacks.append((sim.steps, sim.time))
    )
    assert (sim.steps, sim.time, sim.values["dt"], outcome.reason) == (count, count * dt, dt, "completed")
    due_steps = sorted({n for n in range(count - 3, count) if n % multiple == 0} | {count})
    times = [time_at(begun(dt), n) for n in due_steps[:-1]]
    assert callbacks == [*zip(due_steps[:-1], times, strict=True), (count, count * dt)]
    sim.run(until=(count + 0.5) * dt)
    assert (sim.steps, sim.time) == (count + 1, (count + 0.5) * dt)
    assert sim.values["dt"] < dt
    assert sim.run(steps=2).reason == "completed"
    start = (count + 0.5) * dt
    assert sim.time == float(Fraction(start) + 2 * Fraction(dt))  # counted from the shortened step


@pytest.mark.parametrize("kind", ["function", "delayed"])
@settings(max_examples=suites.examples(15, 40))
@given(dt=powers(1e-6, 1e3), count=st.integers(1, 8), part=st.floats(0.01, 0.99))
def test_varying_time_steps_end_at_the_end_time(kind: str, dt: float, count: int, part: float) -> None:
    sim = placed(kind, dt)
    sim.run(until=count * dt)
    assert (sim.steps, sim.time) == (count, count * dt)
    assert sim.values["dt"] == pytest.approx(dt, rel=1e-6)
    sim.run(until=(count + part) * dt)
    assert (sim.steps, sim.time) == (count + 1, (count + part) * dt)


@pytest.mark.parametrize("kind", ["number", "program", "function", "delayed"])
@pytest.mark.parametrize("every", [0.1, 0.3, 0.05, 0.07, 1e-300, 5e-324])
def test_no_interval_stops_a_run(kind: str, every: float) -> None:
    """No interval stops a run, even if the sum of time steps misses the time by more than the tolerance."""
    total = 0.0
    for _ in range(330_190):
        total += 0.05
    sim, callback_steps = placed(kind, 0.05, 330_190, total), []
    sim.run(steps=10, every=every, callback=lambda sim: callback_steps.append(sim.steps))
    assert sim.steps == 330_200
    assert callback_steps[-1] == 330_200
    assert len(callback_steps) == len({*callback_steps}) >= 10 * min(1.0, 0.05 / every) - 1


@pytest.mark.parametrize("kind", ["number", "function"])
def test_steps_are_counted_from_a_step_shortened_for_output(kind: str) -> None:
    sim, times = placed(kind, 0.3), []
    sim.run(until=3.0, every=0.5, exact=True, callback=lambda sim: times.append(sim.time))
    assert times == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert sim.steps == 12
    sim.run(steps=1)
    assert sim.time == pytest.approx(3.3, rel=1e-15)
    with pytest.raises(InputError, match=r"every is 1e-300 with exact=True, .* expected at least"):
        sim.run(until=4.0, every=1e-300, exact=True, callback=lambda sim: None)


def test_the_number_of_steps_to_a_time_is_exact() -> None:
    """The number of steps to a time is exact: one step more or less is a large error of a leapfrog scheme."""
    grid = hc.Grid((2,), periodic=True)
    u, before = grid.field("u"), grid.field("before")

    @hc.program
    def leapfrog(u: Any, before: Any, dt: Any) -> None:
        hc.assign({u: 2.0 * u - before - dt * dt * u, before: u})

    dt = 1e-4
    sim = hc.Simulation(grid, leapfrog, dt=dt, threads=1)
    sim[u], sim[before] = 1.0, math.cos(dt)
    sim.run(until=2.0)
    assert (sim.steps, sim.time) == (20_000, 2.0)
    assert abs(sim["u"][0] - math.cos(2.0)) < 2e-9


@pytest.mark.parametrize(
    ("until", "dt"), [(1e308, 1e-4), (sys.float_info.max, 0.1), (1e300, 1e-10), (1.0, 5e-324)]
)
def test_a_run_to_an_unreachable_time_completes_its_steps(until: float, dt: float) -> None:
    sim, callback_steps = placed("number", dt), []
    sim.run(until=until, steps=3, every=until, callback=lambda sim: callback_steps.append(sim.steps))
    assert (sim.steps, sim.time, callback_steps) == (3, 3 * dt, [3])


def test_the_earlier_of_two_ends_ends_the_run() -> None:
    sim = placed("number", 0.1)
    assert (sim.run(until=1.0, steps=4).reason, sim.steps) == ("completed", 4)
    assert (sim.run(until=1.0, steps=40).reason, sim.steps, sim.time) == ("completed", 10, 1.0)


def test_a_run_without_progress_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = placed("number", 0.1, 7)
    with monkeypatch.context() as patch:
        patch.setattr(ConstantStepClock, "step_at", lambda self, time: 7 if math.isfinite(time) else time)
        patch.setattr(ConstantStepClock, "has_reached", lambda self, time: False)
        with pytest.raises(
            RunError, match=r"no progress after step 7 \(time 0\.7.*\): time inf or step 7 is due"
        ):
            sim.run(steps=5, every=0.3, callback=lambda sim: None)
    sim.run(steps=1)
    assert sim.steps == 8


def test_a_time_step_that_does_not_change_the_time_is_an_error() -> None:
    sim = placed("function", 1e-9, time=1e9)
    with pytest.raises(RunError, match=r"1e-09 is too short to change the time after step 0 \(time 1e\+09\)"):
        sim.run(until=2e9)


# -- checkpoints ---------------------------------------------------------------------------------------------


def heat(**options: Any) -> hc.Simulation:
    grid = hc.Grid((4,), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(
        grid,
        lambda T, t: {T: 0.01 * hc.laplacian(T) + hc.sin(t)},
        **{"scheme": hc.Euler(), "dt": 1e-3, "threads": 1, **options},
    )
    sim[T] = np.arange(4.0)
    return sim


def result(sim: hc.Simulation) -> tuple[float, int, str]:
    return sim.time, sim.steps, sim.checksum("T")


@suites.cases("varying", [False, True], default=[True])
def test_times_have_the_same_bits_after_a_restart(varying: bool, tmp_path: Path) -> None:
    """Times have the same bits after a restart, counted from the last shortened step."""
    options: dict[str, Any] = {"dt": lambda T: 1e-3 + 0.0 * hc.max(T)} if varying else {}
    alone, stopped, again = heat(**options), heat(**options), heat(**options)
    alone.run(until=0.0105)
    alone.run(until=0.02, every=0.0037, exact=True, callback=lambda sim: None)
    stopped.run(until=0.0105)
    times: list[float] = []
    stopped.run(
        steps=4, every=0.0037, exact=True, callback=lambda sim: None, checkpoint=hc.Checkpoint(tmp_path)
    )
    assert {*STATE} & {*stopped.values} == ({REACHED} if varying else {START, FIRST})
    again.resume(tmp_path)
    again.run(until=0.02, every=0.0037, exact=True, callback=lambda sim: times.append(sim.time))
    assert times == [4 * 0.0037, 5 * 0.0037, 0.02]
    assert result(again) == result(alone)


@suites.cases("varying", [False, True], default=[True])
def test_older_checkpoints_restart_at_their_time(varying: bool, tmp_path: Path) -> None:
    """Older checkpoints, which lack the origin of time steps, restart at their time."""
    options: dict[str, Any] = {"dt": lambda T: 1e-3 + 0.0 * hc.max(T)} if varying else {}
    sim = heat(**options)
    sim.run(steps=7, checkpoint=hc.Checkpoint(tmp_path))
    file = checkpoints.newest(tmp_path) / GROUP
    group = json.loads(file.read_text())
    facts = group["attributes"][FACTS]
    del facts[checkpoints.DIGEST]
    for name in STATE:
        facts["values"].pop(name, None)
    body = equations.without_time(facts["identity"]["equations"])
    assert body.splitlines() != facts["identity"]["equations"].splitlines()
    facts["identity"]["equations"] = "\n".join(
        (
            "repeat until (t >= pause_) at most steps times:",
            *([] if varying else ["  dt = dt_wanted_"]),
            "  dt = where(((until - t) < (dt * 1.000000001)), (until - t), dt)",
            "  stop when not(((dt < inf) & (dt > 0.0))): the time step is not a positive number",
            body.replace("  step = ", "  t = where(((dt + t) >= until), until, (dt + t))\n  step = "),
        )
    )
    file.write_text(json.dumps(group))
    again = heat(**options)
    again.resume(tmp_path)
    for simulation in (sim, again):
        simulation.run(until=0.0125)
    assert result(again)[1:] == result(sim)[1:]
    other = heat(**{"scheme": hc.RK2(), **options})
    with pytest.raises(InputError, match=r"belongs to another program: its (equations|fields) differ"):
        other.resume(tmp_path)


def test_a_changed_time_step_applies_after_the_checkpoint(tmp_path: Path) -> None:
    sim = heat()
    sim.run(steps=7, checkpoint=hc.Checkpoint(tmp_path))
    slower = heat(dt=5e-4)
    slower.resume(tmp_path, change=["dt"])
    slower.run(until=0.0085)
    assert (slower.steps, slower.time) == (10, 0.0085)


# -- what can be set -----------------------------------------------------------------------------------------


def test_a_numeric_time_step_can_be_set(tmp_path: Path) -> None:
    sim, reference = heat(), heat(dt=5e-4)
    assert sim.dt == 1e-3
    sim.run(steps=3)
    sim.dt = 5e-4
    sim.run(until=0.005, checkpoint=hc.Checkpoint(tmp_path))
    assert (sim.dt, sim.steps, sim.time) == (5e-4, 7, 0.005)
    again = heat()
    again.resume(tmp_path)
    assert again.dt == 5e-4
    for wrong in (0, -1.0, math.inf, math.nan, "fast", None):
        with pytest.raises(InputError, match=r"dt is .*; expected a positive number"):
            sim.dt = wrong
    assert reference.dt == sim.dt
    varying = still("function")
    with pytest.raises(
        InputError, match=r"the time step of this simulation is a function\. Pass a number as dt="
    ):
        varying.dt = 1e-4
    untimed = hc.Simulation(hc.Grid((2,)), hc.program(lambda: hc.scalar("a").set(1.0)), threads=1)
    assert untimed.dt is None
    with pytest.raises(InputError, match="the time step of this simulation was not given"):
        untimed.dt = 1e-4


@pytest.mark.parametrize("kind", ["number", "delayed"])
def test_a_restart_is_a_new_run(kind: str, tmp_path: Path) -> None:
    sim, u = placed(kind, 0.1), "u"
    sim.run(until=1.0, output=hc.Output(tmp_path / "u.zarr", [u], every=hc.steps(2)))
    before = sim.checksum(u)
    sim.start_new_run(time=5)
    assert (sim.time, sim.steps, sim.checksum(u), sim.resumed) == (5.0, 0, before, None)
    with pytest.raises(InputError, match="holds output of another run"):
        sim.run(steps=1, output=hc.Output(tmp_path / "u.zarr", [u], every=hc.steps(2)))
    sim.run(until=5.25)
    assert (sim.time, sim.steps) == (5.25, 3)
    with pytest.warns(DeprecationWarning, match="restart has been renamed to start_new_run"):
        sim.restart()
    assert (sim.time, sim.steps) == (0.0, 0)
    for wrong in (math.nan, math.inf, "now", None, True):
        with pytest.raises(InputError, match=r"time is .*; expected a finite time"):
            sim.start_new_run(time=wrong)

    def within(sim: hc.Simulation) -> None:
        with pytest.raises(InputError, match="start_new_run is called while the simulation runs"):
            sim.start_new_run()

    sim.run(steps=2, every=hc.steps(1), callback=within)
    assert sim.steps == 2


def test_a_run_without_a_step_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    sim = placed("number", 0.1)
    sim.run(until=1.0)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        outcome = sim.run(until=0.5)
    assert (outcome.reason, sim.steps) == ("no step", 10)
    assert "until is 0.5, but the time is already 1; sim.start_new_run(time=0)" in caplog.text
    for kind in ("number", "function"):
        sim = placed(kind, 0.3)
        sim.run(steps=1)  # sets the length of the last step, which decides for a varying time step
        start = sim.time
        caplog.clear()
        assert sim.run(until=start + 1e-9).reason == "no step"
        words = f"until is {start + 1e-9:g}, less than 1e-6 of a step after the time {start:g}; give a later"
        assert words in caplog.text
        assert "already" not in caplog.text
    placed("number", 0.3).run(until=1e-9)
    assert "until is 1e-09, less than 1e-6 of a step after the time 0;" in caplog.text
    caplog.clear()
    assert sim.run(steps=0).reason == "no step"
    assert not caplog.text  # the caller asked for no step


def sets(name: str) -> Any:
    """Return a program that sets the time, the time step or the number of the step."""

    @hc.program
    def step(u: Any, t: Any, dt: Any, step: Any) -> None:
        u.set(u + dt)
        {"t": t, "dt": dt, "step": step}[name].set(0.5)

    return step


def test_programs_that_set_the_time_or_step_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    grid = hc.Grid((2,), periodic=True)
    grid.field("u")
    for name, words in (("dt", r"'step' sets dt, .* give a function as dt="), ("step", "'step' sets step")):
        with pytest.raises(InputError, match=words):
            hc.Simulation(grid, sets(name), dt=0.1, threads=1)
    for name in ("t", "dt", "step"):
        with pytest.raises(InputError, match=f"'after_step' sets {name}"):
            hc.Simulation(
                grid, lambda u: {u: 0.0 * u}, scheme=hc.Euler(), dt=0.1, threads=1,
                after_step=sets(name).function,
            )  # fmt: skip
    sim = hc.Simulation(grid, sets("t"), dt=0.1, threads=1)
    assert "program step sets t, but each step adds dt to t" in caplog.text
    sim["u"] = 0.0
    sim.run(steps=3)
    assert sim.time == 3 * 0.1


@pytest.mark.parametrize("after", [False, True])
def test_programs_without_a_time_step_set_the_time_themselves(after: bool) -> None:
    grid, callback_steps = hc.Grid((2,), periodic=True), []
    grid.field("u")

    def advance(t: Any) -> None:
        t.set(t + 0.1)

    if after:
        sim = hc.Simulation(grid, hc.program(lambda u: u.set(2.0 * u)), after_step=advance, threads=1)
    else:
        sim = hc.Simulation(grid, hc.program(advance), threads=1)
    sim["u"] = 1.0
    sim.run(until=1.0, every=0.3, callback=lambda sim: callback_steps.append(sim.steps))
    assert callback_steps == [3, 6, 9, 10]
