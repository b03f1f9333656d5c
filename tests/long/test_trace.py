"""Traces of CUDA devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cuda_standin
from device_commands import Devices, halocline
from traced_devices import BENCH, check, read


def test_a_traced_cuda_device_replays_no_graphs(tmp_path: Path) -> None:
    line = "run heat --n 16 --dim 2 --steps 5 --device cuda:0 --json r.json"
    records = []
    for more in ("", " --trace t.json"):
        result = halocline(line + more, tmp_path, **cuda_standin.environment(1))
        assert result.returncode == 0, result.stderr
        records.append(json.loads((tmp_path / "r.json").read_text()))
    assert records[0]["checksum"] == records[1]["checksum"]
    spans = read(tmp_path / "t.json")
    check(spans)
    assert {"patch", "scalars", "copy"} <= {span.kind for span in spans}


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_exchange_of_two_devices_is_traced(tmp_path: Path, opencl: Devices, ranks: int) -> None:
    line = f"{BENCH} --device opencl --ranks {ranks} --subdomains-per-rank 2"
    result = halocline(line, tmp_path)
    assert result.returncode == 0, result.stderr
    assert "queueing work" in result.stdout
    spans = read(tmp_path / "t.json")
    check(spans)
    lanes = {(span.rank, span.lane) for span in spans}
    number = 0 if ranks == 1 else 2
    assert (ranks - 1, f"subdomain {number} on opencl:{ranks - 1}, packing") in lanes
    assert {span.kind for span in spans} >= {"pack", "unpack", "copy", "launch"}
    shares = json.loads((tmp_path / "r.json").read_text())["trace"]
    assert 0 < shares["packing"] < 1
    assert 0 < shares["launching"] <= 1
    assert (tmp_path / "t.png").stat().st_size > 5000


def test_devices_are_not_timed_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text(
        "import cuda_standin\n"
        "standin = cuda_standin.load(2)\n"
        "from halocline.study.measuring.exchange import measure\n"
        "def calls():\n"
        "    measure((16, 16, 16), repeats=1, fields=1, device='cuda', trace=trace)\n"
        "    return standin.halocline_standin_calls(b'cuEventElapsedTime')\n"
        "trace = None\n"
        "print(calls())\n"
        "trace = 't.json'\n"
        "print(calls() > 0)\n"
    )
    result = halocline("run calls.py", tmp_path, PYTHONPATH=str(cuda_standin.SOURCES.parent))
    assert (result.returncode, result.stdout.split()) == (0, ["0", "True"]), result.stderr
