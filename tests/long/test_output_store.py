"""Output: stores that a run writes while it runs, opened by xarray, which shares no code with Halocline."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.run.output import store as run_store
from halocline.run.ranks.launch import mpiexec
from hang import HANG
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


def test_no_rank_holds_a_whole_field(tmp_path: Path) -> None:
    """A rank never allocates a whole field, neither for output and checkpoints nor for reading."""
    program = Path(__file__).parents[1] / "support" / "memory_program.py"
    done = subprocess.run(
        [str(mpiexec()), "-n", "4", sys.executable, str(program), str(tmp_path)],
        capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    field, *grown = map(int, done.stdout.split())
    assert len(grown) == 4
    assert min(grown) > 0
    assert max(grown) < 0.75 * field


def test_statistics_with_lost_sums_are_rejected(tmp_path: Path) -> None:
    """A store with statistics is not continued from a checkpoint of a run that did not write them."""
    first = heat()
    first.run(steps=3, checkpoint=hc.Checkpoint(tmp_path / "checkpoints", keep=9))
    older = next(folder for folder in (tmp_path / "checkpoints").iterdir() if folder.is_dir())
    first.run(steps=3, output=statistics(tmp_path / "s.zarr", first))
    second = heat()
    second.resume(older)
    with pytest.raises(
        InputError, match=r"the run of checkpoint .* did not write this output\. Choose another path"
    ):
        second.run(steps=3, output=statistics(tmp_path / "s.zarr", second))
    second.run(steps=3, output=statistics(tmp_path / "new.zarr", second))  # the statistics begin here
    assert list(open_content(tmp_path / "new.zarr")["step"].values) == [3, 5]
