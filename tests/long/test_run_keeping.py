"""Output, checkpoints and restarts of cases by the command line."""

from __future__ import annotations

from pathlib import Path

from kept_runs import run_command_line, steps_of
from kept_waves import wave


def test_resumed_runs_reuse_stored_parameters(tmp_path: Path) -> None:
    wave("--steps", "3", "--set", "nu=0.02", "--checkpoint", tmp_path)
    assert wave("--steps", "6", "--resume", tmp_path)["parameters"]["nu"] == 0.02


def test_a_run_beyond_the_requested_steps_does_nothing(tmp_path: Path) -> None:
    wave("--steps", "5", "--checkpoint", tmp_path / "c")
    more = ["--resume", tmp_path / "c", "--checkpoint", tmp_path / "d", "--output", tmp_path / "a.zarr"]
    done = wave("--steps", "3", *more)
    assert f"no step was computed: checkpoint {tmp_path / 'c'} is already at step 5 (time" in done["said"]
    assert "wrote" not in done["said"]
    assert "checkpoints are in" not in done["said"]
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_resumed_case_keeps_its_order_and_scheme(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    wave("--steps", "2", "--checkpoint", folder)
    for option, value in (("order", "4"), ("scheme", "euler")):
        done = run_command_line("run", "sound-wave", "--resume", folder, "--steps", "4", f"--{option}", value)
        assert done.returncode == 2
        assert f"{option} is {value}, but checkpoint" in done.stderr
        assert f"Leave {option} out" in done.stderr
    done = run_command_line("run", "sound-wave", "--resume", folder, "--steps", "4", "--set", "dt=1e-3")
    assert done.returncode == 2
    assert "dt: the changed values may be the reason" in done.stderr


def test_no_final_output_is_written_after_the_warm_up(tmp_path: Path) -> None:
    store, folder = tmp_path / "a.zarr", tmp_path / "c"
    wave("--steps", "6", "--warm-up", "2", "--output", store, "--checkpoint", folder)
    assert steps_of(store) == [0, 6]


def test_changed_parameters_are_reported_on_resume(tmp_path: Path) -> None:
    wave("--steps", "3", "--checkpoint", tmp_path)
    changed = wave("--steps", "6", "--resume", tmp_path, "--set", "nu=0.02")
    assert "parameter nu is changed from" in changed["said"]
    assert changed["parameters"]["nu"] == 0.02
    resumed = wave("--steps", "6", "--resume", tmp_path)
    assert resumed["said"] == ""
    assert resumed["checksum"] != changed["checksum"]
    idle = wave("--steps", "6", "--resume", tmp_path, "--set", "amplitude=0.5", "--set", "nu=0.01")
    assert "amplitude: the value has no effect, because a restarted run does not depend on it" in idle["said"]
    assert resumed["checksum"] == idle["checksum"]


def test_damage_is_not_reported_as_changed_parameters(tmp_path: Path) -> None:
    wave("--steps", "2", "--checkpoint", tmp_path)
    chunk = next(next(tmp_path.glob("step-*")).glob("lnrho/c*"))
    chunk.write_bytes(chunk.read_bytes()[:-8])
    done = run_command_line("run", "sound-wave", "--resume", tmp_path, "--steps", "4", "--set", "nu=0.02")
    assert done.returncode == 2
    assert "is damaged" in done.stderr
    assert "which may be why" not in done.stderr
