"""Instructions of the kernels of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from halocline.compile.cxx import LEVEL, VECTORS
from halocline.study.layout import Layout
from halocline.study.measurement import Measurement
from halocline.study.measuring.command import Command
from halocline.study.measuring.instructions import with_instructions
from halocline.study.study import Run

SHAPE = (64,)


def heat(**options: str) -> Run:
    """Return a run of the heat equation on a line, with vectors of 128 bits."""
    environment = {VECTORS: "128", LEVEL: "3"}
    command = Command("run", "heat", {"dim": 1, "steps": 4, **options}, environment=environment)
    return Run(command, SHAPE[0], SHAPE, Layout(1, 1), SHAPE[0])


def test_without_a_disassembler_there_are_no_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (result,) = with_instructions([heat()], [Measurement({"shape": [*SHAPE]})])
    assert result["instructions"] is None


def test_each_data_type_has_its_own_kernels() -> None:
    runs = [heat(), heat(dtype="float32")]
    double, single = with_instructions(runs, [Measurement({"shape": [*SHAPE]}) for _ in runs])
    vectors = [result["instructions"]["vector"] for result in (double, single)]
    assert vectors[1] == pytest.approx(vectors[0] / 2, rel=0.1)
