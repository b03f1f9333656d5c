"""Output: stores that a run writes while it runs, opened by xarray, which shares no code with Halocline."""

from __future__ import annotations

from pathlib import Path

import pytest

import halocline as hc
from halocline.run.output import store as run_store
from output_runs import heat
from output_statistics import statistics
from stores import open_content


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Select chunks that agree with no cut of the grid."""
    monkeypatch.setattr(
        run_store, "chunk_shape", lambda shape, itemsize: tuple(max(1, (n + 1) // 3) for n in shape)
    )


@pytest.mark.usefixtures("opencl", "small_chunks")
def test_devices_write_the_same_output(tmp_path: Path) -> None:
    for device in ("cpu", "opencl:0,1"):
        sim = heat(device=device)
        T = sim.grid.fields["T"]
        folder = tmp_path / device
        sim.run(
            steps=4,
            output=[
                hc.Output(folder / "a.zarr", {"T": T, "E": T * T}, every=hc.steps(2)),
                hc.Output(folder / "b.zarr", {"T": T}, every=hc.steps(2), region=hc.Coarsen(2)),
            ],
        )
    for name in ("a.zarr", "b.zarr"):
        assert open_content(tmp_path / "cpu" / name).equals(open_content(tmp_path / "opencl:0,1" / name))


# -- statistics over time ------------------------------------------------------------------------------------


def test_statistics_of_two_stores_of_one_name_do_not_mix(tmp_path: Path) -> None:
    def outputs(sim: hc.Simulation, folder: Path) -> list[hc.Output]:
        return [
            statistics(folder / "a" / "s.zarr", sim, every=hc.steps(4)),
            statistics(folder / "b" / "s.zarr", sim, every=hc.steps(6), window="run"),
        ]

    whole = heat()
    whole.run(steps=12, output=outputs(whole, tmp_path / "whole"))
    first = heat()
    first.run(
        steps=5, output=outputs(first, tmp_path / "parts"), checkpoint=hc.Checkpoint(tmp_path / "checkpoints")
    )
    second = heat()
    second.resume(tmp_path / "checkpoints")
    second.run(steps=7, output=outputs(second, tmp_path / "parts")[::-1])
    for name in ("a", "b"):
        of_whole, of_parts = (
            open_content(tmp_path / run_name / name / "s.zarr") for run_name in ("whole", "parts")
        )
        assert of_whole.equals(of_parts)
