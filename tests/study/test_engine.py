"""All runs of a study have the same algorithm."""

from __future__ import annotations

import io
import json
import math
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from halocline.cli.app import run
from halocline.compile.compiler import compile_program
from halocline.problems.files import case_names
from halocline.problems.problem import Problem, problem_of
from halocline.study.engine import build_report, plan_runs
from halocline.study.measuring import command
from halocline.study.measuring.command import Command
from halocline.study.registry import papers
from halocline.study.study import StudyRequest, studies
from reduced_studies import _check_result, reduced_command
from step_measurements import runs_of, step
from suites import cases

RUN_APART = command._run


# -- every problem in every command --------------------------------------------------------------------------


def _in_this_process(case: Command, words: list[str]) -> dict[str, Any]:
    """Run a command on one rank in this process, since a new process would take most of the time."""
    needs_mpi = "peer" not in (case.methods or "peer")
    if words[words.index("--ranks") + 1] != "1" or needs_mpi:
        return RUN_APART(case, words)
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        file = Path(folder, "record.json")
        run([*words, "--json", str(file)])
        return json.loads(file.read_text())


# the measured runs of these five take longest, and other tests measure them too
@cases(
    "name",
    list(studies()),
    lambda name: name not in ("ablation", "devices", "exchange", "layouts", "vectors"),
)
def test_every_study_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies run on one rank here; a test of the extended suite runs them on their own numbers of ranks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_run", _in_this_process)
    # keep the SIGTERM handler
    monkeypatch.setattr("halocline.cli.commands.studies.share_terminal", lambda: None)
    words = reduced_command(name, ranks="1")
    count = runs_of(words, monkeypatch)
    with redirect_stdout(io.StringIO()):
        run([*words, "--json", "s.json", "--csv", "s.csv", "--html", "s.html"])
    _check_result(name, json.loads(Path("s.json").read_text()), count)
    assert studies()[name].title in Path("s.html").read_text()
    assert len(Path("s.csv").read_text().splitlines()) == count + 1


# -- one algorithm for all runs ------------------------------------------------------------------------------


def _algorithm(command: Command, shape: tuple[int, ...]) -> list[tuple[float, float]]:
    """Return operations and bytes of each sweep of a step."""
    ready = problem_of(command.name, shape, command.settings, order=command.order, scheme=command.scheme)
    schedule = compile_program(ready.program, ready.grid)
    return [(sweep.flops, sweep.bytes) for sweep in schedule.pass_sweeps()]


CHEAP = ("cavity-2d", "heat", "wave")


@pytest.mark.parametrize(
    "case",
    [
        case if case in CHEAP else pytest.param(case, marks=pytest.mark.long)
        for case in case_names()
        if case != "poisson"  # a problem without steps
    ],
)
def test_all_runs_of_a_study_have_the_same_algorithm(case: str) -> None:
    """Coarse and fine grids have the same algorithm, also in cases that choose it by the spacing."""
    n = Problem(case).default_cells()[0]
    runs = plan_runs(
        StudyRequest(studies()["strong"], Command("run", case, {"steps": 4}), (n // 2, 2 * n), (1,), (1,))
    )
    assert len({run.shape for run in runs}) == 2
    assert len({str(_algorithm(run.command, run.shape)) for run in runs}) == 1


def test_automatic_parameters_of_the_largest_grid_apply_to_all_runs() -> None:
    runs = plan_runs(
        StudyRequest(studies()["weak"], Command("run", "cavity", {"steps": 4}), (16, 64), (1, 8), (1,))
    )
    largest = max(runs, key=lambda run: math.prod(run.shape))
    alone = plan_runs(
        StudyRequest(studies()["weak"], Command("run", "cavity", {"steps": 4}), (64,), (8,), (1,))
    )
    assert alone[0].shape == largest.shape == (128, 128, 128)
    assert {run.command.settings for run in runs} == {alone[0].command.settings} == {("stages=3",)}
    small = plan_runs(
        StudyRequest(studies()["weak"], Command("run", "cavity", {"steps": 4}), (16,), (1,), (1,))
    )
    assert small[0].command.settings == ("stages=1",)
    command = Command("run", "cavity", {"steps": 4}, ("stages=2",))
    assert {
        run.command.settings
        for run in plan_runs(StudyRequest(studies()["weak"], command, (16, 64), (1,), (1,)))
    } == {("stages=2",)}
    one = {**step(), "case": "cavity", **largest.facts}
    sentences = build_report(studies()["weak"], [one], None).sentences
    assert sentences[0] == (
        "cavity: stages = 3 in all runs, the automatic value for the largest grid, 128 x 128 x 128."
    )


def test_the_paper_uses_forward_euler_steps() -> None:
    for name, study in papers().items():
        if study.problem == "cavity":
            assert study.options["settings"] == ("stages=1", "watch=1e6"), name
            assert "Predicted and measured with stages=1, watch=1e6, as in the paper." in study.sentences
    study = papers()["cavity-table3"]
    schedule, _ = study._prepare_schedule(study.select_configurations(None, None)[0])
    assert sum(sweep.share == 1 for sweep in schedule.pass_sweeps()) == 1
