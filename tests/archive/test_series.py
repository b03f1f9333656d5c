"""Rows of series: the time of their publication."""

from __future__ import annotations

import errno
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import halocline as hc
from diffusion import diffusion
from halocline.archive import files, series
from halocline.archive.arrays import StoredArray
from halocline.errors import RunError
from halocline.run.simulation import course
from stores import open_content


@pytest.mark.parametrize("kind", ["number", "slice"])
def test_a_thousand_rows_are_published_in_a_few_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Metadata is written at the start, at most once a second, and at the end; not for each row."""
    counts: Counter[str] = Counter()
    write_json, sync = files.write_json, files.sync

    def counted(path: Path, *arguments: Any, **options: Any) -> None:
        counts["metadata"] += 1
        write_json(path, *arguments, **options)

    def counted_sync(path: Path) -> None:
        counts["syncs"] += 1
        sync(path)

    monkeypatch.setattr(series, "write_json", counted)
    for module in (files, series):
        monkeypatch.setattr(module, "sync", counted_sync)
    sim = diffusion()
    T = sim.grid.fields["T"]
    sim.run(steps=1)
    began = time.monotonic()
    if kind == "number":
        sim.run(steps=1000, output=hc.Output(tmp_path / "a.zarr", {"total": hc.sum(T)}, every=hc.steps(1)))
    else:
        sim.run(
            steps=1000, output=hc.Output(tmp_path / "a.zarr", [T], every=hc.steps(1), region=hc.Slice(x=0.5))
        )
    seconds = time.monotonic() - began
    assert len(open_content(tmp_path / "a.zarr")["time"]) == 1001
    arrays = 3  # time, step and the values
    assert 0 < counts["metadata"] <= (arrays + 1) * (3 + seconds / course.PUBLISH)
    assert 0 < counts["syncs"] <= 40 + 5 * seconds


class FailedWrite:
    """Future of a chunk that the disk cannot store."""

    def done(self) -> bool:
        return True

    def result(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_row_whose_chunk_cannot_be_written_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write ends with an error between two rows, before readers can see the row."""
    write = StoredArray.write

    def failing(self: StoredArray, lo: tuple[int, ...], values: Any) -> Any:
        return FailedWrite() if (self.folder.name, lo[0]) == ("T", 3) else write(self, lo, values)

    monkeypatch.setattr(course, "PUBLISH", 0.01)
    monkeypatch.setattr(StoredArray, "write", failing)
    sim = diffusion()
    sim.run(steps=1)

    def wait(sim: hc.Simulation) -> None:
        time.sleep(0.005)

    output = hc.Output(tmp_path / "a.zarr", [sim.grid.fields["T"]], every=hc.steps(20))
    with pytest.raises(RunError, match="No space left"):
        sim.run(steps=200, every=hc.steps(1), callback=wait, output=output)
    assert open_content(tmp_path / "a.zarr")["step"].values.tolist() == [1, 20, 40]
