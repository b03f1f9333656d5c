"""I/O ranks write the data that other ranks send, and compute nothing."""

from __future__ import annotations

from pathlib import Path

import xarray

from halocline.run.output import restart as checkpoints
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
