"""Output, checkpoints and restarts from the command line."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import xarray

from halocline.run.output import restart as checkpoints
from halocline.run.ranks.launch import mpiexec
from hang import HANG
from kept_runs import run_command_line, steps_of
from kept_waves import wave
from suites import cases


def test_a_resumed_case_has_the_bits_and_rows_of_an_uninterrupted_run(tmp_path: Path) -> None:
    store, folder = tmp_path / "wave.zarr", tmp_path / "c"
    keeps = ["--output", store, "--output-every", "4", "--checkpoint", folder, "--checkpoint-every", "5"]
    whole = wave("--steps", "30", "--every", "6", "--output", tmp_path / "whole.zarr", "--output-every", "4")
    first = wave("--steps", "14", "--every", "6", *keeps, "--keep", "3", "--io-threads", "2")
    assert f"checkpoints are in {folder}; restart with --resume {folder}" in first["said"]
    steps = [int(path.name.split("-")[1]) for path in checkpoints.folders(folder)]
    assert steps == [5, 10, 14]
    second = wave("--steps", "30", "--every", "6", "--resume", folder, *keeps, "--ranks", "2")
    assert second["checksum"] == whole["checksum"]
    assert second["checksum"] != first["checksum"]
    assert [row["step"] for row in second["series"]] == [0, 6, 12, 18, 24, 30]
    assert second["series"][-1] == whole["series"][-1]
    assert xarray.open_zarr(store).load().equals(xarray.open_zarr(tmp_path / "whole.zarr").load())
    assert steps_of(store) == list(range(0, 31, 4))
    # from an older checkpoint, by its name
    third = wave("--steps", "30", "--resume", checkpoints.folders(folder)[0])
    assert third["checksum"] == whole["checksum"]


def test_the_time_of_writing_is_reported(tmp_path: Path) -> None:
    words = ["run", "sound-wave", "--n", "16", "--steps", "5", "--threads", "1"]
    done = run_command_line(*words, "--output", tmp_path / "a.zarr")
    (line,) = [
        line_printed for line_printed in done.stdout.splitlines() if line_printed.startswith("written")
    ]
    time = r"\S+ \w?s"
    assert re.fullmatch(
        rf"written +\S+ kB +output and checkpoints; the run paused {time} for writing, "
        rf"including {time} for the disk",
        line,
    )


@cases(
    "words, error",
    [
        (["--output-every", "5"], "--output-every 5: add --output STORE.zarr"),
        (["--checkpoint-every", "5"], "--checkpoint-every 5: add --checkpoint FOLDER"),
        (["--keep", "3"], "--keep 3: add --checkpoint FOLDER"),
        (["--time-limit", "1 h"], "--time-limit 1 h: add --checkpoint FOLDER"),
        (["--overwrite"], "--overwrite: add --output STORE.zarr or --checkpoint FOLDER"),
        (["--io-ranks", "2"], "--io-ranks 2: add --output STORE.zarr or --checkpoint FOLDER"),
        (["--io-threads", "2"], "--io-threads 2: add --output STORE.zarr or --checkpoint FOLDER"),
        (["--checkpoint", "c", "--keep", "0"], "'--keep': 0; expected a whole number from 1"),
        (["--checkpoint", "c", "--checkpoint-every", "soon"], "--checkpoint c: every is 'soon'; expected a"),
        (["--checkpoint", "c", "--checkpoint-every", "-5"], "every is -5.0; expected a positive time"),
        (["--checkpoint", "c", "--time-limit", "10"], "time_limit is '10'; expected a time such as"),
        (["--output", "a.zarr", "--output-every", "0"], "--output a.zarr: every is 0; expected a positive"),
        (["--output", "c", "--checkpoint", "c"], "c is the path of two outputs"),
        (["--resume", "none"], "no checkpoint in none: the folder does not exist"),
        (["--resume", "."], "no checkpoint in .: the folder contains no complete checkpoint"),
        (["--output", "file"], "file is not a store of Halocline"),
        (["--checkpoint", "file"], "file is a file; expected a folder"),
        (["--only", "compute", "--output", "a.zarr"], "--output a.zarr"),
    ],
    lambda case: case[0][0] in ("--output-every", "--keep", "--resume", "--only"),
)
def test_invalid_options_are_rejected_with_a_remedy(
    words: list[str], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    done = run_command_line("run", "sound-wave", "--n", "16", "--steps", "2", "--threads", "1", *words)
    assert done.returncode in (1, 2)
    assert error in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stderr.count("error") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_checkpoint_of_another_case_is_rejected(tmp_path: Path) -> None:
    wave("--steps", "2", "--checkpoint", tmp_path)
    for words, reason in (
        (["run", "alfven-decay", "--n", "16"], "belongs to case sound-wave, not to alfven-decay"),
        (["run", "sound-wave", "--n", "24"], "belongs to another program: its grid differs"),
        (["run", "sound-wave", "--n", "16", "--order", "2"], "belongs to a run with 6. Leave order out."),
        (["solve", "poisson", "--n", "16"], "belongs to case sound-wave, not to poisson"),
    ):
        done = run_command_line(*words, "--threads", "1", "--resume", tmp_path)
        assert done.returncode == 2, done.stderr
        assert reason in done.stderr
        assert "Traceback" not in done.stderr


def test_stores_contain_the_command_that_wrote_them(tmp_path: Path) -> None:
    store = tmp_path / "a wave.zarr"
    wave("--steps", "2", "--output", store)
    history = xarray.open_zarr(store).attrs["history"]
    line = history.partition(": ")[2]
    assert shlex.split(line) == [
        "halocline", "run", "sound-wave", "--n", "16", "--threads", "1", "--json", "-", "--steps", "2",
        "--output", str(store),
    ]  # fmt: skip


def test_io_ranks_under_a_launcher_need_the_variable(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "halocline.cli", "run", "sound-wave", "--n", "16", "--steps", "2"]
    words += ["--io-ranks", "1", "--output", str(tmp_path / "a.zarr")]
    done = subprocess.run([str(mpiexec()), "-n", "2", *words], capture_output=True, text=True, timeout=HANG)
    assert done.returncode != 0
    assert (
        "Set HALOCLINE_IO_RANKS=1 in the environment of the launcher, so that the last 1 of these ranks "
        "become I/O ranks" in done.stderr
    )


@cases("goal", [["--until", "1.0"], ["--steps", "3"]], default=[["--steps", "3"]])
def test_final_output_is_written_of_a_run_that_ends_in_the_warm_up(tmp_path: Path, goal: list[str]) -> None:
    store, folder = tmp_path / "a.zarr", tmp_path / "c"
    wave("--steps", "2", "--output", store, "--checkpoint", folder)
    record_data = wave(
        "--resume", folder, "--output", store, *goal, "--warm-up", "2" if "--steps" in goal else "100000"
    )
    assert steps_of(store)[-1] == record_data["steps"]
    assert "no step was computed" not in record_data["said"]


@cases("option", ["--output", "--checkpoint", "--resume"], default=["--output"])
def test_an_unprintable_path_is_rejected(tmp_path: Path, option: str) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/a\xff")
    for words in (["run", "sound-wave", "--n", "16", "--steps", "2"], ["solve", "poisson", "--n", "16"]):
        done = run_command_line(*words, option, name)
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
    os.mkdir(name)
    for verb in (["ls", name], ["view", name, tmp_path / "a.png"]):
        done = run_command_line(*verb)
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
