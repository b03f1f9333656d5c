"""Problems: every case as a file, with the recorded checksums and JSON keys of cases."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halocline.cli.app import run as command
from halocline.errors import InputError
from halocline.problems.files import CASES, case_names
from halocline.problems.problem import Problem
from halocline.run.simulation.script import Script
from suites import cases

EXPECTED = json.loads((Path(__file__).parents[1] / "data" / "case_runs.json").read_text())
STEPS = 3
SHORT = ("alfven-decay", "heat", "poisson", "wave")  # kernels that compile fast


def runs() -> list[Any]:
    """Return the recorded runs; those of long kernels are marked."""
    return [
        pytest.param(
            run,
            id=f"{run['case']}-{number}",
            marks=[] if run["case"] in SHORT and len(run["n"]) == 1 else [pytest.mark.long],
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


def test_results_have_the_recorded_keys(tmp_path: Path) -> None:
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


MIXED = """
import halocline as hc

grid = hc.Grid(8, periodic=True, dtype="float64")
u, v = grid.field("u", dtype="float32"), grid.field("v")
sim = hc.Simulation(grid, lambda u, v: {u: -u, v: -v}, scheme=hc.Euler(), dt=1e-3)
sim.run(steps=1)
"""


# -- precision -----------------------------------------------------------------------------------------


def test_a_dtype_without_effect_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN.replace('"u"', '"u", dtype="float64"'))
    with pytest.raises(
        InputError, match=r"--dtype float32 has no effect: .* sets float64 for its grid or all"
    ):
        Problem(str(tmp_path / "own.py"), dtype="float32").run()
    (tmp_path / "own.py").write_text(MIXED)
    for dtype in ("float32", "float64"):
        with pytest.raises(InputError, match=rf"--dtype {dtype} has no effect: .* sets float32 and float64"):
            Problem(str(tmp_path / "own.py"), dtype=dtype).run()
    (tmp_path / "own.py").write_text(MIXED.replace(', dtype="float64"', ""))
    assert Problem(str(tmp_path / "own.py"), dtype="float32").dtype == "float32"
    with pytest.raises(InputError, match="dtype 'float16' is unknown"):
        Problem("heat", dtype="float16")


def test_a_file_without_settings_accepts_a_dtype(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    records = [Problem(str(tmp_path / "own.py"), dtype=dtype).run().record for dtype in (None, "float32")]
    assert [record.dtype for record in records] == ["float64", "float32"]
    assert records[0].checksum != records[1].checksum


def test_a_title_names_a_dtype_other_than_float64() -> None:
    assert Problem("heat", [8], dim=1, dtype="float32").title == "heat, 8 cells, order 6, rk3, float32"
    assert Problem("heat", [8], dim=1, dtype="float64").title == "heat, 8 cells, order 6, rk3"
    assert Problem("poisson", [8], dim=1, dtype="float32").title.endswith("8 unknowns, cg-fused, float32")


@cases("case", ["heat", "poisson"], default=["heat"])
def test_a_checkpoint_keeps_the_dtype(case: str, tmp_path: Path) -> None:
    words = ["run", case, "--dim", "1", "--threads", "1"]
    keep = ["--checkpoint", str(tmp_path / "kept"), "--checkpoint-every", "2 steps", "--dtype", "float32"]
    assert command([*words, "--n", "32", "--steps", "4", *keep]) == 0
    resumed, whole = tmp_path / "resumed.json", tmp_path / "whole.json"
    resume = [*words, "--resume", str(tmp_path / "kept"), "--steps", "6"]
    assert command([*resume, "--json", str(resumed)]) == 0
    assert command([*words, "--n", "32", "--steps", "6", "--dtype", "float32", "--json", str(whole)]) == 0
    a, b = (json.loads(path.read_text()) for path in (resumed, whole))
    assert (a["dtype"], a["checksum"]) == ("float32", b["checksum"])
    with pytest.raises(
        InputError, match=r"dtype is float64, but checkpoint .* belongs to a run with float32"
    ):
        command([*resume, "--dtype", "float64"])


def test_a_store_and_a_state_keep_the_dtype(tmp_path: Path) -> None:
    state, store = tmp_path / "state.npz", tmp_path / "out.zarr"
    words = ["run", "heat", "--n", "8", "--dim", "1", "--steps", "2", "--dtype", "float32", "--threads", "1"]
    assert command([*words, "--state", str(state), "--output", str(store)]) == 0
    assert np.load(state)["T"].dtype == np.float32
    assert json.loads((store / "T" / "zarr.json").read_text())["data_type"] == "float32"


def test_a_tolerance_below_single_precision_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    result = Problem("poisson", [63], {"rtol": 1e-6}, dtype="float32").run(threads=1)
    assert result.outcome.reason == "rounding limit"
    assert not result.outcome.converged
    assert "because of rounding errors" in caplog.text
    assert "or larger." in caplog.text
    reached = Problem("poisson", [63], {"rtol": 1e-3}, dtype="float32").run(threads=1)
    assert reached.outcome.converged


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


def test_cases_use_public_imports_and_are_not_imported() -> None:
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
        (["new", "mine.py"], r"mine.py exists already\. Choose another name"),
        (["new", "other", "--from", "wav"], r"--from: case 'wav' is unknown \(did you mean 'wave'\?\)"),
        (["new", ""], "NAME is ''; expected the name of a file"),
        (["new", "folder/.py"], "NAME is 'folder/.py'; expected the name of a file"),
        (["run", "mine"], r"no case of that name \(did you mean 'mine\.py'\?\)"),
    ):
        with pytest.raises(InputError, match=message):
            command(words)
    assert not Path("other.py").exists()
