"""Kernels of many programs, compiled by NVRTC."""

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
from halocline.lang.grid import Grid
from halocline.lang.program import Program
from halocline.problems.files import case_names
from halocline.problems.problem import Problem
from halocline.run.engine import prepare
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


def of_case(name: str, n: Sequence[int] = (8,), *settings: Any, **options: Any) -> Callable[[Take], None]:
    def make(take: Take) -> None:
        case = Problem(name, n, *settings, **options)
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
    **{f"heat-{scheme}-{order}-{dim}": of_case("heat", [32] * dim, scheme=scheme, order=order)
       for scheme in SCHEMES for order in (2, 6) for dim in (1, 2, 3)},
    **{f"wave-{dim}": of_case("wave", [32] * dim) for dim in (1, 2, 3)},
    **{f"poisson-{method}-{dim}": of_case("poisson", [32] * dim, {"method": method})
       for method in ("cg", "cg-fused") for dim in (1, 2, 3)},
    **{f"case-{name}": of_case(name) for name in case_names()},
    **{f"example-{name}": of_run(functools.partial(example, name)) for name in example_runs.CASES},
    **{f"{problem.__name__}-{dtype}": of_run(functools.partial(problem, dtype))
       for problem in bitwise_programs.PROBLEMS for dtype in bitwise_programs.DTYPES},
    "many-fields": of_run(lambda: many_fields.sum_of_fields(30, "cpu").run(steps=1)),
}  # fmt: skip

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
