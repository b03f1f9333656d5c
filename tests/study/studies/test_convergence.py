"""Convergence studies of files: a copy of a case has the same study as the case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from halocline.cli.app import run as command
from halocline.errors import InputError

STEADY = "--n 7,11,17 --set Ra=1e3"
OWN = """
import halocline as hc
n = hc.cells(8)
grid = hc.Grid(n, periodic=True)
u = grid.field("u")
{names}
sim = hc.Simulation(grid, lambda u: {{u: -u}}, scheme=hc.Euler(), dt=0.1)
sim[u] = 1.0
sim.run(until=0.2)
"""


def study(folder: Path, words: str) -> Any:
    file = folder / "found.json"
    assert command(["study", "convergence", *words.split(), "--threads", "1", "--json", str(file)]) == 0
    return json.loads(file.read_text())


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("heat", "--n 8,16 --dim 2"),
        ("poisson", "--n 8,16"),
        pytest.param("cavity-2d", STEADY, marks=pytest.mark.long),
        pytest.param("field-loop", "--n 16,32", marks=pytest.mark.long),
        pytest.param("linear-wave", "--n 8,16 --dim 1 --set wave=fast", marks=pytest.mark.long),
    ],
)
def test_a_copy_of_a_case_has_the_study_of_the_case(
    case: str,
    options: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(["new", "copied", "--from", case]) == 0
    capsys.readouterr()
    result, texts = [], []
    for name in (case, "copied.py"):
        result.append(study(tmp_path, f"{name} {options}"))
        tables = capsys.readouterr().out.replace(name, "NAME").replace(name.capitalize(), "NAME")
        texts.append([line for line in tables.splitlines() if line.strip("=─ ")])
    of_case, of_copy = ([part] if isinstance(part, dict) else [{"measurements": part}] for part in result)
    for one, other in zip(of_case[0]["measurements"], of_copy[0]["measurements"], strict=True):
        for key in one.keys() & {"checksum", "error", "error_max", "iterations", "panel", "expected_order"}:
            assert one[key] == other[key], key
    keys = ("orders", "extrapolated")
    assert [of_case[0].get(key) for key in keys] == [of_copy[0].get(key) for key in keys]
    if case != "poisson":  # its table contains times
        assert texts[0] == texts[1]


def test_a_file_names_its_error_and_its_families(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = """error_name = "height of the wave"
families = (hc.Family("Waves", 1, (4, 8), order=3),)
def error(sim): return grid.shape[0] ** -3.0"""
    Path("own.py").write_text(OWN.format(names=names))
    (line,) = study(tmp_path, "own.py")["orders"]
    assert (line["panel"], line["cells"]) == ("Waves", [4, 8])
    assert (line["expected_order"], line["order"]) == (3, pytest.approx(3.0))
    assert "Height of the wave" in capsys.readouterr().out


def test_values_of_a_steady_state_need_three_grids(tmp_path: Path) -> None:
    names = """def diagnostics(): return {"mean": hc.sum(u)}
extrapolated = hc.Extrapolated(("mean",))"""
    file = tmp_path / "own.py"
    file.write_text(OWN.format(names=names))
    with pytest.raises(InputError, match="expected at least 3 numbers"):
        study(tmp_path, f"{file} --n 4,8")
