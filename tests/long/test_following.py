"""A user's file in the commands that accept cases: run, explain, model, and studies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from halocline.cli.app import run
from halocline.run.output.restart import Saved, newest
from halocline.study.studies.parts import PARTS
from resumed_files import LEFT, RUNS, UNTIL_40, resumed_results
from user_files import EXACT, HEAT, halocline, json_result

ACOUSTIC = Path(__file__).parents[2] / "examples" / "acoustic.py"


@pytest.fixture
def heat(tmp_path: Path) -> Path:
    path = tmp_path / "heat.py"
    path.write_text(HEAT + EXACT)
    return path


# -- commands ------------------------------------------------------------------------------------------------


def test_a_scaling_study_of_a_file_times_parts(heat: Path, tmp_path: Path) -> None:
    measurements = json_result("study", "strong", heat, "--ranks", "1,2", "--parts", cwd=tmp_path)[
        "measurements"
    ]
    timed = [(m["ranks"], m["only"], m["halo"]) for m in measurements]
    assert timed == [(ranks, *kind) for ranks in (1, 2) for kind in PARTS.values()]


def test_a_scaling_study_runs_a_file(heat: Path, tmp_path: Path) -> None:
    measurements = json_result("study", "strong", heat, "--ranks", "1,2", cwd=tmp_path)["measurements"]
    assert [(m["ranks"], m["only"]) for m in measurements] == [(1, None), (2, None), (2, "exchange")]
    measurements = measurements[:2]
    assert {m["checksum"] for m in measurements} == {measurements[0]["checksum"]}
    assert {tuple(m["shape"]) for m in measurements} == {(16, 16)}
    measurements = json_result("study", "weak", heat, "--n", "16", "--ranks", "1,2", cwd=tmp_path)[
        "measurements"
    ]
    assert [m["shape"] for m in measurements[:2]] == [[16, 16], [23, 23]]
    for option in (["--steps", "3"], ["--orders", "2,4"], ["--scheme", "rk3"]):
        done = halocline("study", "strong", heat, *option, cwd=tmp_path)
        assert done.returncode == 2
        assert "is a file without settings, and sets the value itself. Leave the option out" in done.stderr


def test_a_convergence_study_runs_a_file(heat: Path, tmp_path: Path) -> None:
    heat.write_text(HEAT)
    study = json_result("study", "convergence", heat, "--n", "16,32,64,128", cwd=tmp_path)
    assert [m["error"] is None for m in study["measurements"]] == [False, False, False, True]
    (line,) = study["orders"]
    assert line["last_order"] == pytest.approx(2.0, abs=0.1)  # means of cells, compared with point values
    heat.write_text(HEAT.replace("until=0.02", "steps=4"))
    done = halocline("study", "convergence", heat, "--n", "16,32,64", cwd=tmp_path)
    assert done.returncode == 2
    assert "Use sim.run(until=...)" in done.stderr
    done = halocline("study", "convergence", heat, "--n", "16,32", cwd=tmp_path)
    assert done.returncode == 2
    assert "the order of convergence is computed from at least 3 grids." in done.stderr


def test_the_acoustic_example_works_with_every_command(tmp_path: Path) -> None:
    text = ACOUSTIC.read_text()
    assert len(text.splitlines()) < 60
    assert "study" not in text
    for words in (
        ["run", ACOUSTIC, "--n", "56", "--ranks", "2"],
        ["explain", ACOUSTIC, "--ranks", "64"],
        ["model", ACOUSTIC, "--machine", "summit", "--nodes", "1,4,16"],
        ["study", "strong", ACOUSTIC, "--n", "56"],
        ["study", "weak", ACOUSTIC, "--n", "56"],
        ["study", "convergence", ACOUSTIC, "--n", "28,56,112"],
    ):
        done = halocline(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


# -- options of a run ----------------------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sw.py"
    path.write_text(RUNS + LEFT.replace("found", "[left, seen]"))
    return path


def test_a_file_is_resumed_on_other_ranks(runs: Path, tmp_path: Path) -> None:
    whole = resumed_results(runs, "--steps", "30")
    words = ["--steps", "24", "--checkpoint", "ck", "--output", "o.zarr", "--io-ranks", "1"]
    json_result("run", runs, "--ranks", "2", *words, cwd=tmp_path)
    json_result("run", runs, "--ranks", "3", "--resume", "ck", "--steps", "30", cwd=tmp_path)
    (steps, time, checksum), _ = json.loads((tmp_path / "left.json").read_text())
    assert (steps, time, checksum) == whole[:3]


def test_a_file_that_waits_beyond_the_end_time_of_the_command_is_ended(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.write_text(RUNS + UNTIL_40)
    with pytest.raises(SystemExit) as ended:
        run(["run", str(runs), "--until", "0.02", "--checkpoint", "ck"])
    assert ended.value.code == 1
    assert "has called sim.run 10,000 times after the end that this option sets" in capsys.readouterr().err


SEQUENCE = """import halocline as hc

n = 16
grid = hc.Grid((n, n), periodic=True)
T = grid.field("T")
u = hc.Grid((n, n), walls="node").field("u", boundary=hc.Value(0.0))
found = [hc.solve(lambda u: -hc.laplacian(u), u, 1.0).iterations]
for kappa in (0.1, 0.2):
    sim = hc.Simulation(
        grid, lambda T, kappa: {T: kappa * hc.laplacian(T)}, parameters={"kappa": kappa},
        scheme=hc.RK3(), dt=1e-3,
    )
    sim[T] = lambda x, y: x * (1 - x) * y
    sim.run(until=0.0105)
    sim[T] = sim[T] + 1.0
    sim.run(steps=8)
    for _ in range(2):
        sim.run(steps=3)
    found.append((sim.steps, sim.time, sim.checksum(T)))
"""


def test_a_file_of_several_problems_is_resumed_from_any_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sequence.py"
    path.write_text(SEQUENCE + LEFT)

    def results_of(*words: str) -> list[Any]:
        assert run(["run", str(path), "--threads", "1", *words]) == 0
        results: list[Any] = json.loads(Path("left.json").read_text())
        return results

    whole = results_of()
    assert [result_of_run[0] for result_of_run in whole[1:]] == [25, 25]
    assert whole[1][2] != whole[2][2]
    words = ["--checkpoint", "ck", "--checkpoint-every", "4", "--keep", "99", "--output", "o.zarr"]
    assert results_of(*words) == whole
    assert {path.name for path in tmp_path.glob("*.zarr")} == {"o.zarr", "o-2.zarr"}
    saved = sorted(Path("ck").glob("step-*"))
    assert len(saved) > 6
    for checkpoint in saved[::3]:
        assert results_of("--resume", str(checkpoint)) == whole
    assert results_of("--resume", str(saved[2]), *words, "--overwrite") == whole
    again = "if kappa == 0.1: first = sim\n    else: first.run(steps=1)\n    found.append("
    path.write_text(SEQUENCE.replace("found.append((", again + "(") + LEFT)
    with pytest.raises(SystemExit) as ended:
        results_of("--checkpoint", "other")
    assert ended.value.code == 2


BREAKS = """import json
from pathlib import Path
import halocline as hc

n = 16
grid = hc.Grid((n, n), periodic=True)
T = grid.field("T")
found = []


def stop(sim):
    assert Path("go").exists(), "stopped"


for kappa in (0.1, 0.2):
    sim = hc.Simulation(
        grid, lambda T, kappa: {T: kappa * hc.laplacian(T)}, parameters={"kappa": kappa},
        scheme=hc.RK3(), dt=1e-3,
    )
    sim[T] = lambda x, y: x * (1 - x) * y
    if kappa == 0.1:
        sim.run(steps=8)
    else:
        sim.run(steps=5, every=hc.steps(3), callback=stop)
    found.append((sim.steps, sim.checksum(T)))
Path("left.json").write_text(json.dumps(found))
"""


def test_checkpoints_of_one_problem_stay_until_the_next_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "breaks.py"
    path.write_text(BREAKS)
    words = ["run", str(path), "--threads", "1", "--checkpoint", "ck", "--checkpoint-every", "4"]
    Path("go").touch()
    assert run(words[:-4]) == 0
    whole = Path("left.json").read_text()
    Path("go").unlink()
    Path("left.json").unlink()
    for resume in ([], ["--resume", "ck"]):
        with pytest.raises(SystemExit):  # in the second problem, before its first checkpoint
            run([*words, *resume])
        assert Saved(newest(Path("ck"))).facts["step"] == 8
    Path("go").touch()
    assert run([*words, "--resume", "ck"]) == 0
    assert Path("left.json").read_text() == whole
    steps = [int(path.name.split("-")[1]) for path in sorted(Path("ck").glob("step-*"))]
    assert (steps, Saved(newest(Path("ck"))).facts["step"]) == ([4, 5], 5)
