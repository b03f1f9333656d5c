"""I/O ranks: they write the data that other ranks send, and compute nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import xarray

from halocline.run.ranks.launch import mpiexec
from hang import HANG
from io_rank_runs import WRITES, run_on_ranks
from stopped_runs import heat, results
from suites import cases


@cases("names", [("heat",), ("poisson", "holes", "staggered", "forced")], default=[("heat",)])
@cases("ranks, io_ranks", [(2, 1), (4, 2)], default=[(2, 1)])
def test_io_ranks_write_the_same_checkpoints(
    ranks: int, io_ranks: int, names: tuple[str, ...], tmp_path: Path
) -> None:
    whole = results("whole", tmp_path / "whole", *names)
    first = results("first", tmp_path / "alone", *names)
    assert set(whole) == set(names)
    assert results("first", tmp_path, *names, ranks=ranks, io_ranks=io_ranks) == first
    assert results("resume", tmp_path, *names, ranks=3, io_ranks=1) == whole


@cases("full", ["output", "checkpoints"], default=["output"])
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


@cases("io_ranks", ["2", "many"], default=["2"])
def test_as_many_io_ranks_as_ranks_are_rejected(io_ranks: str) -> None:
    done = subprocess.run(
        [str(mpiexec()), "-n", "2", sys.executable, "-c", "import halocline as hc; hc.print(1)"],
        env={**os.environ, "HALOCLINE_IO_RANKS": io_ranks}, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    assert f"HALOCLINE_IO_RANKS is '{io_ranks}'; expected fewer I/O ranks" in done.stderr
    assert done.stdout == ""
    assert done.returncode == 2
