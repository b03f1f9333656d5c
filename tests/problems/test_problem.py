"""Problems: every case as a file, with the checksums and JSON keys that cases have always had."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import halocline as hc
from halocline.cli.app import run as command
from halocline.errors import InputError
from halocline.problems.files import CASES, case_names
from halocline.problems.problem import Problem
from halocline.run.simulation.script import Script
from halocline.run.simulation.settings import Setting, Settings, active

EXPECTED = json.loads((Path(__file__).parents[1] / "data" / "case_runs.json").read_text())
STEPS = 3
SHORT = ("alfven-decay", "heat", "poisson", "wave")  # whose kernels compile fast


def runs() -> list[Any]:
    """Return the recorded runs; those of long kernels are marked."""
    return [
        pytest.param(
            run,
            id=f"{run['case']}-{number}",
            marks=[] if run["case"] in SHORT and len(run["n"]) < 3 else [pytest.mark.long],
        )
        for number, run in enumerate(EXPECTED["runs"])
    ]


def test_every_case_has_a_recorded_run() -> None:
    assert {run["case"] for run in EXPECTED["runs"]} == set(case_names())
    assert len(case_names()) == 21


@pytest.mark.parametrize("run", runs())
def test_a_case_has_its_checksum(run: dict[str, Any]) -> None:
    problem = Problem(run["case"], run["n"], run["given"], **run["options"])
    assert problem.run(steps=STEPS, threads=1).record.checksum == run["checksum"]


@pytest.mark.parametrize("run", runs())
def test_a_copy_of_a_case_runs_as_a_file(run: dict[str, Any], tmp_path: Path) -> None:
    copy = tmp_path / "mine.py"
    shutil.copy(CASES / f"{run['case'].replace('-', '_')}.py", copy)
    words = ["run", str(copy), "--n", ",".join(map(str, run["n"])), "--steps", str(STEPS), "--threads", "1"]
    words += [word for name, value in run["given"].items() for word in ("--set", f"{name}={value}")]
    words += [word for name, value in run["options"].items() for word in (f"--{name}", str(value))]
    assert command([*words, "--json", str(tmp_path / "run.json")]) == 0
    data = json.loads((tmp_path / "run.json").read_text())
    assert data["run"]["checksum"] == run["checksum"]
    assert data["run"]["case"] == "mine.py"


def test_results_have_the_keys_that_they_always_had(tmp_path: Path) -> None:
    keys, path = EXPECTED["keys"], tmp_path / "a.json"
    for words, expected in (
        (["heat", "--n", "8", "--dim", "1", "--check"], ["checks", "machine"]),
        (["poisson", "--n", "8", "--dim", "1"], keys["poisson"]),
    ):
        command(["run", *words, "--steps", "2", "--json", str(path)])
        assert sorted(json.loads(path.read_text())) == sorted([*keys["record"], *expected])
    (tmp_path / "own.py").write_text(OWN)
    assert command(["run", str(tmp_path / "own.py"), "--check", "--json", str(path)]) == 0
    data = json.loads(path.read_text())
    assert (sorted(data), sorted(data["run"])) == (keys["file"], keys["record"])
    command(["cases", "heat", "--json", str(path)])
    assert sorted(json.loads(path.read_text())) == keys["cases"]


OWN = """import halocline as hc

n = 8
grid = hc.Grid((n,), periodic=True)
u = grid.field("u")
sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.RK3(), dt=1e-3)
sim[u] = 1.0
sim.run(steps=5)


def check(sim):
    assert sim.steps == 5
"""


def test_cases_import_what_users_import_and_the_framework_imports_no_case() -> None:
    files = [path for path in CASES.glob("*.py") if path.stem != "__init__"]
    assert files
    for path in files:
        script = Script(path)
        assert script.has_settings, path
        assert script.about.endswith("."), path
        assert script.origin, path
        imported = {
            node.module.split(".")[1]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("halocline.")
        }
        assert imported <= {"physics", "io", "lang"}, path


# -- settings ------------------------------------------------------------------------------------------


def test_a_setting_has_its_default_or_the_value_that_is_given() -> None:
    assert hc.setting("kappa", 1.0, "length²/time", above=0.0) == 1.0
    settings = Settings({"kappa": "2", "word": "b"})
    with active(settings):
        assert hc.setting("kappa", 1.0, "length²/time", above=0.0) == 2.0
        assert hc.setting("word", "a", words=("a", "b")) == "b"
        assert hc.setting("other", Setting(3.0, "1", "a number")) == 3.0
    assert settings.values == {"kappa": 2.0, "word": "b", "other": 3.0}
    with active(Settings({"kappa": "-2"})), pytest.raises(InputError, match="kappa is -2; expected a number"):
        hc.setting("kappa", 1.0, "length²/time", above=0.0)


def test_cells_are_in_proportion_or_as_they_are_given() -> None:
    assert hc.cells(8, 4) == (8, 4)
    for n, dim, shape in (
        (None, None, (8, 4)), (None, 1, (6,)), ([16], None, (16, 8)), ([16], 1, (16,)),
        ([5, 3], None, (5, 3)),
    ):  # fmt: skip
        with active(Settings(n=n, dim=dim)):
            assert hc.cells(8, 4, also=[(6,)]) == shape
    for n, dim, words in (
        (None, 3, "dim is 3; expected 1 or 2, the axes that this problem can have"),
        ([4, 4], 1, "n is 4,4; expected one number, or 1, one for each axis"),
        ([4] * 3, None, "n is 4,4,4; expected one number, or 1 or 2, one for each axis"),
    ):
        with active(Settings(n=n, dim=dim)), pytest.raises(InputError, match=words):
            hc.cells(8, 4, also=[(6,)])


def test_a_setting_that_the_file_does_not_declare_is_an_error() -> None:
    with pytest.raises(InputError, match=r"parameter 'kapa' is unknown \(did you mean 'kappa'\?\)"):
        _ = Problem("heat", [8], {"kapa": 1.0}, dim=1).program
    with pytest.raises(InputError, match=r"--method cg: heat is no linear problem"):
        _ = Problem("heat", [8], {"method": "cg"}, dim=1).program


# -- new files -----------------------------------------------------------------------------------------


def test_new_writes_a_file_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(["new", "mine"]) == 0
    assert "wrote mine.py; run it with: halocline run mine.py" in capsys.readouterr().err
    assert Path("mine.py").read_text() == (CASES / "heat.py").read_text()
    assert command(["run", "mine.py", "--n", "16", "--dim", "1", "--set", "kappa=1", "--check"]) == 0
    assert "All checks passed." in capsys.readouterr().out
    assert command(["new", "waves.py", "--from", "wave"]) == 0
    assert Path("waves.py").read_text() == (CASES / "wave.py").read_text()
    for words, message in (
        (["new", "mine.py"], "mine.py exists already: choose another name"),
        (["new", "other", "--from", "wav"], r"--from wav: there is no such case \(did you mean 'wave'\?\)"),
    ):
        with pytest.raises(InputError, match=message):
            command(words)
    assert not Path("other.py").exists()
