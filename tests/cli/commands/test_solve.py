"""The command `halocline solve`, interrupted and restarted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kept_runs import run_command_line, steps_of
from suites import cases


def test_a_resumed_solve_continues_its_iterations(tmp_path: Path) -> None:
    def solve(*words: str | Path) -> dict[str, Any]:
        done = run_command_line("solve", "poisson", "--n", "48", "--threads", "1", "--json", "-", *words)
        assert done.returncode == 0, done.stderr
        record_data: dict[str, Any] = json.loads(done.stdout)
        return record_data

    store, folder = tmp_path / "u.zarr", tmp_path / "c"
    whole = solve("--rtol", "1e-9")
    keeps = ["--output", store, "--output-every", "20", "--checkpoint", folder, "--checkpoint-every", "25"]
    solve("--rtol", "1e-4", *keeps)
    second = solve("--rtol", "1e-9", "--resume", folder, *keeps, "--ranks", "2")
    for key in ("checksum", "iterations", "true_residual_relative"):
        assert second[key] == whole[key]
    assert steps_of(store) == list(range(0, whole["iterations"] + 1, 20))


@cases(
    "words, error",
    [
        (["--n", "16"], "n is 16, but checkpoint"),
        (["--dim", "3"], "dim is 3, but checkpoint"),
        (["--method", "cg-fused"], "method is cg-fused, but checkpoint"),
    ],
    lambda case: case[0][0] == "--n",
)
def test_a_resumed_solve_keeps_its_problem_and_method(tmp_path: Path, words: list[str], error: str) -> None:
    first = run_command_line(
        "solve", "poisson", "--n", "24", "--method", "cg", "--rtol", "1e-3", "--checkpoint", tmp_path
    )
    assert first.returncode == 0, first.stderr
    done = run_command_line("solve", "poisson", "--resume", tmp_path, *words)
    assert done.returncode == 2
    assert error in done.stderr
    resumed = run_command_line("solve", "poisson", "--resume", tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert "cg, 1 rank" in resumed.stdout
