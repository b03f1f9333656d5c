"""Job scripts of clusters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from step_measurements import halocline


@pytest.mark.parametrize(
    ("system", "end", "head"), [("slurm", "sh", "#SBATCH --nodes=4"), ("pbs", "pbs", "select=4")]
)
def test_job_scripts_run_a_study(system: str, end: str, head: str, tmp_path: Path) -> None:
    words = f"study weak heat --n 16 --steps 4 --submit {system} --nodes 1,4 --per-node 8"
    done = halocline(*words.split(), "--time", "00:10:00", "--account", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    stem = "weak-heat-n-16-steps-4-1-thread-8-per-node"
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{stem}-1-node.{end}",
        f"{stem}-4-nodes.{end}",
    }
    text = (tmp_path / f"{stem}-4-nodes.{end}").read_text()
    assert head in text
    assert "mine" in text
    assert "00:10:00" in text
    assert (
        f"study weak heat --n 16 --steps 4 --nodes 4 --per-node 8 --threads 1 --json {stem}-4-nodes.json"
        in text
    )
    assert f"halocline study report {stem}-1-node.json {stem}-4-nodes.json" in done.stdout


@pytest.mark.parametrize("study", ["exchange", "placement"])
def test_scripts_for_devices_need_no_devices(study: str, tmp_path: Path) -> None:
    words = f"study {study} exchange --n 16 --device cuda:7 --nodes 1,2 --per-node 1 --submit slurm"
    done = halocline(*words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for path in tmp_path.iterdir():
        assert "--device cuda:7" in path.read_text()
    assert len(list(tmp_path.iterdir())) == 2
    command_line = words.partition(" --nodes")[0]
    done = halocline(*command_line.split(), "--ranks", "1", cwd=tmp_path)
    assert done.returncode == 2
    # without and with other CUDA devices
    assert re.search(r"device 'cuda:7': (no such device is installed|there is no cuda:7;)", done.stderr)
    assert "[1/" not in done.stderr
