"""Measured kernels are stored and used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from halocline.compile.compiler import compile_program
from halocline.compile.schedule import Schedule
from halocline.compile.strategy import Strategy, block_splits
from halocline.run.engine import prepare
from halocline.run.tuning import kernels
from halocline.run.tuning.patches import Tuned, recall, remember
from wide_stencil import star


@pytest.fixture
def nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path))
    return tmp_path


def test_tuned_strategies_are_stored_and_reused(
    nothing_known: Path, opencl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategies = (
        Strategy("direct", block_splits(2, (32, 4), planes=8)),
        Strategy("planes", block_splits(2, (32, 4), planes=16, cells=2)),
    )
    monkeypatch.setattr(kernels, "strategies", lambda ndim, staged: strategies)
    monkeypatch.setattr("halocline.run.tuning.patches.TURN", 1e-4)
    monkeypatch.setattr("halocline.run.tuning.patches.ROUNDS", 1)
    expected = star((24, 40), 2)
    assert star((24, 40), 2, device="opencl:0", kernels="tune") == expected
    (record_file,) = nothing_known.glob("*.kernels.json")
    assert json.loads(record_file.read_text())["tried"] == 3

    winner = Tuned(strategies[1], 1.5, 3)
    remember(record_file, winner, "step")
    assert recall(Tuned[Strategy], record_file) == winner
    devices = []

    def remembered(program: Any, *args: Any, device: Strategy | None = None, **rest: Any) -> Schedule:
        devices.append(device)
        return compile_program(program, *args, device=device, **rest)

    monkeypatch.setattr(prepare, "compile_program", remembered)
    assert star((24, 40), 2, device="opencl:0") == expected
    assert strategies[1] in devices
