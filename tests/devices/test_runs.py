"""Runs on OpenCL devices have the bits of one rank of the CPU: problems, random programs and user actions.

The devices are those of PoCL, which compiles a kernel for each shape of a thread block. This takes most of
the time. The default test suite cuts a grid such that the same shapes occur.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import bitwise_programs as bitwise
import equations
import halocline as hc
import random_blocks as holes
import random_programs as programs
from actions_on_devices import ALONE, on_both, smoothed
from halocline.errors import InputError, RunError
from halocline.native import native
from halocline.run.domain.domain import Domain
from halocline.run.domain.execution import Execution
from halocline.run.engine.prepare import prepare
from halocline.run.memory import contents
from halocline.run.memory.contents import checksum
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.mpi import world
from halocline.study.measuring import overlap
from runs_on_devices import BOTH, check_equal_bits, random_holes, same_bits
from suites import cases, examples

pytestmark = pytest.mark.usefixtures("opencl")

# Two subdomains in total; the rank counts take them in turn.
TWO_SUBDOMAINS: dict[int, list[dict[str, Any]]] = {
    1: [
        {"device": BOTH},
        {"device": "opencl:1", "subdomains_per_rank": 2, "overlap": False},
        {"device": BOTH, "methods": "mpi"},
        {"device": BOTH, "halo": "uniform"},
    ],
    2: [
        {"device": BOTH},
        {"device": "opencl:0", "overlap": True},
        {"device": "opencl", "halo": "uniform", "overlap": False},
    ],
}

QUICK = ("fluxes", "holes", "cg-fused")


@cases(
    "problem",
    [problem for problem in bitwise.PROBLEMS if problem.__name__ in QUICK],
    lambda problem: problem.__name__ == "fluxes",
    ids=lambda problem: problem.__name__,
)
@pytest.mark.ranks(1, 2, long=(1,))
def test_devices_give_the_bits_of_the_cpu(problem: bitwise.Problem) -> None:
    ways = TWO_SUBDOMAINS[world().size]
    assert check_equal_bits(problem, "float64", ways) == len(ways)


@cases(
    "problem",
    [bitwise.solve("cg-fused"), bitwise.heat],
    lambda problem: problem is not bitwise.heat,
    ids=["cg-fused", "heat"],
)
def test_a_device_that_runs_ahead_of_its_host_gives_the_bits_of_the_cpu(problem: bitwise.Problem) -> None:
    assert check_equal_bits(problem, "float64", [{"device": ALONE}]) == 1


def test_devices_give_the_bits_of_the_cpu_in_float32() -> None:
    assert check_equal_bits(bitwise.gray_scott, "float32", TWO_SUBDOMAINS[1][:2]) == 2


# -- physics and examples ----------------------------------------------------------------------------


def heat(dim: int, **options: Any) -> list[Any]:
    sim = equations.heat((13,) * dim, **options)
    sim.run(steps=4)
    return [sim.checksum("T"), sim.time]


def wave(dim: int, **options: Any) -> list[Any]:
    sim = equations.wave((14,) * dim, **options)
    sim.run(steps=6)
    return [sim.checksum(name) for name in sim.grid.fields]


def poisson(method: str, dim: int, **options: Any) -> list[Any]:
    solution = equations.poisson(15, dim, method=method, **options).solve(rtol=1e-6)
    assert solution.converged
    return [solution.fields.checksum("u"), solution.residuals.tolist(), solution.true_residual]


PHYSICS: dict[str, Callable[..., list[Any]]] = {
    "heat": heat,
    "wave": wave,
    "cg": lambda *a, **o: poisson("cg", *a, **o),
    "cg-fused": lambda *a, **o: poisson("cg-fused", *a, **o),
}


@pytest.mark.parametrize(
    ("name", "dim"),
    [
        (name, dim) if (name, dim) == ("heat", 3) else
        pytest.param(name, dim, marks=pytest.mark.long)
        for name in PHYSICS for dim in (1, 2, 3)
    ],
)  # fmt: skip
def test_models_of_physics_have_the_bits_of_the_cpu(name: str, dim: int) -> None:
    assert PHYSICS[name](dim, device=BOTH) == PHYSICS[name](dim, threads=1)


# -- random programs ---------------------------------------------------------------------------------


def test_a_kernel_with_barriers_runs() -> None:
    """A kernel with a return before its barriers runs; PoCL 3.1 made it always return."""
    results = []
    for options in ({"threads": 1}, {"device": ALONE}):
        grid = hc.Grid((17,), (1.5,))
        u, v = grid.field("u"), grid.field("v")

        def less(q: Any) -> Any:
            return q / (1.0 + 0.25 * abs(q))

        def step(u: Any, v: Any) -> None:
            hc.assign({u: less(u), v: less(u + (u + (u + 0.5)))})
            u.set(less(u))
            within = hc.stage(less(u), "within", storage="patch")
            hc.scalar("total").set(0.01 * hc.sum(within))
            u.set(less(u))

        sim = hc.Simulation(grid, hc.program(step), **options)
        for n, field in enumerate((u, v)):
            sim[field] = np.random.default_rng(n).uniform(-2, 2, grid.shape)
        sim.run()
        results.append((sim.checksum("u"), sim.checksum("v"), sim.values["total"]))
    assert results[0] == results[1]


@settings(max_examples=examples(1, 2), **programs.ANY_SPEED)
@given(programs.recipes())
def test_random_programs_have_the_bits_of_the_cpu(recipe: programs.Recipe) -> None:
    same_bits(recipe, (18, 20, 22), [{"device": ALONE}, {"device": BOTH}])


@settings(max_examples=examples(1, 2), **programs.ANY_SPEED)
@given(holes.cases())
def test_random_holes_have_the_bits_of_the_cpu(case: dict[str, Any]) -> None:
    random_holes(case, [{"device": BOTH}])


# -- actions of a user -------------------------------------------------------------------------------


def bits(*numbers: float) -> bytes:
    return np.array(numbers, dtype=np.float64).tobytes()


def test_fields_are_read_and_assigned() -> None:
    def act(**options: Any) -> Any:
        sim = smoothed(**options)
        start = np.random.default_rng(9).uniform(0.5, 1.5, (18, 21))
        assert np.array_equal(sim["u"], start)
        assert np.array_equal(sim.gather("u"), start)
        sim.run(steps=2)
        checksums = [sim.checksum("u")]
        sim["u"] = sim["u"] * 0.5 + 0.25  # between two runs, from a copy
        checksums.append(sim.checksum("u"))
        sim.run(steps=1)
        sim["u"] = lambda x, y: np.interp(x, (0.0, 1.0), (0.5, 1.0)) + np.asarray(y)  # not traceable
        checksums.append(sim.checksum("u"))
        sim["u"] = lambda x, y: 0.5 + x * y  # in generated code
        sim.run(steps=2)
        whole = np.full((18, 21), np.nan)
        for (i, j), part in sim.views("u"):
            whole[i : i + part.shape[0], j : j + part.shape[1]] = part
        assert np.array_equal(whole, sim.gather("u"))
        return [*checksums, sim.checksum("u")]

    on_both(act)


def test_fields_of_devices_are_read_as_copies() -> None:
    sim = smoothed(device="opencl:0")
    with pytest.raises(ValueError, match="a copy that cannot be written"):
        sim["u"][0, 0] = 1.0
    for _, part in sim.views("u"):
        assert not part.flags.writeable


def test_reductions_and_growing_halos_have_the_bits_of_the_cpu() -> None:
    """Reductions of all kinds have the bits of the CPU, also of expressions with a wider halo."""

    def act(**options: Any) -> Any:
        sim = smoothed(**options)
        u = sim.grid.fields["u"]
        sim.run(steps=1)
        before = sim.checksum(u)
        kinds = sim.evaluate(
            hc.sum(u), hc.min(u[3, 0]), hc.max(u[0, -2]), hc.count(u > 1), hc.dot(u, u[-2, 2]),
            hc.value(u, (3, -1)),
        )  # fmt: skip
        assert sim.checksum(u) == before
        sim.run(steps=2)
        return bits(*kinds), sim.checksum(u)

    on_both(act)


@cases("storage", ["inline", "patch", "auto"], default=["patch"])
def test_stages_and_walls_have_the_bits_of_the_cpu(storage: str) -> None:
    def act(**options: Any) -> Any:
        grid = hc.Grid((15, 19), periodic=(True, False))
        u = grid.field("u", boundary=hc.Extrapolate(2))
        grid.field("v", boundary=hc.BoundaryKernel(lambda q: q.of(u)[1] - 0.5 * q[0]), location="face-y")

        def step(u: Any, v: Any) -> None:
            slope = hc.stage(u * u[0, 1] - 0.3 * v[1, 0] * u, "slope", storage=storage)
            flux = hc.stage(slope * u + 0.7 * slope[0, -1] * v[1, 1], "flux", storage=storage)
            v.set(u - 0.1 * (flux[0, 1] - flux) + 0.3 * flux[1, 0] * slope)
            u.set(0.5 * u + 0.25 * v[-1, 0])

        sim = hc.Simulation(grid, hc.program(step), patch=6, **options)
        sim["u"] = np.random.default_rng(4).uniform(0.5, 1.5, grid.shape)
        sim.run(steps=3)
        return sim.checksum("u"), sim.checksum("v")

    on_both(act)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("fails", ["compile_for", "build"])
def test_kernel_failures_on_one_rank_are_raised_on_all(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    """No rank waits for another rank that has no kernels, or that lacks memory."""
    sim = smoothed(device=BOTH)
    comm = world()

    def reject(*_: Any) -> Any:
        raise RunError("no more of that")

    if comm.rank == 1 and fails == "compile_for":
        monkeypatch.setattr("halocline.run.engine.prepared.compile_for", reject)
    elif comm.rank == 1:
        monkeypatch.setattr("halocline.run.engine.bind.DeviceBinder.sweep", reject)
    with pytest.raises(RunError, match="no more of that"):
        sim.run(steps=2)
    assert comm.allgather(comm.rank) == [0, 1]


@cases("way", ["alone", "loop", "outer loop"], default=["loop"])
def test_a_stop_skips_the_rest_of_its_pass(way: str) -> None:
    """A stop in a pass skips the later sweeps and their second buffer; the earlier sweeps take effect."""

    @hc.program
    def halting(u: Any, most: Any) -> None:
        (total,) = hc.scalars("total")
        total.set(0.0)
        with contextlib.nullcontext() if way == "alone" else hc.loop(limit=20):
            u.set(0.5 * u + 0.6 * u[1])
            total.set(hc.sum(u))
            hc.stop(total > most, "too much")
            u.set(0.5 * u + 0.6 * u[1] + 1e-3)
            if way == "outer loop":
                with hc.loop(limit=1):
                    u.set(0.5 * u + 0.6 * u[1] + 1e-3)

    def act(**options: Any) -> Any:
        grid = hc.Grid((50,), periodic=True)
        u = grid.field("u")
        store = FieldStore(Domain(grid, None, Execution(**options)))
        prepared = prepare(store, halting.trace(u, hc.parameter("most")), ["most"])
        outcomes = []
        for most in (1300.0, 2000.0, 1e9):
            with store.writable(u) as pieces:
                for _, view in pieces:
                    view[...] = 25.5
            outcome = prepared.run({"most": most})
            outcomes.append((outcome.reason, outcome.loops, checksum(store, u)))
            outcomes.append(prepared.engine.run()["sweep_counts"])
        return outcomes

    first, *_ = on_both(act, ALONE)
    assert first[0] == "too much"


@pytest.mark.parametrize("most", [1e9, 20.0])
def test_nested_loops_have_the_bits_of_the_cpu(most: float) -> None:
    """Nested loops end and record values as on the CPU, also of scalars that are read before a reduction."""

    @hc.program
    def nested(u: Any, most: Any) -> None:
        total, passes, before = hc.scalars("total passes before")
        total.set(0.0)
        passes.set(0.0)
        with hc.loop(limit=5, record=(total, passes)):
            u.set(0.5 * u + 0.25 * u[1] + 0.01)
            with hc.loop(until=total > 30.0, limit=2):
                before.set(total)
                total.set(total + hc.sum(u))
                u.set(u + 1e-2 * before + 0.03)
                passes.set(passes + 1.0)
                hc.stop(total > most, "too much")
        u.set(u + total)

    def act(**options: Any) -> Any:
        grid = hc.Grid((50,), periodic=True)
        u = grid.field("u")
        store = FieldStore(Domain(grid, None, Execution(**options)))
        prepared = prepare(store, nested.trace(u, hc.parameter("most")), ["most"])
        outcomes = []
        for _ in range(2):
            outcome = prepared.run({"most": most})
            outcomes.append((outcome.reason, outcome.loops, outcome.history.tolist(), checksum(store, u)))
        return outcomes, bits(*(outcome.scalars[name] for name in ("total", "passes", "before")))

    (first, _), _ = on_both(act, ALONE, BOTH)
    assert first[0] == ("completed" if most > 1e6 else "too much")
    assert len(first[2]) > 1


def test_nonfinite_values_are_reported() -> None:
    def act(**options: Any) -> Any:
        grid = hc.Grid((6, 40), periodic=True)
        u = grid.field("u")
        sim = hc.Simulation(
            grid, lambda u: {u: u * u}, scheme=hc.Euler(), dt=1.0,
            after_step=lambda u: hc.stop(hc.max(u) > 1e300, "never with NaN"), **options,
        )  # fmt: skip
        sim[u] = np.where(np.arange(240).reshape(6, 40) == 137, np.sqrt(1e300), 1e-9)
        sim[u] = sim.gather(u) * -1.0
        with pytest.raises(RunError) as caught:
            sim.run(steps=70)
        return str(caught.value)

    message = on_both(act, ALONE, BOTH)
    assert "field 'u' is" in message
    assert "after step" in message


@pytest.mark.ranks(1, 2)
def test_nonfinite_values_are_reported_as_on_the_cpu() -> None:
    """The error names the first field that is not finite, rank and subdomain, and ignores inactive cells."""

    def act(**options: Any) -> Any:
        messages = []
        for active in (None, np.array([[1, 1], [1, 0]], dtype=bool)):
            sim = smoothed(active=active, **options)
            sim.grid.field("other", dtype="float32", location="face-x")  # no equation uses this field
            for name, cell, value in (
                ("u", (3, 20), np.nan),
                ("other", (17, 3), np.inf),
                ("other", (2, 2), -np.inf),
                ("u", (17, 20), np.nan),  # inactive
            ):
                values = np.full(sim.grid.fields[name].points, 0.5)
                values[cell] = value
                sim[name] = values
                try:
                    sim.check_inputs("before the run")
                    messages.append("all are finite")
                except InputError as error:
                    messages.append(f"{error} {error.place}")
                    sim[name] = np.array(0.5)
        return messages

    messages = on_both(act)
    assert [line.startswith("field") for line in messages] == [True] * 7 + [False]


@pytest.mark.parametrize("device", [ALONE, BOTH])
def test_fields_are_copied_from_a_device_only_on_demand(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sim, fetched, fetch = smoothed(device=device), [], FieldStore.on_host
    sim["u"] = np.array(0.5)  # this value remains

    def noted(store: FieldStore, storages: list[Any]) -> list[Any]:
        fetched.extend(storages)
        return fetch(store, storages)

    monkeypatch.setattr(FieldStore, "on_host", noted)
    checks: list[str] = []
    check = contents.check_finite
    monkeypatch.setattr(contents, "check_finite", lambda *args: (checks.append(args[2]), check(*args)))
    sim.run(until=40.0, every=10.0, callback=lambda sim: None)
    sim.run(steps=130)
    assert fetched == []
    assert checks[0] == "before the run"
    assert len(checks) >= 1 + 4 + 2  # before each call, and after 64 steps of the second run, or at its end
    parts = sim.views("u")
    assert len(fetched) == len(parts)
    sim.run(steps=1)
    assert len(fetched) == len(parts)
    assert checks.count("before the run") == 1  # a read of a copy has no effect


@pytest.mark.parametrize("device", [ALONE, BOTH])
def test_an_interrupted_run_can_be_continued(device: str) -> None:
    """A run that a signal interrupts has completed whole steps."""
    sim = smoothed(device=device)

    def interrupt(done: int) -> None:
        if done:
            native().request_stop()

    with pytest.raises(KeyboardInterrupt):
        sim.run(steps=10**8, on_progress=interrupt)
    steps = sim.steps
    assert steps > 0
    sim["u"] = np.random.default_rng(9).uniform(0.5, 1.5, (18, 21))
    sim.run(steps=3)
    expected = smoothed(threads=1)
    expected.run(steps=3)
    assert sim.checksum("u") == expected.checksum("u")
    assert sim.steps == steps + 3


@cases("messages", [True, False], default=[True])
@cases("device", [ALONE, BOTH], default=[ALONE])
def test_the_time_of_a_loop_includes_its_devices(device: str, messages: bool) -> None:
    """The time of a loop includes the work of the devices, which the host queues much faster."""
    bench = overlap.heat((64, 64, 64), device=device)
    bench.passes = 300  # the work before and after the loop takes some milliseconds
    bench.run(messages=messages)  # PoCL compiles in this run; the next run has the same number of steps
    report = bench.prepared.engine.run(messages=messages)
    assert report["loop_seconds"] > 0.9 * report["seconds"]


def test_two_programs_share_one_device() -> None:
    """Engines of one process share a device, and each engine has memory of its own."""
    first, second = smoothed(device="opencl:0"), smoothed(device="opencl:0")
    second["u"] = 1.25
    first.run(steps=1)
    second.run(steps=1)
    first.run(steps=2)
    expected = smoothed(threads=1)
    expected.run(steps=3)
    assert first.checksum("u") == expected.checksum("u")
    assert np.array_equal(second.gather("u"), np.full((18, 21), 1.25))


# -- ranks that die or stop --------------------------------------------------------------------------
