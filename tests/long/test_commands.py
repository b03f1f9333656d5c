"""Output of commands, and records of runs, on two OpenCL devices that compute on the processor."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import halocline as hc
from device_commands import Devices, halocline
from many_fields import sum_of_fields


def places(record: dict[str, Any]) -> list[tuple[int, int, str]]:
    return [(place["rank"], place["subdomain"], place["device"]) for place in record["devices"]]


# -- runs ----------------------------------------------------------------------------------------------------


def test_the_exchange_alone_and_steps_are_timed_on_devices(tmp_path: Path, opencl: Devices):
    line = "bench exchange --n 12 --dim 2 --repeat 1 --device opencl --json b.json"
    bench = halocline(line, tmp_path)
    assert bench.returncode == 0, bench.stderr
    assert "1 rank, devices opencl:0, opencl:1 (" in bench.stdout
    record = json.loads((tmp_path / "b.json").read_text())
    assert places(record) == [(0, 0, "opencl:0"), (0, 1, "opencl:1")]
    assert set(record["bytes_by_method"]) == {"self", "peer"}
    assert record["seconds"] > 0
    line = "study overlap heat --n 16 --dim 1 --repeat 1 --ranks 2 --device opencl --json o.json"
    study = halocline(line, tmp_path)
    assert study.returncode == 0, study.stderr
    record = json.loads((tmp_path / "o.json").read_text())
    assert [method["name"] for method in record["methods"]] == ["mpi"]
    assert places(record) == [(0, 0, "opencl:0"), (1, 1, "opencl:1")]


def test_a_study_records_its_devices(tmp_path: Path, opencl: Devices):
    line = "study convergence poisson --dim 1 --n 16 --device opencl:1 --json c.json --csv c.csv"
    result = halocline(line, tmp_path)
    assert result.returncode == 0, result.stderr
    assert f"1 rank, device opencl:1 ({opencl[1].name})" in result.stdout
    assert re.search(r"memory GB, devices +host\n.*predicted +observed\n", result.stdout)
    (record,) = json.loads((tmp_path / "c.json").read_text())
    assert (record["device"], places(record)) == ("opencl:1", [(0, 0, "opencl:1")])
    assert "--device opencl:1" in record["command"]
    names, values = (line.split(",") for line in (tmp_path / "c.csv").read_text().splitlines())
    assert values[names.index("devices")].startswith("device opencl:1 (")
    wrong = halocline("study strong poisson --n 16 --threads 1,2 --device opencl", tmp_path)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "--threads 1,2: on devices each rank has 1 thread" in wrong.stderr


def test_a_traced_run_on_devices_draws_a_timeline(tmp_path: Path, opencl: Devices):
    result = halocline("solve poisson --n 9 --device opencl:0 --pictures p --trace t.json", tmp_path)
    assert result.returncode == 0, result.stderr
    line = "study convergence poisson --n 9 --device opencl:0 --pictures q --html c.html"
    result = halocline(line, tmp_path)
    assert result.returncode == 0, result.stderr
    picture_names = {"solution.png", "error.png"}
    for folder, files in (
        ("p", picture_names | {"timeline.png"}),
        ("q", picture_names | {"convergence.png"}),
    ):
        assert {file.name for file in (tmp_path / folder).iterdir()} == files


def test_the_recorded_command_includes_devices_from_the_environment(tmp_path: Path, opencl: Devices):
    line = "study strong poisson --dim 1 --n 16 --ranks 1 --json s.json --html s.html"
    result = halocline(line, tmp_path, HALOCLINE_DEVICE="opencl:1")
    assert result.returncode == 0, result.stderr
    (record,) = json.loads((tmp_path / "s.json").read_text())
    assert "--device opencl:1" in record["command"]
    assert record["command"] in (tmp_path / "s.html").read_text()
    assert "relative to the bytes per second of copies within the same devices." in result.stdout


@pytest.mark.parametrize("count", [25, 26, 60])
def test_layouts_too_large_for_kernel_parameters_are_passed_in_memory(count: int, opencl: Devices):
    sums = []
    for device in ("cpu", "opencl:0"):
        sim = sum_of_fields(count, device)
        sim.run(steps=2)
        u = sim.grid.fields["u0"]
        norm = sim.evaluate(hc.norm(u[3, 4] - u))  # a wider halo that covers all changes of cells
        sim.run(steps=1)
        sums.append((sim.checksum("u0"), norm))
    assert sums[0] == sums[1]
