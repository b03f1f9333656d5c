"""`make gpu-check` and the benchmarks on devices, with PoCL in place of a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from halocline.run.host.machine import this_machine
from hang import HANG

ROOT = Path(__file__).resolve().parents[2]


def test_the_check_passes_where_pocl_is_the_device(opencl: list[Any], tmp_path: Path) -> None:
    record = tmp_path / "check.json"
    device = f"opencl:{opencl[0].index}"
    done = subprocess.run(
        ["make", "gpu-check", f"DEVICE={device}", f"CHECK=--small --json {record}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(record.read_text())
    assert report["failed"] == 0
    assert report["seconds"] < 570
    outcomes = {(row["group"], row["name"]): row["outcome"] for row in report["rows"]}
    assert outcomes["bits", "heat 3D float64 order 2"] == "passed"
    assert outcomes["physics", "alfven-decay 48"] == "passed"
    assert outcomes["strategies", "stages, direct"] == "passed"
    assert outcomes["devices", "steps in graphs"] == "missing"
    assert outcomes["devices", "trace"] == "passed"
    assert outcomes["devices", "from device to device"] == "missing"
    assert outcomes["ranks", f"2 on {device}, mpi"] == "passed"
    assert outcomes["ranks", f"2 on {device}, colocated"] == "missing"
    assert outcomes["sanitizer", "memcheck"] == "missing"
    assert outcomes["examples", "heat_3d"] == "passed"
    assert done.stdout.count("✗") == 0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gpu_heat", ["--n", "32", "--orders", "2", "--dtypes", "float64", "--passes", "2"]),
        ("gpu_mhd", ["--n", "12", "--orders", "2", "--passes", "1"]),
        ("gpu_cg", ["--n", "64", "--iterations", "5"]),
        ("gpu_exchange", ["--n", "12", "--axes", "z", "--ranks", "2", "--rounds", "1"]),
        ("gpu_launches", ["--n", "8", "--sweeps", "2", "--cases", "walls", "--passes", "2"]),
    ],
)
def test_benchmarks_leave_a_record(name: str, options: list[str], opencl: list[Any], tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    device = f"opencl:{opencl[0].index}"
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), "--device", device, *options]
    command += ["--repeats", "1", "--copy", "4", "--json", str(record)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    benchmark = json.loads(record.read_text())
    assert benchmark["devices"][0]["name"] == opencl[0].name
    assert benchmark["devices"][0]["driver"] == opencl[0].driver
    assert benchmark["commit"] == this_machine().commit
    (row,) = benchmark["rows"]
    if name == "gpu_exchange":
        assert row["ms"]["mpi"] > 0
        assert "colocated" not in row["ms"], "OpenCL shares no memory between processes"
    elif name == "gpu_launches":
        assert row["launches"] > row["sweeps"] == 2
        assert row["ratios"]["launch"] > 0
    else:
        assert row["share_of_bound"] > 0
        assert benchmark["copy_bytes_per_second"] > 0
    if name == "gpu_cg":
        assert row["converged"]
        assert row["bytes_per_cell"] == 64
    if name == "gpu_heat":
        assert row["bytes_per_cell"] == 16
    if name == "gpu_mhd":
        assert row["bytes_per_cell_step"] == 640
