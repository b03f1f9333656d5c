"""Errors of runs, by the functions `exact` and `error` of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import halocline as hc
from halocline.cli.app import run as command
from halocline.problems.problem import Problem
from suites import cases

FILE = """
import numpy as np
import halocline as hc
grid = hc.Grid(hc.cells(4), extent=4.0, periodic=True)
u = grid.field("u")
{names}
sim = hc.Simulation(grid, lambda u: {{u: 0.0 * u}}, scheme=hc.Euler(), dt=0.5)
sim[u] = lambda x: x
sim.run({end})
"""


def written(folder: Path, names: str, end: str = "steps=2") -> str:
    file = folder / "own.py"
    file.write_text(FILE.format(names=names, end=end))
    return str(file)


@pytest.mark.parametrize(
    ("solution", "error"),
    [
        ("{u: u + 0.25}", 0.25),  # an expression
        ("{u: lambda x: x - time}", 1.0),
        ("{u: np.array([0.5, 1.5, 2.5, 3.0])}", 0.5),
        ("{'u': 0.5}", 3.0),
        ("{}", 0.0),
    ],
)
def test_the_error_is_the_maximum_difference_from_the_exact_solution(
    solution: str, error: float, tmp_path: Path
) -> None:
    record = Problem(written(tmp_path, f"def exact(time): return {solution}")).run().record
    assert record is not None
    assert record.error == error


def test_an_error_function_of_the_file_is_used_at_the_end(tmp_path: Path) -> None:
    names = "def error(sim): return np.float32(sim.time)\ndef exact(time): return {u: 7.0}"
    problem = Problem(written(tmp_path, names, "until=1.5"))
    at_end, before = problem.run().record, problem.run(steps=2).record
    assert at_end is not None
    assert before is not None
    assert (at_end.error, before.error) == (1.5, None)
    endless = Problem(written(tmp_path, "def error(sim): return np.nan")).run()
    assert endless.record is not None
    assert (endless.record.error, endless.fault) == (None, None)


WRONG = [
    ("def error(sim): return 'small'", "error(sim) is 'small'; expected a number"),
    ("def exact(time): return 3", "exact(1) returns 3; expected a mapping of fields to values"),
    ("def exact(time): return {u: [1.0, 2.0]}", "exact(1) of field 'u' has shape (2,); expected (4,)"),
    ("def exact(time): return {u: lambda x, y: x}", "exact(1) of field 'u' takes 2 arguments"),
    ("def exact(time): return {'v': 1.0}", "field 'v' is unknown"),
]


@cases("names, words", WRONG, default=WRONG[::2])
def test_an_invalid_error_function_loses_no_other_result(names: str, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, names)
    result = Problem(path).run()
    assert result.record is not None
    assert (result.record.steps, result.record.error) == (2, None)
    assert words in str(result.fault)
    file = tmp_path / "a.json"
    with pytest.raises(hc.InputError, match=r"own\.py: "):
        command(["run", path, "--json", str(file)])
    assert json.loads(file.read_text())["run"]["checksum"] == result.record.checksum
