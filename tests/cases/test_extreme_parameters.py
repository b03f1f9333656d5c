"""Parameters of cases at the ends of their ranges: each gives a problem or one InputError."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Sequence

import pytest

from halocline.cli.app import run
from halocline.errors import InputError
from halocline.problems.files import case_names
from halocline.problems.problem import Problem
from suites import cases

SIZES = (1e-308, 1e308)
MORE = (1e-160, 1e20, 1e160)
CELLS = 8

# cases with few kernels, of most solvers and physical models
DEFAULT = (
    "cavity-2d",
    "heat",
    "linear-wave",
    "poisson",
    "wave",
)


def extreme_values(name: str, sizes: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Yield the parameters of a case with extreme values that each parameter accepts."""
    for parameter, declared in Problem(name).declared.items():
        for value in (*sizes, *(-size for size in sizes)):
            if not declared.words:
                try:
                    declared.check(parameter, value)
                except InputError:
                    continue
                yield parameter, value


@cases("sizes", [SIZES, MORE], default=[SIZES])
@cases("name", case_names(), default=DEFAULT)
def test_an_extreme_parameter_is_valid_or_an_input_error(name: str, sizes: Sequence[float]) -> None:
    accepted = rejected = 0
    for parameter, value in extreme_values(name, sizes):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                problem = Problem(name, [CELLS], {parameter: value})
                program = problem.program
            except InputError:
                rejected += 1
                continue
        accepted += 1
        assert program
        until = problem.known.until
        assert until is None or math.isfinite(until), (parameter, value)
    assert accepted
    assert rejected + accepted >= len(Problem(name).declared) / 2


def test_the_error_names_the_parameters_that_were_changed() -> None:
    with pytest.raises(
        InputError, match=r"parameters Ra=1000\.0, L=1e-308 on this grid cause an error"
    ) as caught:
        _ = Problem("cavity-2d", [CELLS], {"Ra": 1e3, "L": 1e-308}).program
    assert isinstance(caught.value.__cause__, ArithmeticError)


def test_a_run_from_a_steady_state_has_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["run", "cavity-2d", "--n", "8", "--threads", "1", "--set", "tolerance=1e20", "--json", "-"]) == 0
    )
    output = capsys.readouterr()
    record = json.loads(output.out)
    assert (record["steps"], record["ns_per_cell_step"]) == (0, None)
    assert "the run begins at time 0, and the run is already steady at this time" in output.err
