"""Explanations of runs on devices."""

from __future__ import annotations

from pathlib import Path

import pytest

import halocline as hc
from device_commands import Devices, explanation_on, halocline, heat
from halocline.errors import InputError
from halocline.explanation.explain import explain_program
from halocline.problems.problem import Problem


def test_explain_uses_the_selected_kernels(tmp_path: Path, opencl: Devices):
    result = halocline("explain poisson --n 64 --device opencl:0 --kernels planes", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Strategy of the kernels: planes, " in result.stdout
    assert explanation_on("opencl:0").on.strategy.startswith("queue, ")  # type: ignore[union-attr]
    with pytest.raises(
        InputError, match="kernels is 'tune', but `explain` does not measure kernels; expected 'auto'"
    ):
        explanation_on("opencl:0", kernels="tune")
    sim = heat(device="opencl:0", kernels="tune")  # of a run, the choice without a measurement
    assert hc.explain(sim).on.strategy.startswith("queue, ")  # type: ignore[union-attr]


def test_explain_reports_literal_layouts_and_constant_memory(opencl: Devices) -> None:
    case = Problem("mhd-benchmark", [128])
    explanation = explain_program(case.program, case.grid, device="opencl:0")
    assert explanation.on is not None
    assert [device["literal_layouts"] for device in explanation.on.devices] == [True]
    assert explanation.on.launches["invariants"] == 0  # they do not change during a run
    fills = [kernel for kernel in explanation.on.kernels if kernel["over"] == "invariants"]
    assert [(kernel["sweep"], kernel["launches"], kernel["once"]) for kernel in fills] == [
        (sweep, 1, True)
        for sweep in (1, 2, 3)  # one for each stage of RK3
    ]
    assert "literals" in str(explanation)
    assert str(explanation).count("once per run") == 3


def test_explain_reports_values_in_constant_memory_that_change(opencl: Devices) -> None:
    case = Problem("helical-turbulence", [16])
    explanation = explain_program(case.program, case.grid, device="opencl:0")
    assert explanation.on is not None
    assert explanation.on.launches["invariants"] == 3
    assert "3 for values in constant memory" in str(explanation)
    assert "once per run" not in str(explanation)
