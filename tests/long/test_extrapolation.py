"""Extrapolated quantities of cases and of a study."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from halocline.cli.app import run as command
from halocline.problems.files import case_names
from halocline.problems.problem import Problem


def test_cases_declare_extrapolated_quantities() -> None:
    extrapolated = 0
    for name in case_names():
        names = Problem(name).known
        if names.extrapolated is not None:
            extrapolated += 1
            for family in names.families:
                assert len(family.sizes) >= 3, name
    assert extrapolated == 2
    square = Problem("cavity-2d", replacements={"Ra": 1e4})
    study_facts, air = square.known.extrapolated, square.values
    assert study_facts is not None
    assert study_facts.published((31, 31), air) == square.script.top["KNOWN"][1e4]
    assert study_facts.published((31, 32), air) == {}
    assert study_facts.published((31, 31), air | {"Pr": 1.0}) == {}
    assert study_facts.published((31, 31), air | {"Ra": 2e4}) == {}
    assert study_facts.noise(air) == 1e-7


def test_a_small_square_is_extrapolated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    line = "study convergence cavity-2d --n 17,7,11 --set Ra=1e3 --threads 1"
    assert command(f"{line} --json c.json --csv c.csv --html c.html --pictures p".split()) == 0
    out, err = capsys.readouterr()
    assert "[3/3] 17x17 cells, Ra=1e3, stages=3, ranks 1, threads 1\n      nusselt_hot 1.12" in err
    measured, result = (
        json.loads(Path("c.json").read_text())[key] for key in ("measurements", "extrapolated")
    )
    assert [(m["n"], m["spacing"]) for m in measured] == [(7, 1 / 8), (11, 1 / 12), (17, 1 / 18)]
    assert [limit["name"] for limit in result] == ["nusselt_hot", "nusselt_mid", "u_max", "v_max"]
    published = Problem("cavity-2d").known.extrapolated.published((17, 17), {"Ra": 1e3, "Pr": 0.71})
    assert "nusselt_hot" in published
    for limit in result:
        assert limit["values"] == [m["diagnostics"][limit["name"]] for m in measured]
        assert limit["published"] == published.get(limit["name"])
    flux = result[1]
    assert flux["trend"] == "falls"
    assert abs(flux["order"] - 2) < 0.5
    assert flux["extrapolated"] == pytest.approx(1.118, rel=0.005)  # 1.1178 on fine grids
    assert f"{flux['extrapolated']:.6g}" in out
    assert f"nusselt_mid: {flux['extrapolated']:.6g} at spacing 0, order {flux['order']:.2f}" in out
    with Path("c.csv").open() as lines_of:
        rows = list(csv.DictReader(lines_of))
    assert [float(row["nusselt_mid"]) for row in rows] == flux["values"]
    assert [path.name for path in Path("p").iterdir()] == ["convergence.png"]
    page = Path("c.html").read_text()
    assert page.count("<svg") == 1
    assert "Steady-state quantities" in page
