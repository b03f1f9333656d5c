"""This host as a machine of the model: detected, measured, written and read again."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from halocline.cli.app import run
from halocline.plan.machine import load_machine
from halocline.run.host.machine import this_machine


def copy_rate(size: int = 2**25) -> float:
    """Bytes a second of a copy of an array that exceeds the caches."""
    source, target = np.ones(size // 8), np.empty(size // 8)
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - begin)
    return size / min(seconds)


def test_the_command_calibrates(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """How good the predictions are is measured by benchmarks/model.py."""
    file = tmp_path / "node.toml"
    assert run(f"model calibrate --file {file}".split()) == 0
    assert "What sweeps of a rank take" in capfd.readouterr().out
    there = load_machine(file)
    assert there.measured is not None
    assert {p.ranks for p in there.measured.sweeps} == {1, this_machine().cores}
    assert there.measured.begin < 1e-4
    # packing copies memory: its rate is near that of a copy by NumPy, far from it only on a busy machine
    assert 0.05 < there.measured.packing / copy_rate() < 20
