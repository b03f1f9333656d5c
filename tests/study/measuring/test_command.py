"""Measurements that run the command."""

from __future__ import annotations

import pytest

from halocline.errors import InputError, RunError
from halocline.study.layout import Layout
from halocline.study.measuring import command
from halocline.study.measuring.command import Command, measure


def test_measure_raises_the_error_of_the_command():
    with pytest.raises(InputError, match=r"rtol is -1\b.*above 0") as raised:
        measure(Command("run", "poisson", {}, ("rtol=-1.0",)), 8, Layout(1, 1))
    assert "Traceback" not in str(raised.value)
    assert str(raised.value).startswith("halocline run poisson --n 8")
    assert issubclass(InputError, Exception)
    assert not issubclass(InputError, RunError)


def test_a_record_of_an_older_version_gets_the_options_of_its_run(monkeypatch):
    """An older Halocline may omit the cut in its record; the record of this version has the selected cut."""
    record = {"seconds": 1.0, "devices": [], "ranks": 2, "threads": 1, "shape": [8, 8]}
    case = Command("run", "poisson", {"decomposition": "1d-x", "halo": "uniform", "steps": 9})
    options = {"decomposition": "1d-x", "patch": None, "halo": "uniform"}
    for recorded in ({}, {"decomposition": [2, 1], "patch": [4, 8]}):
        monkeypatch.setattr(command, "_run", lambda *_, recorded=recorded: record | recorded)
        result = measure(case, 8, Layout(2, 1))
        assert {name: result[name] for name in options} == options | recorded


def test_runs_of_an_mpi_library_have_its_variable(monkeypatch):
    monkeypatch.setenv("HALOCLINE_MPI", "/opt/libmpi.so.40")
    case = Command("run", "heat")
    assert case.variables()["HALOCLINE_MPI"] == "/opt/libmpi.so.40"
    assert case.with_options(mpi="package").variables()["HALOCLINE_MPI"] == "package"
