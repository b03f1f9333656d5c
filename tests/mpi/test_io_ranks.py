"""I/O ranks: they write the data that other ranks send, and compute nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray

from halocline.run.output import restart as checkpoints
from halocline.run.ranks.launch import mpiexec
from hang import HANG
from io_rank_runs import WRITES, run_on_ranks
from stopped_runs import NAMES, heat, results


@pytest.mark.parametrize(("ranks", "io_ranks"), [(2, 1), pytest.param(4, 2, marks=pytest.mark.long)])
def test_io_ranks_write_the_same_checkpoints(ranks: int, io_ranks: int, tmp_path: Path) -> None:
    whole, first = results("whole", tmp_path / "whole"), results("first", tmp_path / "alone")
    assert set(whole) == set(NAMES)
    assert results("first", tmp_path, ranks=ranks, io_ranks=io_ranks) == first
    assert results("resume", tmp_path, ranks=3, io_ranks=1) == whole


@pytest.mark.parametrize("full", ["output", "checkpoints"])
def test_a_full_disk_is_reported_for_its_files(full: str, small_disk: Path, tmp_path: Path) -> None:
    """A failure of output does not count as a failure of checkpoints, nor the reverse."""
    stores, folder = (small_disk, tmp_path / "c") if full == "output" else (tmp_path, small_disk / "c")
    done = run_on_ranks(3, 1, WRITES, stores, folder, small_disk)
    assert done.returncode == 1
    name = r"(T|more)\.zarr" if full == "output" else r"c/step-\d+-\w+"
    assert re.search(rf"{small_disk}/{name}\S* cannot be written: No space left on device", done.stderr)
    steps = list(xarray.open_zarr(stores / "T.zarr")["step"].values)
    assert steps == list(range(0, 3 * len(steps), 3))
    assert len(steps) >= 2
    sim = heat(shape=(64, 48))
    sim.resume(folder)
    assert sim.steps >= 4


@pytest.mark.parametrize("io_ranks", ["2", "many"])
def test_as_many_io_ranks_as_ranks_are_rejected(io_ranks: str) -> None:
    done = subprocess.run(
        [str(mpiexec()), "-n", "2", sys.executable, "-c", "import halocline as hc; hc.print(1)"],
        env={**os.environ, "HALOCLINE_IO_RANKS": io_ranks}, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    assert f"HALOCLINE_IO_RANKS is '{io_ranks}'; expected fewer I/O ranks" in done.stderr
    assert done.stdout == ""
    assert done.returncode == 2


def test_the_command_line_sets_io_ranks(tmp_path: Path) -> None:
    def run(folder: str, *more: str) -> dict[str, object]:
        done = subprocess.run(
            [
                sys.executable, "-m", "halocline.cli", "run", "sound-wave", "--n", "16", "--steps", "20",
                "--threads", "1", "--output", str(tmp_path / folder / "T.zarr"), "--output-every", "5",
                "--checkpoint", str(tmp_path / folder / "c"), "--checkpoint-every", "8", "--json", "-", *more,
            ],
            capture_output=True, text=True, timeout=HANG,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        record: dict[str, object] = json.loads(done.stdout)
        return record

    alone, with_io_ranks = run("alone"), run("beside", "--ranks", "3", "--io-ranks", "2")
    assert alone["checksum"] == with_io_ranks["checksum"]
    assert with_io_ranks["ranks"] == 3
    stores = [xarray.open_zarr(tmp_path / name / "T.zarr").load() for name in ("alone", "beside")]
    assert stores[0].equals(stores[1])
    assert list(stores[0]["step"].values) == [0, 5, 10, 15, 20]
    assert [len(checkpoints.folders(tmp_path / name / "c")) for name in ("alone", "beside")] == [2, 2]
    assert np.isfinite(stores[0].to_dataarray().values).all()
    shutil.rmtree(tmp_path / "beside")
