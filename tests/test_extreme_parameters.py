"""Parameters of cases at the ends of their ranges: each gives a problem or one InputError."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator

import pytest

from halocline.cli.app import run
from halocline.errors import InputError
from halocline.physics.case import Setup
from halocline.physics.cases import cases
from halocline.problems.case import CaseRun
from halocline.problems.linear import LinearCase
from halocline.problems.named import case_run

SIZES = (1e-308, 1e-160, 1e20, 1e160, 1e308)
CELLS = 8


def extreme_values(name: str) -> Iterator[tuple[str, float]]:
    """Yield the parameters of a case with extreme values that they accept by themselves."""
    for parameter, own in cases()[name].parameters.items():
        for value in (*SIZES, *(-size for size in SIZES)):
            if not own.words:
                try:
                    own.check(parameter, value)
                except InputError:
                    continue
                yield parameter, value


@pytest.mark.parametrize("name", list(cases()))
def test_an_extreme_parameter_gives_a_problem_or_an_input_error(name: str) -> None:
    built = rejected = 0
    for parameter, value in extreme_values(name):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                ready = case_run(name, [CELLS], {parameter: value})
            except InputError:
                rejected += 1
                continue
        built += 1
        if isinstance(ready, LinearCase):
            continue
        assert isinstance(ready.setup, Setup)
        assert all(map(math.isfinite, ready.setup.numbers.values())), (parameter, value)
    assert built
    assert rejected + built >= len(cases()[name].parameters) / 2


def test_the_error_names_the_parameters_that_were_changed() -> None:
    with pytest.raises(
        InputError, match=r"parameters Ra=1000\.0, L=1e-308 on this grid lead to an error"
    ) as caught:
        CaseRun("cavity-2d", [CELLS], {"Ra": 1e3, "L": 1e-308})
    assert isinstance(caught.value.__cause__, ArithmeticError)


def test_a_run_that_is_steady_at_the_start_has_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["run", "cavity-2d", "--n", "8", "--threads", "1", "--set", "tolerance=1e20", "--json", "-"]) == 0
    )
    shown = capsys.readouterr()
    record = json.loads(shown.out)
    assert (record["steps"], record["ns_per_cell_step"]) == (0, None)
    assert "the run begins at time 0, and it is steady there, which is its end" in shown.err
