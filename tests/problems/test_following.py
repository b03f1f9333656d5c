"""A user's file in the commands that accept cases: run, explain, model, and studies."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from halocline.archive.reader import FACTS
from halocline.cli.app import run
from halocline.errors import InputError
from halocline.problems import following
from halocline.problems.problem import Problem
from halocline.run.output.restart import DIGEST
from halocline.run.simulation.script import Script
from resumed_files import LEFT, RUNS, UNTIL_40, resumed_results
from user_files import EXACT, HEAT, SOLVE, halocline, json_result, record_of_run


@pytest.fixture
def heat(tmp_path: Path) -> Path:
    path = tmp_path / "heat.py"
    path.write_text(HEAT + EXACT)
    return path


# -- names at the top ----------------------------------------------------------------------------------------


def test_settable_names_are_top_level_numbers_and_texts(heat: Path) -> None:
    script = Script(heat)
    assert script.names == {"n": 16, "kappa": 0.1, "name": "T", "late": -0.5}
    assert script.about == "Heat on a square."
    settings = {"n": "8", "kappa": "1", "name": "S", "late": "1e-3"}
    assert script.values(settings) == {"n": 8, "kappa": 1.0, "name": "S", "late": 1e-3}
    for texts, words in (
        ({"m": "8"}, "heat.py: number or text 'm' is unknown"),
        ({"n": "8.5"}, r"n is 8\.5; expected a whole number, because .*heat\.py sets n = 16"),
        ({"kappa": "much"}, r"kappa is much; expected a number, because .*heat\.py sets kappa = 0\.1"),
    ):
        with pytest.raises(InputError, match=words):
            script.values(texts)


def test_a_file_runs_with_changed_values(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("import sys\nn = 3\nm = 2 * n\nwords = sys.argv[1:]\nmain = __name__\n")
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    top = Script(path).run(["x"], {"n": 5})
    assert [top[name] for name in ("n", "m", "words", "main")] == [5, 10, ["x"], "__main__"]
    assert Script(path).run()["m"] == 6
    assert before == (sys.argv, sys.path, sys.modules["__main__"])


ASSIGNMENTS = """g, f0, H = 9.81, -1e-4, 100.0
(a, (b, [c, d])), e = (1, ("two", [3, 4.5])), 6
first = second = 7
annotated: int = 8
declared: int
whole = (64, 32)
h, k = 1, g * 2
start, *rest = 1, 2, 3
p, q = divmod(7, 2)
twice = 1
twice = 2
later = 1
later = later + 1
replaced = 1
replaced = abs(-2)
"""


def test_names_of_every_kind_of_assignment_can_be_set(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(ASSIGNMENTS)
    script = Script(path)
    values = {
        "g": 9.81, "f0": -1e-4, "H": 100.0, "a": 1, "b": "two", "c": 3, "d": 4.5, "e": 6, "first": 7,
        "second": 7, "annotated": 8, "h": 1, "later": 1,
    }  # fmt: skip
    assert script.names == values
    before = script.run()
    for name, value in values.items():
        other = "word" if isinstance(value, str) else value + 10
        top = Script(path).run(replacements=script.values({name: str(other)}))
        expected = before | {name: other} | ({"k": 2 * other} if name == "g" else {})
        expected |= {"later": other + 1} if name == "later" else {}
        assert {n: top[n] for n in (*values, "k", "whole", "rest")} == {
            n: expected[n] for n in (*values, "k", "whole", "rest")
        }
    assert script.run(replacements={"g": 1.0, "H": 2.0})["k"] == 2.0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("replaced", "lines 14 and 15 set it"),
        ("whole", "line 6 sets it to an expression; expected one assignment of a number or a text"),
        ("k", "line 7 sets it to an expression"),
        ("start", "line 8 sets it with a starred target or value"),
        ("rest", "line 8 sets it with a starred target or value"),
        ("q", "line 9 sets it to a part of an expression"),
        ("twice", "lines 10 and 11 set it"),
        ("declared", "number or text 'declared' is unknown"),
    ],
)
def test_a_name_that_cannot_be_set_is_reported_with_the_reason(tmp_path: Path, name: str, words: str) -> None:
    path = tmp_path / "a.py"
    path.write_text(ASSIGNMENTS)
    with pytest.raises(InputError, match=words):
        Script(path).values({name: "1"})


def test_invalid_files_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "nothing.py").write_text("n = 1\nraise SystemExit(3)\n")
    with pytest.raises(InputError, match=r"creates no hc\.Simulation"):
        _ = Problem(str(tmp_path / "nothing.py")).program
    with pytest.raises(InputError, match="there is no file"):
        Problem(str(tmp_path / "other.py"))
    (tmp_path / "fixed.py").write_text(HEAT.replace("n = 16", "n = 4 * 4"))
    with pytest.raises(InputError, match=r"sets no whole number n at its top level\. Write n = 128 there"):
        Problem(str(tmp_path / "fixed.py"), [8])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n = 1\nif\n", r"a\.py, line 2: the file is not valid Python: invalid syntax"),
        ("import nowhere_at_all\n", r"a\.py, line 1: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def f():\n    return 1 / 0\n\nf()\n", r"a\.py, line 2: ZeroDivisionError: division by zero"),
        ("import halocline as hc\nhc.Grid(0)\n", "axis x has 0 cells"),
    ],
)
def test_errors_of_a_file_are_one_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.py").write_text(text)
    with pytest.raises(InputError, match=words):
        _ = Problem(str(tmp_path / "a.py")).program


def test_a_problem_is_known_before_allocation(heat: Path) -> None:
    problem = Problem(str(heat), [30_000], {"kappa": "0.2"})
    assert (problem.name, problem.shape, problem.order, problem.scheme) == (
        "heat.py",
        (30_000, 30_000),
        4,
        "rk3",
    )
    assert problem.values["kappa"] == 0.2
    heat.write_text(SOLVE)
    assert (Problem(str(heat)).scheme, Problem(str(heat)).unit) == ("cg-fused", "iteration")


# -- commands ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["import sys\nsys.exit(0)\n", "raise SystemExit\n"])
def test_a_file_that_ends_itself_is_checked_and_compared(heat: Path, tmp_path: Path, end: str) -> None:
    heat.write_text(heat.read_text() + end)
    record_data = json_result("run", heat, "--check", cwd=tmp_path)
    assert record_data["checks"][0]["passed"]
    assert 0 < record_data["run"]["error"] < 1e-3
    done = halocline("run", heat, "--set", "kappa=0.4", "--check", "--json", "-", cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["checks"] == [
        {"name": "check", "passed": False, "about": "kappa is large"}
    ]


@pytest.mark.parametrize("verb", ["explain", "model"])
def test_files_are_explained_and_predicted(heat: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"explain": ["--ranks", "4"], "model": ["--machine", "summit", "--nodes", "1,4"]}[verb]
    assert run([verb, str(heat), "--n", "64", *words]) == 0
    text = capsys.readouterr().out
    assert "heat.py, 64 x 64 cells, order 4, rk3; a pass is a step" in text
    assert {"explain": "4 ranks of 1 thread", "model": "Predicted strong scaling"}[verb] in text
    assert run([verb, str(heat), "--order", "2", *words]) == 0
    assert "heat.py, 16 x 16 cells, order 2, rk3; a pass is a step" in capsys.readouterr().out


def test_a_file_converges_to_its_exact_solution(heat: Path, tmp_path: Path) -> None:
    study = json_result("study", "convergence", heat, "--n", "16,32,64", cwd=tmp_path)
    (line,) = study["orders"]
    assert line["expected_order"] == 4
    assert line["last_order"] == pytest.approx(4.0, abs=0.1)
    done = halocline("study", "convergence", heat, "--n", "16,32", "--json", heat / "a.json", cwd=tmp_path)
    assert done.returncode == 2
    assert f"cannot write {heat}/a.json" in done.stderr
    assert "[1/2]" not in done.stderr  # before any run
    assert halocline("study", "convergence", heat, "--n", "16,32", cwd=tmp_path).returncode == 0


# -- options of a run ----------------------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sw.py"
    path.write_text(RUNS + LEFT.replace("found", "[left, seen]"))
    return path


def test_options_of_a_run_apply_to_the_run_of_a_file(runs: Path, tmp_path: Path) -> None:
    whole = resumed_results(runs)
    assert (whole[0], whole[3]) == (20, [5, 10, 15, 20])
    further = resumed_results(runs, "--steps", "30")
    assert (further[0], resumed_results(runs, "--until", "0.03")[0]) == (30, 30)
    assert resumed_results(runs, "--every", "8")[3] == [8, 16, 20]
    written = resumed_results(runs, "--output", "o.zarr", "--output-every", "10")
    assert written == whole
    import xarray

    with xarray.open_zarr("o.zarr") as store:
        assert store["T"].shape == (3, 16, 16)
    with pytest.raises(SystemExit) as ended:
        run(["run", str(runs), "--output", "o.zarr"])
    assert ended.value.code == 2
    assert resumed_results(runs, "--output", "o.zarr", "--overwrite") == whole
    assert resumed_results(runs, "--pictures", "p") == whole
    assert (tmp_path / "p" / "T.png").exists()


def test_a_file_writes_checkpoints_and_is_resumed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    further = resumed_results(runs, "--steps", "30")
    first = resumed_results(runs, "--checkpoint", "ck", "--checkpoint-every", "8", "--keep", "9")
    assert "checkpoints are in ck; restart with --resume ck" in capsys.readouterr().err
    assert resumed_results(runs, "--resume", "ck") == (*first[:3], [20])
    assert resumed_results(runs, "--resume", "ck", "--steps", "30")[:3] == further[:3]
    saved = sorted(Path("ck").glob("step-*"))
    assert [int(path.name.split("-")[1]) for path in saved] == [8, 16, 20]
    for checkpoint in saved:  # the 20 steps in the file count from its start
        assert resumed_results(runs, "--resume", str(checkpoint))[:3] == first[:3]
    with pytest.raises(SystemExit) as ended:
        run(["run", str(runs), "--checkpoint", "ck"])
    assert ended.value.code == 2
    assert (
        "Restart from this checkpoint (--resume), choose another folder, or overwrite the checkpoints"
        in capsys.readouterr().err
    )
    assert resumed_results(runs, "--checkpoint", "ck", "--overwrite") == first
    with pytest.raises(SystemExit) as ended:
        run(["run", str(runs), "--resume", "ck", "--n", "8"])
    assert ended.value.code == 2
    capsys.readouterr()
    changed = resumed_results(runs, "--resume", "ck", "--steps", "30", "--set", "kappa=0.2")
    assert changed[2] != further[2]
    facts = next(iter(Path("ck").glob("step-*"))) / "zarr.json"
    group = json.loads(facts.read_text().replace('"began": 0', '"began": "x"'))
    del group["attributes"][FACTS][DIGEST]
    facts.write_text(json.dumps(group))
    with pytest.raises(InputError, match=r"is damaged: 'file' is .*'began': 'x'"):
        run(["run", str(runs), "--resume", str(facts.parent)])
    with pytest.raises(InputError, match="no checkpoint in nowhere"):
        run(["run", str(runs), "--resume", "nowhere"])


def test_the_option_overwrite_applies_to_checkpoints_in_the_file(runs: Path) -> None:
    text = runs.read_text().replace("steps=20", "steps=20, checkpoint=hc.Checkpoint('own')")
    runs.write_text(text)
    first = resumed_results(runs)
    with pytest.raises(SystemExit) as ended:
        run(["run", str(runs)])
    assert ended.value.code == 2
    assert resumed_results(runs, "--overwrite", "--io-threads", "2") == first
    assert resumed_results(runs, "--resume", "own", "--steps", "21")[0] == 21


def test_a_solve_of_a_file_writes_checkpoints_and_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "solve.py"
    path.write_text(SOLVE + "print(solution.iterations)\n")
    whole = record_of_run(path, cwd=tmp_path)
    words = ["--checkpoint", "ck", "--checkpoint-every", "9", "--keep", "9"]
    assert record_of_run(path, *words, cwd=tmp_path)["checksum"] == whole["checksum"]
    first = sorted((tmp_path / "ck").glob("step-*"))[0]
    resumed = record_of_run(path, "--resume", first, cwd=tmp_path)
    assert (resumed["checksum"], resumed["steps"]) == (whole["checksum"], whole["steps"] - 9)
    for words in (["--steps", "3"], ["--until", "1"], ["--output", "o.zarr"]):
        with pytest.raises(InputError, match=f"{words[0]} .* runs no simulation"):
            run(["run", str(path), *words])


@pytest.mark.parametrize("loop", ["while sim.steps < 40:\n    sim.run(steps=1)\n", UNTIL_40])
def test_a_file_that_waits_beyond_the_end_of_the_command_is_ended(
    runs: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    loop: str,
) -> None:
    monkeypatch.setattr(following, "IDLE_RUNS", 20)
    runs.write_text(RUNS + loop)
    words = ["--checkpoint", "ck", "--keep", "99", "--output", "o.zarr", "--output-every", "10"]
    with pytest.raises(SystemExit) as ended:
        run(["run", str(runs), "--steps", "30", *words])
    assert ended.value.code == 1
    assert "sw.py has called sim.run 20 times after the end that this option sets" in capsys.readouterr().err
    (warning,) = [log_record.message for log_record in caplog.records if log_record.levelname == "WARNING"]
    assert "runs the simulation again, but it has already reached the end that this option sets" in warning
    assert len(list(Path("ck").glob("step-*"))) == 1


def test_results_are_written_before_an_option_without_effect_is_reported(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--json", "r.json", "--state", "s.npz", "--pictures", "p", "--check"]
    with pytest.raises(InputError, match=r"^--every 3: .* runs no simulation with a callback"):
        run(["run", str(heat), *words, "--every", "3"])
    printed = capsys.readouterr()
    assert printed.out == "check passed\n"
    assert "wrote r.json, s.npz, p/T.png" in printed.err
    record = json.loads(Path("r.json").read_text())
    assert record["run"]["steps"] > 0
    assert record["checks"][0]["passed"]
    assert np.load("s.npz")["T"].shape == (16, 16)
    (tmp_path / "a.py").write_text("n = 1\n")
    with pytest.raises(InputError, match=r"^--state none\.npz: .* creates no simulation"):
        run(["run", "a.py", "--state", "none.npz", "--json", "r.json"])
    assert json.loads(Path("r.json").read_text())["run"] is None
    assert not Path("none.npz").exists()
    assert "none.npz" not in capsys.readouterr().err


def test_a_resumed_file_without_a_step_prints_a_note(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    resumed_results(runs, "--checkpoint", "ck")
    resumed_results(runs, "--resume", "ck", "--steps", "25")
    assert "no step was computed" not in capsys.readouterr().err
    resumed_results(runs, "--resume", "ck")
    assert "no step was computed: checkpoint ck is already at step 20 (time 0.02)" in capsys.readouterr().err


def test_an_end_before_the_start_is_rejected(runs: Path) -> None:
    for time_, problem in (("-1", str(runs)), ("nan", str(runs)), ("-1", "heat")):
        with pytest.raises(InputError, match=f"--until.*{time_}; expected a finite time, 0 or more"):
            run(["run", problem, "--until", time_])


def test_a_file_that_does_not_exist_has_no_options(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^there is no file swx\.py$"):
        run(["run", "swx.py", "--foo"])


def test_runs_after_the_end_time_call_and_write_nothing(runs: Path) -> None:
    text = runs.read_text()
    again = "sim.run(steps=4, callback=lambda sim: seen.append('again'), output=hc.Output('own.zarr'))\n"
    runs.write_text(text.replace("left =", again + "sim.start_new_run()\nsim.run(steps=2)\nleft ="))
    steps, _, _, times_of_calls = resumed_results(runs, "--steps", "10")
    assert (steps, times_of_calls) == (10, [5, 10])  # the restart moves the simulation away from the end
    assert not Path("own.zarr").exists()


def test_calls_of_an_exact_run_are_counted_in_steps(runs: Path) -> None:
    whole = resumed_results(runs, "--every", "8")
    runs.write_text(runs.read_text().replace("every=0.005", "every=0.005, exact=True"))
    assert resumed_results(runs, "--every", "8") == whole


STATES = """
import pathlib
pathlib.Path("seen.txt").touch()


def note(sim):
    with open("seen.txt", "a") as file:
        file.write(f"{sim.steps} {sim.checksum(T)}\\n")


sim.start_new_run()
for _ in range(3):
    sim.run(steps=4, every=hc.steps(2), callback=note)
    sim[T] = sim[T] + 1.0
"""


def test_complete_runs_call_nothing_on_resume(runs: Path) -> None:
    begin, _, _ = RUNS.partition("sim.run(")
    runs.write_text(begin + STATES)
    assert run(["run", str(runs), "--threads", "1", "--checkpoint", "ck", "--checkpoint-every", "3"]) == 0
    whole = Path("seen.txt").read_text().splitlines()
    assert [line.split()[0] for line in whole] == ["2", "4", "6", "8", "10", "12"]
    Path("seen.txt").unlink()
    runs.write_text(begin + STATES.replace("range(3)", "range(2)"))
    words = ["--checkpoint", "other", "--checkpoint-every", "3", "--keep", "99"]
    assert run(["run", str(runs), "--threads", "1", *words]) == 0
    (saved,) = Path("other").glob("step-000000000006-*")  # stopped in the second run
    Path("seen.txt").unlink()
    runs.write_text(begin + STATES)
    assert run(["run", str(runs), "--threads", "1", "--resume", str(saved)]) == 0
    assert Path("seen.txt").read_text().splitlines() == whole[3:]


def test_diagnostics_are_those_of_files_with_settings(runs: Path) -> None:
    runs.write_text(RUNS + "\n\ndef diagnostics():\n    return {}\n")
    with pytest.raises(InputError, match=r"^--csv a\.csv: .* declares no settings, .* with hc\.setting\.$"):
        run(["run", str(runs), "--threads", "1", "--csv", "a.csv"])
    assert not Path("a.csv").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--dim", "2"], r"the number of axes of .*a\.py is fixed"),
        (["--csv", "a.csv"], "has no function diagnostics"),
        (["--output-every", "2"], "add --output STORE.zarr"),
        (["--checkpoint-every", "2"], "add --checkpoint FOLDER"),
        (["--only", "compute", "--checkpoint", "ck"], r"Leave --checkpoint out\."),
        (["--only", "compute", "--pictures", "p"], r"Leave --pictures out\."),
    ],
)
def test_options_without_effect_on_a_file_are_rejected_before_it_begins(
    tmp_path: Path, words: list[str], reason: str
) -> None:
    path = tmp_path / "a.py"
    path.write_text("raise ValueError('begun')\n")
    with pytest.raises(InputError, match=f"^{words[-2]} .*{reason}"):
        run(["run", str(path), *words])
