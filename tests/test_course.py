"""What happens in a run, and in which order: looks, outputs, checkpoints, requests to stop."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import halocline as hc
from halocline.archive.writer import Writer
from halocline.errors import InputError, RunError, Stopped
from halocline.run import checkpoint as checkpoints


def heat(shape: tuple[int, ...] = (12, 10), **how: Any) -> hc.Simulation:
    grid = hc.Grid(shape, periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(
        grid, lambda T: {T: 0.1 * hc.laplacian(T)}, **{"scheme": hc.RK3(), "dt": 1e-3, "threads": 1, **how}
    )
    sim[T] = np.random.default_rng(5).uniform(size=shape)
    return sim


def relaxed(**how: Any) -> hc.Simulation:
    """Steps that hold a loop of their own."""
    grid = hc.Grid((12, 10), periodic=True)
    u = grid.field("u")

    @hc.program
    def step(u: Any, t: Any, dt: Any) -> None:
        with hc.loop(limit=200):
            u.set(u + 1e-3 * (hc.laplacian(u) / 144.0 - u))
        u.set(u + dt)
        t.set(t + dt)

    sim = hc.Simulation(grid, step, dt=1e-3, threads=1, **how)
    sim[u] = np.random.default_rng(6).uniform(size=(12, 10))
    return sim


def steps_of(path: Path) -> list[int]:
    return [int(step) for step in xarray.open_zarr(path)["step"].values]


def asks(name: str, at: int) -> Any:
    """A callback that sends this process a signal after a step."""

    def callback(sim: hc.Simulation) -> None:
        if sim.steps == at:
            os.kill(os.getpid(), signal.Signals[name])

    return callback


# -- requests to stop ----------------------------------------------------------------------------------------


@pytest.mark.ranks(1, 2)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGINT"])
def test_a_signal_in_a_callback_leaves_a_checkpoint_of_that_step(name: str, shared_tmp_path: Path) -> None:
    sim = heat()
    kind = KeyboardInterrupt if name == "SIGINT" else Stopped
    words = "interrupted after step 6" if name == "SIGINT" else f"stopped, since {name} came, after step 6"
    with pytest.raises(kind, match=words):
        sim.run(
            steps=20, every=3, callback=asks(name, 6), checkpoint=hc.Checkpoint(shared_tmp_path, every=100)
        )
    sim.domain.comm.barrier()
    again, alone = heat(), heat()
    again.resume(shared_tmp_path)
    assert again.steps == 6
    again.run(steps=14)  # the request is forgotten
    alone.run(steps=20)
    assert again.checksum("T") == alone.checksum("T")


@pytest.mark.ranks(1, 2)
def test_a_signal_between_outputs_of_every_step_costs_no_row(shared_tmp_path: Path) -> None:
    path = shared_tmp_path

    def outputs(sim: hc.Simulation) -> list[hc.Output]:
        T = sim.grid.fields["T"]
        return [
            hc.Output(path / "most.zarr", {"most": hc.max(T)}, every=1),
            hc.Output(path / "T.zarr", [T], every=2),
        ]

    sim = heat()
    with pytest.raises(Stopped):
        sim.run(
            steps=20, every=1, callback=asks("SIGTERM", 7), output=outputs(sim),
            checkpoint=hc.Checkpoint(path / "checkpoints"),
        )  # fmt: skip
    again = heat()
    again.resume(path / "checkpoints")
    assert again.steps == 7
    again.run(steps=5, output=outputs(again))
    again.domain.comm.barrier()
    assert steps_of(path / "most.zarr") == list(range(13))
    assert steps_of(path / "T.zarr") == list(range(0, 13, 2))


@pytest.mark.parametrize("asked", ["signal", "wall clock"])
def test_loops_within_steps_come_to_their_end_first(asked: str, tmp_path: Path) -> None:
    """A step that is paused, or asked to stop, is whole."""
    alone = relaxed()
    alone.run(steps=6000)
    sim = relaxed()
    if asked == "wall clock":
        looked: list[int] = []
        sim.run(
            steps=6000, every="0.01 s", callback=lambda sim: looked.append(sim.steps),
            checkpoint=hc.Checkpoint(tmp_path, every="0.02 s"),
        )  # fmt: skip
        assert len(looked) > 1
    else:
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGTERM))
        timer.start()
        with pytest.raises(Stopped):
            sim.run(steps=10**9, checkpoint=hc.Checkpoint(tmp_path))
        timer.join()
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
            steps=20, every=3, callback=asks("SIGTERM", 6), output=hc.Output(tmp_path / "T.zarr", every=2)
        )
    assert steps_of(tmp_path / "T.zarr")[:4] == [0, 2, 4, 6]


# -- the end -------------------------------------------------------------------------------------------------


def test_what_happens_at_the_end_happens_where_the_program_stops_the_run(tmp_path: Path) -> None:
    grid = hc.Grid(8, periodic=True)
    u = grid.field("u")

    @hc.program
    def step(u: Any, step: Any) -> None:
        u.set(u + 1.0)
        hc.stop(step >= 5, "five are enough")

    sim, seen = hc.Simulation(grid, step, threads=1), []
    outcome = sim.run(
        steps=20, every=3, callback=lambda sim: seen.append(sim.steps),
        output=hc.Output(tmp_path / "u.zarr", [u]), checkpoint=hc.Checkpoint(tmp_path / "checkpoints"),
    )  # fmt: skip
    assert outcome.reason == "five are enough"
    assert seen == [3, sim.steps]
    assert steps_of(tmp_path / "u.zarr") == [0, sim.steps]
    saved = checkpoints.Saved(checkpoints.newest(tmp_path / "checkpoints"))
    assert saved.facts["step"] == sim.steps


def test_output_without_every_is_of_the_start_and_of_the_end_of_a_solve(tmp_path: Path) -> None:
    grid = hc.Grid((24, 24), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    solution = hc.solve(lambda u: -hc.laplacian(u), u, 1.0, threads=1, output=hc.Output(tmp_path / "u.zarr"))
    found = xarray.open_zarr(tmp_path / "u.zarr")
    assert list(found["step"].values) == [0, solution.iterations]
    np.testing.assert_array_equal(found["u"].values[-1], solution.fields["u"])


def test_a_run_that_fails_leaves_what_was_on_its_way(tmp_path: Path) -> None:
    sim = heat(dt=1.0)  # unstable
    with pytest.raises(RunError, match="must be finite"):
        sim.run(
            steps=2000, output=hc.Output(tmp_path / "T.zarr", every=8),
            checkpoint=hc.Checkpoint(tmp_path / "checkpoints", every=16),
        )  # fmt: skip
    assert len(steps_of(tmp_path / "T.zarr")) > 4
    again = heat()
    with pytest.raises(InputError, match="dt is"):
        again.resume(tmp_path / "checkpoints")
    again.resume(tmp_path / "checkpoints", change=["dt"])
    assert again.steps >= 16
    assert np.isfinite(again["T"]).all()


# -- what is on disk when ------------------------------------------------------------------------------------


@contextmanager
def held_up(monkeypatch: pytest.MonkeyPatch, folder: str) -> Iterator[threading.Event]:
    """Writers that are not done with this store before an event."""
    may, wait = threading.Event(), Writer.finish

    def finish(self: Writer) -> None:
        if any(folder in str(array.folder) for _, _, array in self._pending):
            may.wait(60)
        wait(self)

    done = Writer.done.fget
    assert done is not None
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "finish", finish)
        patch.setattr(
            Writer,
            "done",
            property(
                lambda self: (
                    (may.is_set() or not any(folder in str(array.folder) for _, _, array in self._pending))
                    and done(self)
                )
            ),
        )
        yield may


def test_a_checkpoint_is_named_only_when_outputs_before_it_are_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that goes on from it does not write them again."""
    sim, named = heat(), []

    def look(sim: hc.Simulation) -> None:
        named.append((sim.steps, (tmp_path / "checkpoints" / "newest.json").exists()))
        if sim.steps == 20:
            may.set()
        time.sleep(0.05)

    with held_up(monkeypatch, "T.zarr") as may:
        sim.run(
            steps=30, every=2, callback=look, output=hc.Output(tmp_path / "T.zarr", every=10),
            checkpoint=hc.Checkpoint(tmp_path / "checkpoints", every=12),
        )  # fmt: skip
    assert [there for step, there in named if step <= 20] == [False] * 10
    assert named[-1] == (30, True)
    assert checkpoints.Saved(checkpoints.newest(tmp_path / "checkpoints")).facts["step"] == 30
    assert steps_of(tmp_path / "T.zarr") == [0, 10, 20, 30]


def test_a_checkpoint_holds_the_notes_of_its_own_step(tmp_path: Path) -> None:
    """It is written while the run, and what its user notes, go on."""
    sim, seen = heat(), []
    sim.notes = lambda: {"seen": seen}
    sim.run(
        steps=9, every=1, callback=lambda sim: seen.append(sim.steps),
        checkpoint=hc.Checkpoint(tmp_path, every=2, keep=9),
    )  # fmt: skip
    for folder in checkpoints.folders(tmp_path):
        facts = checkpoints.Saved(folder).facts
        assert facts["seen"] == list(range(1, facts["step"] + 1))


@pytest.mark.parametrize("keep", [1, 4, 6])
def test_as_many_checkpoints_remain_as_asked_for(keep: int, tmp_path: Path) -> None:
    heat().run(steps=9, checkpoint=hc.Checkpoint(tmp_path, every=1, keep=keep))
    steps = [int(each.name.split("-")[1]) for each in checkpoints.folders(tmp_path)]
    assert steps == list(range(10 - keep, 10))
    again = heat()
    again.resume(tmp_path)
    again.run(steps=3, checkpoint=hc.Checkpoint(tmp_path, every=1, keep=keep))
    steps = [int(each.name.split("-")[1]) for each in checkpoints.folders(tmp_path)]
    assert steps == list(range(13 - keep, 13))


def test_two_runs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    first, seen = heat(), []

    def second(sim: hc.Simulation) -> None:
        other = heat()
        for how in (
            {"output": hc.Output(tmp_path / "T.zarr", overwrite=True)},
            {"checkpoint": hc.Checkpoint(tmp_path / "checkpoints", overwrite=True)},
        ):
            with pytest.raises(
                InputError, match=rf"process {os.getpid()} on \S+ writes there now; wait"
            ) as no:
                other.run(steps=1, **how)
            seen.append(str(no.value))

    how = {
        "output": hc.Output(tmp_path / "T.zarr", every=1, overwrite=True),
        "checkpoint": hc.Checkpoint(tmp_path / "checkpoints", every=1, overwrite=True),
    }
    for _ in range(2):  # where there is something to be overwritten, too
        seen.clear()
        first = heat()
        first.run(steps=4, every=2, callback=second, **how)
        assert len(seen) == 4
        assert steps_of(tmp_path / "T.zarr") == [0, 1, 2, 3, 4]
    heat().run(steps=1, **how)


# -- what is refused -----------------------------------------------------------------------------------------


def untimed() -> hc.Simulation:
    grid = hc.Grid(8, periodic=True)
    grid.field("u")

    @hc.program
    def step(u: Any) -> None:
        u.set(u + 1.0)

    return hc.Simulation(grid, step, threads=1)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"every": 0.5, "callback": print}, "this program has no time"),
        ({"output": hc.Output("u.zarr", every=0.5)}, r"output u\.zarr: every is 0\.5, a time, but this"),
        ({"checkpoint": hc.Checkpoint("c", every=2.0)}, r"checkpoint c: every is 2\.0, a time, but this"),
        ({"every": 2}, "every is 2, but there is no callback"),
        ({"every": 2, "callback": print, "exact": True}, "exact=True shortens steps .*, but every is 2"),
        ({"output": hc.Output("u.zarr", exact=True)}, r"output u\.zarr: exact=True .* but every is None"),
        ({"output": hc.Output("u.zarr", every=2, exact=True)}, r"but every is 2; give a time"),
        ({"output": hc.Output("c/u.zarr"), "checkpoint": hc.Checkpoint("c")}, "lie in each other"),
        ({"output": hc.Output("c"), "checkpoint": hc.Checkpoint("c")}, "lie in each other"),
        ({"output": hc.Output("c"), "checkpoint": hc.Checkpoint("c/d")}, "lie in each other"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_made(
    how: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sim = untimed()
    with pytest.raises(InputError, match=words):
        sim.run(steps=4, **how)
    assert sim.steps == 0
    assert not list(tmp_path.iterdir())


def test_nothing_is_lost_where_the_folder_of_checkpoints_refuses(tmp_path: Path) -> None:
    """All is looked at before anything is overwritten."""
    heat().run(
        steps=4,
        output=hc.Output(tmp_path / "T.zarr", every=2),
        checkpoint=hc.Checkpoint(tmp_path / "checkpoints"),
    )
    with pytest.raises(InputError, match="holds checkpoints of another run"):
        heat().run(
            steps=4, output=hc.Output(tmp_path / "T.zarr", overwrite=True),
            checkpoint=hc.Checkpoint(tmp_path / "checkpoints"),
        )  # fmt: skip
    assert steps_of(tmp_path / "T.zarr") == [0, 2, 4]
