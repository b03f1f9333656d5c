"""Checkpoints of runs with output."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import halocline as hc
from courses import heat, steps_of
from halocline.archive.arrays import Writer
from halocline.errors import RunError
from halocline.run.output import restart as checkpoints


def test_a_checkpoint_with_output_is_published_before_the_next_one(tmp_path: Path) -> None:
    sim, steps = heat(), []

    def look(sim: hc.Simulation) -> None:
        if (tmp_path / "c" / "newest.json").exists():
            steps.append(sim.steps)
        elif sim.steps > 25:
            time.sleep(0.5)  # the output is written meanwhile, even on a slow disk

    sim.run(
        steps=60, every=hc.steps(1), callback=look, output=hc.Output(tmp_path / "T.zarr", every=hc.steps(10)),
        checkpoint=hc.Checkpoint(tmp_path / "c", every=hc.steps(25)),
    )  # fmt: skip
    assert 25 <= steps[0] < 50


def test_a_checkpoint_after_lost_output_is_discarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint is dropped if an earlier output is lost, since a restart would leave a gap."""
    finish = Writer.finish

    def fails(self: Writer) -> None:
        lost = [index for _, index, _, array in self._pending if "T.zarr" in str(array.folder)]
        if lost and fail:
            self._first_lost = lost[0]
            self._pending.clear()
            raise RunError("T.zarr cannot be written: No space left on device")
        finish(self)

    fail: list[bool] = []
    monkeypatch.setattr(Writer, "finish", fails)
    sim = heat()

    def fail_after_a_checkpoint(sim: hc.Simulation) -> None:
        if (tmp_path / "c" / checkpoints.POINTER).exists():
            fail.append(True)

    with pytest.raises(RunError, match="No space left"):
        sim.run(
            steps=100_000, every=hc.steps(1), callback=fail_after_a_checkpoint,
            output=hc.Output(tmp_path / "T.zarr", every=hc.steps(1)),
            checkpoint=hc.Checkpoint(tmp_path / "c", every=hc.steps(3)),
        )  # fmt: skip
    fail.clear()
    again = heat()
    again.resume(tmp_path / "c")
    assert again.steps > 0
    again.run(steps=5, output=hc.Output(tmp_path / "T.zarr", every=hc.steps(1)))
    assert steps_of(tmp_path / "T.zarr") == list(range(again.steps + 1))
