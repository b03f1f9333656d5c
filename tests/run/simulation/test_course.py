"""Order of events in a run: callbacks, outputs, checkpoints, requests to stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import halocline as hc
from courses import heat, raises, steps_of
from halocline.errors import InputError, RunError, Stopped
from halocline.run.output import restart as checkpoints
from suites import cases


def relaxed(**options: Any) -> hc.Simulation:
    """Return a simulation whose steps contain a loop."""
    grid = hc.Grid((12, 10), periodic=True)
    u = grid.field("u")

    @hc.program
    def step(u: Any, t: Any, dt: Any) -> None:
        with hc.loop(limit=200):
            u.set(u + 1e-3 * (hc.laplacian(u) / 144.0 - u))
        u.set(u + dt)
        t.set(t + dt)

    sim = hc.Simulation(grid, step, dt=1e-3, threads=1, **options)
    sim[u] = np.random.default_rng(6).uniform(size=(12, 10))
    return sim


def asks(name: str, at: int) -> Any:
    """Return a callback that sends this process a signal after a step."""

    def callback(sim: hc.Simulation) -> None:
        if sim.steps == at:
            os.kill(os.getpid(), signal.Signals[name])

    return callback


# -- requests to stop ----------------------------------------------------------------------------------------


@pytest.mark.ranks(1, 2, long=(1,))
@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGINT"])
def test_a_signal_in_a_callback_leaves_a_checkpoint_of_that_step(name: str, shared_tmp_path: Path) -> None:
    sim = heat()
    kind = KeyboardInterrupt if name == "SIGINT" else Stopped
    words = (
        "interrupted after step 6" if name == "SIGINT" else rf"stopped after step 6 \(.*\): {name} arrived"
    )
    with pytest.raises(kind, match=words):
        sim.run(
            steps=20,
            every=hc.steps(3),
            callback=asks(name, 6),
            checkpoint=hc.Checkpoint(shared_tmp_path, every=hc.steps(100)),
        )
    sim.domain.comm.barrier()
    again, alone = heat(), heat()
    again.resume(shared_tmp_path)
    assert again.steps == 6
    again.run(steps=14)  # the request has no further effect
    alone.run(steps=20)
    assert again.checksum("T") == alone.checksum("T")


@pytest.mark.ranks(1, 2, long=(1,))
def test_a_signal_between_outputs_of_every_step_costs_no_row(shared_tmp_path: Path) -> None:
    path = shared_tmp_path

    def outputs(sim: hc.Simulation) -> list[hc.Output]:
        T = sim.grid.fields["T"]
        return [
            hc.Output(path / "most.zarr", {"most": hc.max(T)}, every=hc.steps(1)),
            hc.Output(path / "T.zarr", [T], every=hc.steps(2)),
        ]

    sim = heat()
    with pytest.raises(Stopped):
        sim.run(
            steps=20, every=hc.steps(1), callback=asks("SIGTERM", 7), output=outputs(sim),
            checkpoint=hc.Checkpoint(path / "checkpoints"),
        )  # fmt: skip
    again = heat()
    again.resume(path / "checkpoints")
    assert again.steps == 7
    again.run(steps=5, output=outputs(again))
    again.domain.comm.barrier()
    assert steps_of(path / "most.zarr") == list(range(13))
    assert steps_of(path / "T.zarr") == list(range(0, 13, 2))


@cases("stop_request", ["signal", "wall clock"], default=["signal"])
def test_loops_within_steps_are_completed_before_a_stop(stop_request: str, tmp_path: Path) -> None:
    """A loop within a step ends before a pause or a stop."""
    alone = relaxed()
    alone.run(steps=6000)
    sim = relaxed()
    if stop_request == "wall clock":
        steps: list[int] = []
        sim.run(
            steps=6000, every="0.01 s", callback=lambda sim: steps.append(sim.steps),
            checkpoint=hc.Checkpoint(tmp_path, every="0.02 s"),
        )  # fmt: skip
        assert len(steps) > 1
    else:
        timers: list[threading.Timer] = []

        def begin(sim: hc.Simulation) -> None:
            """Start the timer after the first steps."""
            if not timers:
                timers.append(threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGTERM)))
                timers[0].start()

        with pytest.raises(Stopped):
            sim.run(steps=10**9, every="0.1 s", callback=begin, checkpoint=hc.Checkpoint(tmp_path))
        timers[0].join()
        assert sim.steps > 0
        alone = relaxed()
        alone.run(steps=sim.steps + 3)
        sim = relaxed()
        sim.resume(tmp_path)
        sim.run(steps=3)
    assert (sim.steps, sim.checksum("u")) == (alone.steps, alone.checksum("u"))


def test_a_signal_without_checkpoints_ends_the_run_at_once(tmp_path: Path) -> None:
    sim = heat()
    with pytest.raises(KeyboardInterrupt):
        sim.run(
            steps=20,
            every=hc.steps(3),
            callback=asks("SIGTERM", 6),
            output=hc.Output(tmp_path / "T.zarr", every=hc.steps(2)),
        )
    assert steps_of(tmp_path / "T.zarr")[:4] == [0, 2, 4, 6]


# -- the end -------------------------------------------------------------------------------------------------


def test_output_at_the_end_is_written_if_the_program_stops_the_run(tmp_path: Path) -> None:
    grid = hc.Grid(8, periodic=True)
    u = grid.field("u")

    @hc.program
    def step(u: Any, step: Any) -> None:
        u.set(u + 1.0)
        hc.stop(step >= 5, "five are enough")

    sim, steps = hc.Simulation(grid, step, threads=1), []
    outcome = sim.run(
        steps=20, every=hc.steps(3), callback=lambda sim: steps.append(sim.steps),
        output=hc.Output(tmp_path / "u.zarr", [u]), checkpoint=hc.Checkpoint(tmp_path / "checkpoints"),
    )  # fmt: skip
    assert outcome.reason == "five are enough"
    assert steps == [3]  # callbacks do not run at the end
    assert steps_of(tmp_path / "u.zarr") == [0, sim.steps]
    saved = checkpoints.Saved(checkpoints.newest(tmp_path / "checkpoints"))
    assert saved.facts["step"] == sim.steps


def test_output_without_an_interval_contains_start_and_end_of_a_solve(tmp_path: Path) -> None:
    grid = hc.Grid((24, 24), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    solution = hc.solve(lambda u: -hc.laplacian(u), u, 1.0, threads=1, output=hc.Output(tmp_path / "u.zarr"))
    stored = xarray.open_zarr(tmp_path / "u.zarr")
    assert list(stored["step"].values) == [0, solution.iterations]
    np.testing.assert_array_equal(stored["u"].values[-1], solution.fields["u"])


def test_a_failed_run_completes_pending_output(tmp_path: Path) -> None:
    sim = heat(dt=1.0)  # unstable
    with pytest.raises(RunError, match="must be finite"):
        sim.run(
            steps=2000, output=hc.Output(tmp_path / "T.zarr", every=hc.steps(8)),
            checkpoint=hc.Checkpoint(tmp_path / "checkpoints", every=hc.steps(16)),
        )  # fmt: skip
    assert len(steps_of(tmp_path / "T.zarr")) > 4
    again = heat()
    with pytest.raises(InputError, match="dt is"):
        again.resume(tmp_path / "checkpoints")
    again.resume(tmp_path / "checkpoints", change=["dt"])
    assert again.steps >= 16
    assert np.isfinite(again["T"]).all()


# -- rejected runs -------------------------------------------------------------------------------------------


def untimed() -> hc.Simulation:
    grid = hc.Grid(8, periodic=True)
    grid.field("u")

    @hc.program
    def step(u: Any) -> None:
        u.set(u + 1.0)

    return hc.Simulation(grid, step, threads=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": 0.5, "callback": print}, "this program has no time"),
        (
            {"output": hc.Output("u.zarr", every=0.5)},
            r"output u\.zarr: every=0\.5 is a simulated time, but this",
        ),
        (
            {"checkpoint": hc.Checkpoint("c", every=2.0)},
            r"checkpoint c: every=2\.0 is a simulated time, but this",
        ),
        ({"every": 2}, "argument every=2 needs a callback"),
        ({"every": 2, "callback": print, "exact": True}, "exact=True requires .*, but `every` is 2"),
        ({"output": hc.Output("u.zarr", exact=True)}, r"output u\.zarr: exact=True .* but `every` is None"),
        ({"output": hc.Output("u.zarr", every=2, exact=True)}, r"but `every` is 2; expected a float"),
        ({"output": hc.Output("c/u.zarr"), "checkpoint": hc.Checkpoint("c")}, "contains the other"),
        ({"output": hc.Output("c"), "checkpoint": hc.Checkpoint("c")}, "c is the path of two outputs"),
        ({"output": hc.Output("c"), "checkpoint": hc.Checkpoint("c/d")}, "contains the other"),
        ({"output": [hc.Output("c"), hc.Output("c/d")]}, "contains the other"),
        ({"output": "c"}, "output is .c.; expected an hc.Output|expected an hc.Output"),
        ({"checkpoint": "c"}, "checkpoint is .c.; expected an hc.Checkpoint"),
    ],
)  # fmt: skip
def test_invalid_options_are_rejected_before_files_are_created(
    options: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sim = untimed()
    with pytest.raises(InputError, match=words):
        sim.run(steps=4, **options)
    assert sim.steps == 0
    assert not list(tmp_path.iterdir())


def test_an_unwritable_checkpoint_folder_loses_no_output(tmp_path: Path) -> None:
    """All folders are checked before any output is overwritten."""
    heat().run(
        steps=4,
        output=hc.Output(tmp_path / "T.zarr", every=hc.steps(2)),
        checkpoint=hc.Checkpoint(tmp_path / "checkpoints"),
    )
    with pytest.raises(InputError, match="holds checkpoints of another run"):
        heat().run(
            steps=4, output=hc.Output(tmp_path / "T.zarr", overwrite=True),
            checkpoint=hc.Checkpoint(tmp_path / "checkpoints"),
        )  # fmt: skip
    assert steps_of(tmp_path / "T.zarr") == [0, 2, 4]


# -- regression tests ----------------------------------------------------------------------------------------


def test_an_error_in_a_callback_loses_no_output(tmp_path: Path) -> None:
    sim, output = heat(), hc.Output(tmp_path / "T.zarr", every=hc.steps(1))
    with pytest.raises(ValueError, match="mine"):
        sim.run(steps=10, every=hc.steps(1), callback=raises(ValueError("mine"), 5), output=output)
    assert steps_of(tmp_path / "T.zarr") == list(range(6))
    sim.run(steps=5, output=output)
    assert steps_of(tmp_path / "T.zarr") == list(range(11))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", [ValueError, RunError])
def test_an_error_in_a_callback_on_one_rank_is_reported(kind: type[Exception], shared_tmp_path: Path) -> None:
    sim = heat()

    def callback(sim: hc.Simulation) -> None:
        raise kind(f"on rank {sim.domain.comm.rank}")

    with pytest.raises(kind, match=f"on rank {sim.domain.comm.rank}"):
        sim.run(
            steps=10, every=hc.steps(2), callback=callback,
            output=hc.Output(shared_tmp_path / "T.zarr", every=hc.steps(1)),
            checkpoint=hc.Checkpoint(shared_tmp_path / "c", every=hc.steps(2)),
        )  # fmt: skip
    sim.domain.comm.barrier()


def test_each_solve_is_a_separate_run(tmp_path: Path) -> None:
    grid = hc.Grid((24, 24), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    problem = hc.LinearProblem(lambda u: -hc.laplacian(u), u, 1.0, threads=1)
    problem.solve(output=hc.Output(tmp_path / "u.zarr"), checkpoint=hc.Checkpoint(tmp_path / "c"))
    with pytest.raises(InputError, match="output of another run"):
        problem.solve(output=hc.Output(tmp_path / "u.zarr"))
    with pytest.raises(InputError, match="checkpoints of another run"):
        problem.solve(checkpoint=hc.Checkpoint(tmp_path / "c"))


def test_a_solve_with_checkpoints_reports_why_it_cannot_begin(tmp_path: Path) -> None:
    grid = hc.Grid((24, 24), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    problem = hc.LinearProblem(lambda u: -hc.laplacian(u), u, lambda x, y: 1.0 / (x - x), threads=1)
    with pytest.raises(InputError, match=r"the right-hand side is inf at cell|is inf at"):
        problem.solve(checkpoint=hc.Checkpoint(tmp_path / "c"))


def test_a_restart_needs_the_same_blocks(tmp_path: Path) -> None:
    def simulation(active: Any) -> hc.Simulation:
        grid = hc.Grid((12, 12), periodic=True, active=active)
        grid.field("u")
        return hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.1, threads=1)

    mask = np.ones((3, 3), bool)
    mask[1, 1] = False
    makers = {"none": None, "3": mask, "2": np.ones((2, 2), bool)}
    for name, active in makers.items():
        simulation(active).run(steps=1, checkpoint=hc.Checkpoint(tmp_path / name))
    for name in makers:
        for other, active in makers.items():
            if name != other:
                with pytest.raises(InputError, match="belongs to another program: its grid differs"):
                    simulation(active).resume(tmp_path / name)


@pytest.mark.ranks(2)
def test_ranks_agree_on_existing_files(shared_tmp_path: Path) -> None:
    sim, comm = heat(), heat().domain.comm
    path = shared_tmp_path / "T.zarr"
    if comm.rank == 0:
        path.mkdir()
        (path / "zarr.json").write_text("[]")
    comm.barrier()
    with pytest.raises(InputError, match=r"zarr\.json is damaged: it contains a list"):
        sim.run(steps=1, output=hc.Output(path))
    with pytest.raises(InputError, match=r"output and checkpoints are .*all ranks must give the same"):
        sim.run(steps=1, output=hc.Output(shared_tmp_path / f"{comm.rank}.zarr"))
    sim.run(steps=1)
    comm.barrier()


def test_fields_outside_a_checkpoint_keep_their_values(tmp_path: Path) -> None:
    def simulation() -> hc.Simulation:
        sim = heat()
        sim.grid.field("mine")
        return sim

    simulation().run(steps=2, checkpoint=hc.Checkpoint(tmp_path))
    sim = simulation()
    sim["mine"] = 1.0
    sim["T"] = 3.0
    sim.resume(tmp_path)
    assert (sim["mine"] == 1.0).all()
    assert not (sim["T"] == 3.0).any()


@pytest.mark.parametrize("limit", ["60 s", "5 s"])
def test_too_short_time_limits_are_rejected(limit: str) -> None:
    with pytest.raises(InputError, match=f"time_limit is '{limit}'; expected more than 60 s"):
        hc.Checkpoint("c", time_limit=limit)


def test_notes_without_json_form_are_rejected(tmp_path: Path) -> None:
    sim = heat()
    sim.notes = lambda: {"most": float("nan")}
    with pytest.raises(InputError, match="notes of a checkpoint cannot be written as JSON"):
        sim.run(steps=2, checkpoint=hc.Checkpoint(tmp_path))


# -- layers ------------------------------------------------------------------------------------------


class Engine:
    """Native engine whose runs are visible to a profiler."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def run(self, **options: Any) -> dict[str, Any]:
        """Run the native engine."""
        report: dict[str, Any] = self._native.run(**options)
        return report


def layers_of(prepared: Any, run: Callable[[], object]) -> list[list[str]]:
    """Return the classes of Halocline that are active at each run of the engine, the outermost first."""
    prepared.native_engine = Engine(prepared.engine)
    stacks: list[list[str]] = []

    def profile(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Engine.run.__code__:
            names: list[str] = []
            while (frame := frame.f_back) is not None:
                if "/halocline/" in frame.f_code.co_filename:
                    names.insert(0, frame.f_code.co_qualname)
            stacks.append([name for name, _ in groupby(name.rpartition(".")[0] for name in names)])

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return stacks


def test_a_run_calls_the_engine_through_at_most_four_layers(tmp_path: Path) -> None:
    sim = heat()
    stacks = layers_of(
        sim.prepared,
        lambda: sim.run(
            steps=6,
            every=hc.steps(2),
            callback=lambda sim: None,
            checkpoint=hc.Checkpoint(tmp_path / "steps"),
        ),
    )
    assert stacks == [["Simulation", "Course", "Session", "Prepared"]] * 3


def test_a_solve_calls_the_engine_through_the_same_layers(tmp_path: Path) -> None:
    grid = hc.Grid((16, 12), walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    problem = hc.LinearProblem(lambda u: -hc.laplacian(u), u, 1.0, threads=1)
    stacks = layers_of(
        problem.prepared, lambda: problem.solve(checkpoint=hc.Checkpoint(tmp_path / "iterations"))
    )
    assert stacks == [["LinearProblem", "Course", "Session", "Prepared"]]
