"""NVRTC compiles the kernels of every program, for architectures that are not at hand.

The programs are those of the solvers, cases and examples, and bitwise_programs in both precisions. What a
thread takes is printed and recorded: registers, and bytes spilled; none are but where SPILLED says so.

`make test` takes every program that is not ALIKE another one, as a run has it by default, for sm_70, sm_80
and sm_90 in turn: all are given the same text, so that what one rejects in a program it rejects in its
neighbours in the list too. All strategies are compiled for two programs, one of which has stages, and version
13 of NVRTC compiles one program for both of its architectures. That is half a minute of one core;
`make test-full` takes the whole product: every program by every strategy, by version 12 for all three
architectures and by version 13 for the two that it knows.
"""

from __future__ import annotations

from typing import Any

import pytest

import bitwise_programs
from halocline.compile import nvrtc
from halocline.compile.strategy import Strategy
from halocline.errors import CompileError
from halocline.run.tuning import kernels
from halocline.solvers.schemes import SCHEMES
from loops import some
from nvrtc_kernels import ARCHITECTURES, PROGRAMS, STRATEGIES, check, version_13

# -- programs ----------------------------------------------------------------------------------------


# What is the same as another one, as kernels of many cases are, or much the same: a scheme with a wider
# stencil, a problem in the other precision, programs that differ in a constant, and those with the kernels of
# another one along more axes (rj2a, euler_1d, cavity-2d) or with more terms (mhd-benchmark).
ALIKE = {
    "example-l_shape",
    "example-euler_2d",
    "example-sedov",
    "case-blast",
    "case-orszag-tang",
    "case-cavity",
}
ALIKE |= {"case-convection", "case-helical-turbulence"}
ALIKE |= {f"case-{name}" for name in ("linear-wave", "rj4a", "brio-wu", "rotor", "field-loop", "cp-alfven")}
ALIKE |= {f"heat-{scheme}-6-{dim}" for scheme in SCHEMES if scheme != "rk3" for dim in (1, 2, 3)}
ALIKE |= {f"{p.__name__}-float32" for p in bitwise_programs.PROBLEMS} - {
    "fluxes-float32",
    "gray_scott-float32",
}

# not in step with the dimensions, of which there are three too
SHORT = [(name, ARCHITECTURES[12][(n + n // 3) % 3]) for n, name in enumerate(PROGRAMS) if name not in ALIKE]


# -- NVRTC -------------------------------------------------------------------------------------------


@pytest.fixture
def newer(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 13 of NVRTC is the one that is found."""
    monkeypatch.setenv("HALOCLINE_NVRTC", str(version_13(tmp_path_factory.getbasetemp() / "nvrtc-13")))


@pytest.mark.parametrize(("name", "architecture"), SHORT)
def test_every_program(name: str, architecture: str, record_property: Any) -> None:
    check(name, ["default"], [architecture], record_property)


@pytest.mark.parametrize("name", ["heat-rk3-6-3", pytest.param("fluxes-float64", marks=pytest.mark.long)])
def test_every_strategy(name: str, record_property: Any) -> None:
    for n, strategy in some(enumerate(STRATEGIES)):
        check(name, [strategy], [ARCHITECTURES[12][n % 3]], record_property)


def test_strategies_are_all_that_a_measurement_tries() -> None:
    """But for groups and marches."""

    def kind(strategy: Strategy) -> tuple[Any, ...]:
        return strategy.reads, strategy.stages, strategy.unroll > 1, strategy.resident > 0

    tried = {kind(strategy) for ndim in (1, 2, 3) for strategy in kernels.strategies(ndim, staged=True)}
    assert tried <= set(map(kind, STRATEGIES.values()))


@pytest.mark.usefixtures("newer")
def test_version_13_beside_version_12(record_property: Any) -> None:
    assert nvrtc.find_nvrtc().version[0] == 13
    check("heat-rk3-6-3", ["default"], ARCHITECTURES[13], record_property)
    with pytest.raises(CompileError, match="sm_70"):
        nvrtc.compile_cuda("", "sm_70")
