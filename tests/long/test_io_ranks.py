"""I/O ranks write the data that other ranks send, and compute nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import xarray

from halocline.run.output import restart as checkpoints
from hang import HANG
from io_rank_runs import WRITES, run_on_ranks


def test_io_ranks_write_the_same_output(tmp_path: Path) -> None:
    for name, ranks, io_ranks in (("alone", 1, 0), ("beside", 4, 1), ("two", 5, 2)):
        done = run_on_ranks(
            ranks, io_ranks, WRITES, tmp_path / name, tmp_path / name / "c", tmp_path / "none"
        )
        assert (done.returncode, done.stderr) == (0, "")
    for store in ("T.zarr", "more.zarr"):
        alone = xarray.open_zarr(tmp_path / "alone" / store).load()
        assert len(alone["time"]) == (5 if store == "T.zarr" else 13)
        for name in ("beside", "two"):
            assert xarray.open_zarr(tmp_path / name / store).load().equals(alone)
    assert {len(checkpoints.folders(tmp_path / name / "c")) for name in ("alone", "beside", "two")} == {2}


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
