"""Output of commands, and records of runs, on two OpenCL devices that compute on the processor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from device_commands import Devices, halocline


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
