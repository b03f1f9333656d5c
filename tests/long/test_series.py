"""Times of a series, seen by a reader during the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import halocline as hc
from diffusion import diffusion
from halocline.archive import series
from halocline.run.simulation import course


def test_rows_appear_while_the_engine_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run without any other reason to pause publishes the rows of its steps several times."""
    monkeypatch.setattr(course, "PUBLISH", 0.01)
    sim, commits = diffusion(), list[int]()
    T = sim.grid.fields["T"]
    commit = series.Series.commit

    def counted(self: series.Series, first: int, rows: Any) -> None:
        commit(self, first, rows)
        commits.append(first + len(rows))

    monkeypatch.setattr(series.Series, "commit", counted)
    monkeypatch.setattr("halocline.run.simulation.course.MOST_ROWS", 10**9)
    monkeypatch.setattr("halocline.run.output.output_store.BUFFER_BYTES", 10**12)
    monkeypatch.setattr("halocline.run.fields.session.FIRST_CHECK", 10**9)
    sim.run(steps=1_000_000, output=hc.Output(tmp_path / "a.zarr", {"most": hc.max(T)}, every=hc.steps(100)))
    assert len(commits) > 2
    assert commits == sorted(commits)
    assert commits[-1] == 10_001
