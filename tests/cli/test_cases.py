"""Lists and descriptions of cases on the command line."""

from __future__ import annotations

import json
import re

import pytest

from halocline.cli.cases import cases as show
from halocline.problems.files import case_names
from halocline.problems.problem import Problem
from halocline.run.simulation.settings import Setting
from loops import some


@pytest.fixture(scope="module")
def problems() -> dict[str, Problem]:
    """Return the problem of each case."""
    return {name: Problem(name) for name in case_names()}


def test_every_case_documents_its_parameters(problems: dict[str, Problem]):
    assert len(case_names()) > 20
    for name, problem in some(problems.items()):
        assert problem.script.about.endswith("."), name
        assert problem.script.origin, name
        assert problem.declared, name
        for key, parameter in some(problem.declared.items()):
            assert parameter.unit, (name, key)
            assert parameter.about, (name, key)
            assert parameter.origin, (name, key)


def test_defaults_lie_in_the_documented_ranges(problems: dict[str, Problem]):
    count = 0
    for name, problem in problems.items():
        for key, parameter in problem.declared.items():
            parameter.check(f"{key} of {name}", parameter.default)
            count += 1
    assert count > 100
    assert Setting(1, "1", "", minimum=0, maximum=9, whole=True).range == "a whole number from 0 to 9"
    assert Setting(1.0, "1", "", above=1.0).range == "a number above 1"
    assert Setting(1.0, "1", "", minimum=0.0).range == "a number from 0 on"
    assert Setting(1.0, "1", "").range == "a number"


def test_the_command_prints_ranges(capsys: pytest.CaptureFixture[str]):
    show("alfven-decay", None)
    assert re.search(r"mu0 +1 +number above 0 +field² length time²/mass", capsys.readouterr().out)
    show("helical-turbulence", None)
    page = capsys.readouterr().out
    assert re.search(r"nu +0.005 .* kinematic viscosity\n", page)
    assert re.search(r"  Pencil Code, samples/helical-MHDturb: .*\bnu\b", page)
    assert re.search(r"  0, which disables the term: .*\bzeta\b", page)
    assert re.search(r"  chosen here: .*\bseed_field\b", page)
    show("helical-turbulence", "-")
    parameters = json.loads(capsys.readouterr().out)["parameters"]
    assert (parameters["seed"]["least"], parameters["seed"]["whole"], parameters["seed"]["above"]) == (
        0,
        True,
        None,
    )
    assert parameters["cs0"]["above"] == 0.0
    assert parameters["cs0"]["origin"] == "the unit"
