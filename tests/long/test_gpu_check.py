"""`make gpu-check` and the benchmarks on devices, with PoCL in place of a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from halocline.run.host.machine import this_machine
from hang import HANG

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import gpu_python  # noqa: E402
from gpu_check import Check  # noqa: E402


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
        ("gpu_mhd", ["--n", "12", "--orders", "2", "--passes", "1", "--schemes", "rk3"]),
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


def check(seconds: float = HANG) -> Check:
    return Check(Path(sys.executable), "opencl", True, time.monotonic() + seconds)


def test_a_hanging_case_is_ended_with_its_child_processes(tmp_path: Path) -> None:
    survived = tmp_path / "survived"
    inner = f"import time; time.sleep(60); open({str(survived)!r}, 'w')"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    (row,) = check().rows("bits", "heat", [sys.executable, "-c", script], 3.5)
    assert (row.outcome, row.note) == ("failed", "did not end within 4 s")
    assert not survived.exists()


def test_a_new_environment_has_the_packages_of_this_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_python, "PLACE", tmp_path)
    python = gpu_python.make_environment(None)
    assert gpu_python.has(python, "numpy")
    assert not gpu_python.has(python, "no_such_module")
    monkeypatch.setattr(gpu_python, "NEEDED", {"no_such_module": "no-such-package"})
    with pytest.raises(gpu_python.Lacking, match=r"cannot be built, without no-such-package; bring packages"):
        gpu_python.build(python)
    (tmp_path / "broken-1-py3-none-any.whl").write_text("no wheel")
    with pytest.raises(gpu_python.Lacking, match=r"the wheels in .* cannot be installed"):
        gpu_python.make_environment(tmp_path)
