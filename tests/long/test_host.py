"""This host as a machine of the model: detection, measurement, and files."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from halocline.cli.app import run
from halocline.plan.machine import load_machine
from halocline.run.host.machine import this_machine


def copy_rate(size: int = 2**25) -> float:
    """Return the bytes per second of a copy of an array that exceeds the caches."""
    source, target = np.ones(size // 8), np.empty(size // 8)
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - begin)
    return size / min(seconds)


def test_the_command_calibrates_the_host(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The measurements are plausible; benchmarks/model.py measures the quality of the predictions."""
    file = tmp_path / "node.toml"
    assert run(f"model calibrate --file {file}".split()) == 0
    assert "Costs of the sweeps of a rank" in capfd.readouterr().out
    machine = load_machine(file)
    assert machine.measured is not None
    assert {p.ranks for p in machine.measured.sweeps} == {1, this_machine().cores}
    assert machine.measured.begin < 1e-4
    # packing copies memory: its rate is close to that of a copy by NumPy, except on a busy machine
    assert 0.05 < machine.measured.packing / copy_rate() < 20
