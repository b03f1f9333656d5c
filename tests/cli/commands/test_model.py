"""The command `halocline model`."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import pytest

from halocline.cli.app import run
from halocline.errors import InputError, RunError
from modelled_machine import DEFAULTS, MACHINE


def test_the_command_prints_draws_and_stores_predictions(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    picture, record = tmp_path / "summit.png", tmp_path / "summit.json"
    line = f"model poisson --n 512 --machine summit --nodes 1,4 --picture {picture} --json {record}"
    assert run(line.split()) == 0
    out = capfd.readouterr().out
    assert "Summit, Oak Ridge" in out
    assert "Efficiency stays above 80% up to 1 node; on 4 nodes" in out
    record_data = json.loads(record.read_text())
    assert [p["nodes"] for p in record_data["runs"]] == [1, 4]
    assert record_data["runs"][0]["ranks"] == 6
    assert picture.stat().st_size > 10_000


def test_a_failed_picture_leaves_the_table_and_the_json(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RunError("no room for the picture")

    monkeypatch.setattr("halocline.io.style.save", fails)
    picture, record = tmp_path / "summit.png", tmp_path / "summit.json"
    line = f"model poisson --n 64 --machine summit --nodes 1 --picture {picture} --json {record}"
    with pytest.raises(RunError, match="no room for the picture"):
        run(line.split())
    assert "Summit, Oak Ridge" in capfd.readouterr().out
    assert json.loads(record.read_text())["runs"][0]["nodes"] == 1


@pytest.mark.parametrize(
    ("line", "title", "bytes_per_cell"),
    [
        ("heat --n 64", "heat, 64 x 64 x 64 cells, order 6, rk3; a pass is a step", 80),
        ("heat --n 512 --dim 2 --scheme euler --order 2", "heat, 512 x 512 cells, order 2, euler", 16),
        ("wave --n 512", "wave, 512 x 512 cells, leapfrog; a pass is a step", 72),
    ],
)
def test_cases_are_predicted_by_their_bytes_per_cell(
    line: str, title: str, bytes_per_cell: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.toml").write_text(MACHINE.format(**DEFAULTS))
    record = tmp_path / "r.json"
    words = f"model {line} --machine {tmp_path}/m.toml --json {record}"
    assert run(words.split()) == 0
    assert title in capfd.readouterr().out
    record_data = json.loads(record.read_text())
    (one,) = record_data["runs"]
    assert one["formula"] == pytest.approx(prod(one["shape"]) * bytes_per_cell / 1e9)
    assert one["seconds"] == pytest.approx(one["formula"], rel=0.3), "and copies around periodic axes"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--traced 8 --trace {}/t.json", "traced rank is 8; expected 0 to 5, the ranks on 1 node"),
        ("--traced 1", "--traced 1 has no effect without --trace or --timeline. Add one of them"),
        ("--picture {}/a.xyz", "a.xyz': expected a name that ends in .png, .pdf, .svg"),
        ("--trace {0}/same.json --json {0}/same.json", "same.json is the file of two options"),
    ],
)
def test_invalid_output_files_are_rejected_before_any_work(options: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        run(f"model poisson --n 1024 --machine summit {options.format(tmp_path)}".split())
    assert words in str(raised.value)
    assert not list(tmp_path.iterdir())
