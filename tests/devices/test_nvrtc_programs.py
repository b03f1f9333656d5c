"""NVRTC compiles the kernels of every program, for architectures that are not at hand.

The programs are those of the solvers, cases and examples, and bitwise_programs in both precisions. What a
thread takes is printed and recorded: registers, and bytes spilled; none are but where SPILLED says so.

`make test` takes every program that is not ALIKE another one, as a run has it by default, for sm_70, sm_80
and sm_90 in turn: all are given the same text, so that what one rejects in a program it rejects in its
neighbours in the list too. All strategies are compiled for two programs, one of which has stages, and version
13 of NVRTC compiles one program for both of its architectures. That is a minute of one core; `make test-full`
takes the whole product: every program by every strategy, by version 12 for all three architectures and by
version 13 for the two that it knows.
"""

from __future__ import annotations

import functools
import math
import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import bitwise_programs
import example_runs
import many_fields
from halocline.compile import nvrtc
from halocline.compile.compiler import compile_program
from halocline.compile.strategy import READS, Strategy
from halocline.errors import CompileError
from halocline.lang.grid import Grid
from halocline.lang.program import Program
from halocline.physics.heat import Heat
from halocline.physics.poisson import Poisson
from halocline.physics.wave import Wave
from halocline.problems.files import case_names
from halocline.problems.problem import Problem
from halocline.run.engine import prepare
from halocline.run.tuning import kernels
from halocline.solvers.schemes import SCHEMES
from hang import HANG

ARCHITECTURES = {12: ("sm_70", "sm_80", "sm_90"), 13: ("sm_80", "sm_90")}  # by NVRTC's version
NEWER = "nvidia-cuda-nvrtc==13.5.37"  # version 12 is what requirements.lock says

# As in halocline.run.tuning.kernels, which varies groups and marches of these too.
STRATEGIES = {
    "default": Strategy(),
    "direct": Strategy("direct"),
    "planes": Strategy("planes"),
    "unrolled": Strategy(unroll=4),
    "resident": Strategy(resident=4),
    **{f"memory-{reads}": Strategy(reads, stages="memory") for reads in READS},
}

Take = Callable[[Program, Grid], None]


# -- programs ----------------------------------------------------------------------------------------


def of_solver(equations: Any, dim: int, *arguments: Any) -> Callable[[Take], None]:
    def make(take: Take) -> None:
        case = equations.on(32, dim)
        take(case.program(*arguments), case.grid)

    return make


def of_case(name: str) -> Callable[[Take], None]:
    def make(take: Take) -> None:
        case = Problem(name, [8])
        take(case.program, case.grid)

    return make


def of_run(run: Callable[[], object]) -> Callable[[Take], None]:
    """The programs that are compiled while something runs, on the CPU."""

    def make(take: Take) -> None:
        def noticed(program: Program, grid: Grid, **how: Any) -> Any:
            take(program, grid)
            return compile_program(program, grid, **how)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prepare, "compile_program", noticed)
            run()

    return make


def example(name: str) -> None:
    path = example_runs.EXAMPLES / f"{name}.py"
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as out:
        patch.setenv("HALOCLINE_OUT", out)
        patch.setattr(sys, "argv", [str(path), *example_runs.CASES[name][0]])
        patch.syspath_prepend(str(path.parent))
        runpy.run_path(str(path), run_name="__main__")


PROGRAMS: dict[str, Callable[[Take], None]] = {
    **{f"heat-{scheme}-{order}-{dim}": of_solver(Heat, dim, scheme, order)
       for scheme in SCHEMES for order in (2, 6) for dim in (1, 2, 3)},
    **{f"wave-{dim}": of_solver(Wave, dim) for dim in (1, 2, 3)},
    **{f"poisson-{method}-{dim}": of_solver(Poisson, dim, method)
       for method in ("cg", "cg-fused") for dim in (1, 2, 3)},
    **{f"case-{name}": of_case(name) for name in case_names()},
    **{f"example-{name}": of_run(functools.partial(example, name)) for name in example_runs.CASES},
    **{f"{problem.__name__}-{dtype}": of_run(functools.partial(problem, dtype))
       for problem in bitwise_programs.PROBLEMS for dtype in bitwise_programs.DTYPES},
    "many-fields": of_run(lambda: many_fields.sum_of_fields(30, "cpu").run(steps=1)),
}  # fmt: skip

# What is the same as another one, as kernels of many cases are, or much the same: a scheme with a wider
# stencil, a problem in the other precision, programs that differ in a constant. Blast has the kernels of
# orszag-tang along one more axis.
ALIKE = {"example-l_shape", "case-blast"}
ALIKE |= {f"case-{name}" for name in ("linear-wave", "rj4a", "brio-wu", "rotor", "field-loop", "cp-alfven")}
ALIKE |= {f"heat-{scheme}-6-{dim}" for scheme in SCHEMES if scheme != "rk3" for dim in (1, 2, 3)}
ALIKE |= {f"{p.__name__}-float32" for p in bitwise_programs.PROBLEMS} - {
    "fluxes-float32",
    "gray_scott-float32",
}

# not in step with the dimensions, of which there are three too
SHORT = [(name, ARCHITECTURES[12][(n + n // 3) % 3]) for n, name in enumerate(PROGRAMS) if name not in ALIKE]

# The most bytes that a kernel spills, by default and by other strategies, with a tenth to spare: right-hand
# sides of magnetohydrodynamics have more values at once than a thread has registers. Others spill none,
# but a few bytes where a group shares planes, on sm_70.
SPILLED: dict[str, dict[str, int]] = {
    "case-mhd-benchmark": {"default": 340, "direct": 340, "planes": 330, "unrolled": 6500},
    "case-helical-turbulence": {"default": 270, "direct": 270, "planes": 175, "unrolled": 4350},
    "case-orszag-tang-resistive": {"default": 120, "direct": 120, "planes": 140, "unrolled": 710},
    "case-convection": {"default": 200, "direct": 200, "planes": 70, "unrolled": 2250},
    **{
        f"case-{name}": {"default": 210, "direct": 210, "planes": 210, "unrolled": 690}
        for name in ("orszag-tang", "rotor", "field-loop", "cp-alfven")
    },
    "case-blast": {"default": 210, "direct": 210, "planes": 210, "unrolled": 2000},
    "case-cavity": {"unrolled": 53},
    "many-fields": {"unrolled": 340},  # 30 addresses for each of four cells
}


def may_spill(name: str, strategy: str) -> float:
    """Bytes. Where more groups are to be resident than there are registers for, spilling is what it costs."""
    if strategy == "resident":
        return math.inf
    reads = "default" if strategy == "memory-queue" else strategy.removeprefix("memory-")
    return SPILLED.get(name, {}).get(reads, 50 if reads == "planes" else 0)


@functools.cache
def sources(name: str, strategies: tuple[str, ...]) -> list[dict[str, str]]:
    """The kernels of each program of that name, by strategy."""
    found: dict[str, dict[str, str]] = {}

    def take(program: Program, grid: Grid) -> None:
        texts = {}
        for strategy in strategies:
            device = compile_program(program, grid, device=STRATEGIES[strategy]).device
            assert device is not None
            texts[strategy] = device.source
        found.setdefault(texts[strategies[0]], texts)

    PROGRAMS[name](take)
    assert found
    return list(found.values())


# -- NVRTC -------------------------------------------------------------------------------------------


@pytest.fixture
def newer(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 13 of NVRTC is the one that is found."""
    monkeypatch.setenv("HALOCLINE_NVRTC", str(version_13(tmp_path_factory.getbasetemp() / "nvrtc-13")))


@functools.cache
def version_13(folder: Path) -> Path:
    """Its library, which pip fetches. Tests are skipped where it cannot, or fail where HALOCLINE_TEST_NVRTC
    is "required"."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), NEWER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    if done.returncode != 0:
        why = f"{NEWER} cannot be installed: {done.stderr[-200:]}"
        if os.environ.get("HALOCLINE_TEST_NVRTC") == "required":
            pytest.fail(why)
        pytest.skip(why)
    (library,) = folder.rglob("libnvrtc.so.13")
    return library


def check(name: str, strategies: Sequence[str], architectures: Sequence[str], record: Any) -> None:
    """NVRTC takes all kernels without a word of doubt, and none spills more than it may."""
    for texts in sources(name, tuple(strategies)):
        for strategy, source in texts.items():
            for architecture in architectures:
                code = nvrtc.compile_cuda(source, architecture)
                log = code.with_suffix(".log").read_text().lower()
                doubts = [line for line in log.splitlines() if "warning" in line or "error" in line]
                assert [line for line in doubts if "deprecated and may be removed" not in line] == []
                told = nvrtc.resources(code)
                assert len(told) == len(re.findall(r"^HC_KERNEL", source, re.MULTILINE))
                for kernel, taken in told.items():
                    what = f"{strategy} {architecture} {kernel}"
                    print(f"{what}: {taken.registers} registers, {taken.spilled} bytes spilled")
                    record(what, f"{taken.registers} registers, {taken.spilled} bytes spilled")
                    assert taken.spilled <= may_spill(name, strategy), (name, what)


@pytest.mark.parametrize(("name", "architecture"), SHORT)
def test_every_program(name: str, architecture: str, record_property: Any) -> None:
    check(name, ["default"], [architecture], record_property)


@pytest.mark.parametrize("name", ["heat-rk3-6-3", pytest.param("fluxes-float64", marks=pytest.mark.long)])
def test_every_strategy(name: str, record_property: Any) -> None:
    for n, strategy in enumerate(STRATEGIES):
        check(name, [strategy], [ARCHITECTURES[12][n % 3]], record_property)


def test_strategies_are_all_that_a_measurement_tries() -> None:
    """But for groups and marches."""

    def kind(strategy: Strategy) -> tuple[Any, ...]:
        return strategy.reads, strategy.stages, strategy.unroll > 1, strategy.resident > 0

    tried = {kind(strategy) for ndim in (1, 2, 3) for strategy in kernels.strategies(ndim, staged=True)}
    assert tried <= set(map(kind, STRATEGIES.values()))


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_by_every_strategy(name: str, record_property: Any) -> None:
    check(name, list(STRATEGIES), ARCHITECTURES[12], record_property)


@pytest.mark.usefixtures("newer")
def test_version_13_beside_version_12(record_property: Any) -> None:
    assert nvrtc.find_nvrtc().version[0] == 13
    check("heat-rk3-6-3", ["default"], ARCHITECTURES[13], record_property)
    with pytest.raises(CompileError, match="sm_70"):
        nvrtc.compile_cuda("", "sm_70")


@pytest.mark.long
@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_with_version_13(name: str, record_property: Any) -> None:
    check(name, list(STRATEGIES), ARCHITECTURES[13], record_property)
