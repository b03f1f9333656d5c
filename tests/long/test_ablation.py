"""The command `halocline study ablation`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from halocline.cli.app import run
from halocline.errors import InputError
from halocline.study.measuring import ablation


def test_the_command_runs_an_ablation_study(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = {kind: tmp_path / f"ablation.{kind}" for kind in ("json", "csv", "html")}
    line = "study ablation exchange --n 32 --fields 2 --repeat 1 --threads 1 --dim 2"
    assert run([*line.split(), *(w for kind, file in files.items() for w in (f"--{kind}", str(file)))]) == 0
    out = capfd.readouterr().out
    assert "Transfer methods" in out
    assert ablation.STEP_NOTE in out
    assert "Predicted by the model from the plan and the machine file." in out
    variants = json.loads(files["json"].read_text())["variants"]
    rows = list(csv.DictReader(files["csv"].read_text().splitlines()))
    assert [row["name"] for row in rows] == [variant["name"] for variant in variants]
    page = files["html"].read_text()
    assert "<h1>Ablation study: the exchange</h1>" in page
    assert "<svg" in page
    with pytest.raises(InputError, match="machine"):
        run([*line.split(), "--machine", "none"])
