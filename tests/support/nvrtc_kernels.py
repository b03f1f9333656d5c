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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bitwise_programs
import example_runs
import many_fields
from halocline.compile import nvrtc
from halocline.compile.compiler import compile_program
from halocline.compile.schedule import Schedule
from halocline.compile.strategy import READS, Strategy, block_splits
from halocline.compile.targets.source import with_literal_layouts, with_shared_layouts
from halocline.lang.grid import Grid
from halocline.lang.program import Program
from halocline.plan.decompose import decompose
from halocline.plan.launches import literal_extents
from halocline.plan.layout import Layout
from halocline.plan.rank import plan_subdomain
from halocline.plan.transfer import ON_DEVICES, Transfers
from halocline.problems.files import case_names
from halocline.problems.problem import Problem
from halocline.run.devices.devices import storage_layout
from halocline.run.engine import prepare
from halocline.solvers.schemes import SCHEMES
from hang import HANG

ARCHITECTURES = {12: ("sm_70", "sm_80", "sm_90"), 13: ("sm_80", "sm_90")}  # by NVRTC's version
NEWER = "nvidia-cuda-nvrtc==13.5.37"  # requirements.lock has version 12


def _with_stages_in_memory(reads: str, _: int) -> Strategy:
    return Strategy(reads, stages="memory")


# Default strategy, with the layouts of fields and the strides of scratch arrays as literals (large grids).
LITERALS = "literals"

# The strategies of halocline.run.tuning.kernels by the number of axes, which also varies their thread blocks
# and streaming.
STRATEGIES: dict[str, Callable[[int], Strategy]] = {
    "default": lambda _: Strategy(),
    "direct": lambda _: Strategy("direct"),
    "planes": lambda _: Strategy("planes"),
    "vectors": lambda ndim: Strategy("queue", block_splits(ndim, (32, 4), rows=2, cells=4)),
    "vectors-planes": lambda ndim: Strategy("planes", block_splits(ndim, (32, 4), cells=4)),
    "resident": lambda _: Strategy(resident_blocks=4),
    **{f"memory-{reads}": partial(_with_stages_in_memory, reads) for reads in READS},
}

Take = Callable[[Program, Grid], None]


# -- programs ----------------------------------------------------------------------------------------


def trace_case(name: str, n: Sequence[int] = (8,), *settings: Any, **options: Any) -> Callable[[Take], None]:
    """Return a function that calls `take` for the program of a case."""

    def make(take: Take) -> None:
        case = Problem(name, n, *settings, **options)
        take(case.program, case.grid)

    return make


def trace_run(run: Callable[[], object]) -> Callable[[Take], None]:
    """Return a function that calls `take` for each program that is compiled during a run on the CPU."""

    def make(take: Take) -> None:
        def compile_and_record(program: Program, grid: Grid, **options: Any) -> Any:
            take(program, grid)
            return compile_program(program, grid, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prepare, "compile_program", compile_and_record)
            run()

    return make


def example(name: str) -> None:
    """Run an example with arguments that make it small."""
    path = example_runs.EXAMPLES / f"{name}.py"
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as out:
        patch.setenv("HALOCLINE_OUT", out)
        patch.setattr(sys, "argv", [str(path), *example_runs.CASES[name][0]])
        patch.syspath_prepend(str(path.parent))
        runpy.run_path(str(path), run_name="__main__")


PROGRAMS: dict[str, Callable[[Take], None]] = {
    **{f"heat-{scheme}-{order}-{dim}": trace_case("heat", [32] * dim, scheme=scheme, order=order)
       for scheme in SCHEMES for order in (2, 6) for dim in (1, 2, 3)},
    **{f"wave-{dim}": trace_case("wave", [32] * dim) for dim in (1, 2, 3)},
    **{f"poisson-{method}-{dim}": trace_case("poisson", [32] * dim, {"method": method})
       for method in ("cg", "cg-fused") for dim in (1, 2, 3)},
    **{f"case-{name}": trace_case(name) for name in case_names()},
    **{f"example-{name}": trace_run(functools.partial(example, name)) for name in example_runs.BITWISE},
    **{f"{problem.__name__}-{dtype}": trace_run(functools.partial(problem, dtype))
       for problem in bitwise_programs.PROBLEMS for dtype in bitwise_programs.DTYPES},
    "many-fields": trace_run(lambda: many_fields.sum_of_fields(30, "cpu").run(steps=1)),
}  # fmt: skip

# Maximum bytes that a kernel spills, for the default and for other strategies, with a reserve of a tenth. All
# other kernels spill none, except for a few bytes on sm_70 with shared-memory tiles.
ALL = ("default", "direct", "planes", "memory-queue", LITERALS)
SPILLED: dict[str, dict[str, int]] = {
    "case-mhd-benchmark": {LITERALS: 22, "planes": 49, "vectors": 5},
    "case-helical-turbulence": {"planes": 14},
    "case-convection": {LITERALS: 13, "planes": 5},
    "case-blast": dict.fromkeys(ALL, 5),
    "case-cavity": {"vectors": 9},
    "case-shock-tube": dict.fromkeys(ALL, 14),
    **{f"case-{name}": dict.fromkeys(ALL, 9) for name in ("brio-wu", "rj2a", "rj4a")},
}


def may_spill(name: str, strategy: str) -> float:
    """Return the allowed spill of a kernel in bytes.

    The strategy `resident` has no limit: it requests more thread blocks than fit without spills.
    """
    if strategy == "resident":
        return math.inf
    limits = SPILLED.get(name, {})
    if strategy in limits:
        return limits[strategy]
    if strategy.startswith("vectors"):  # kernels that a thread computes cell by cell spill as in other blocks
        strategy = strategy.removeprefix("vectors-").replace("vectors", "default")
    reads = "default" if strategy == "memory-queue" else strategy.removeprefix("memory-")
    return limits.get(strategy, limits.get(reads, 50 if reads == "planes" else 0))


@functools.cache
def sources(name: str, strategies: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the kernels of each program of that name, by strategy."""
    by_first_source: dict[str, dict[str, str]] = {}

    def take(program: Program, grid: Grid) -> None:
        texts = {}
        for strategy in strategies:
            choice = STRATEGIES.get(strategy, STRATEGIES["default"])(grid.ndim)
            schedule = compile_program(program, grid, device=choice)
            assert schedule.device is not None
            texts[strategy] = _source(schedule, grid, literals=strategy == LITERALS)
        by_first_source.setdefault(texts[strategies[0]], texts)

    PROGRAMS[name](take)
    assert by_first_source
    return list(by_first_source.values())


def each_source(name: str, strategies: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the strategies of each program of that name, with the source of its kernels."""
    for texts in sources(name, tuple(strategies)):
        yield from texts.items()


def _source(schedule: Schedule, grid: Grid, *, literals: bool) -> str:
    """Return the text that a device of a run compiles, with layouts as literals or as arguments."""
    shape = (256,) * grid.ndim if grid.blocks is None else grid.shape
    cut = decompose(shape, 1, periodic=grid.periodic)
    plan = plan_subdomain(schedule, Transfers(Layout.of(cut), ON_DEVICES), 0)
    layouts = [storage_layout(field) for field in plan.fields]
    assert schedule.device is not None
    source = schedule.device.source
    if literals:
        return with_literal_layouts(source, layouts, literal_extents([plan]))
    return with_shared_layouts(source, layouts)


# -- NVRTC -------------------------------------------------------------------------------------------


@functools.cache
def version_13(folder: Path) -> Path:
    """Return the library of NVRTC 13, installed by pip.

    If the installation fails, tests are skipped, or fail if HALOCLINE_TEST_NVRTC is "required".
    """
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), NEWER]
    process = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    if process.returncode != 0:
        message = f"{NEWER} cannot be installed: {process.stderr[-200:]}"
        if os.environ.get("HALOCLINE_TEST_NVRTC") == "required":
            pytest.fail(message)
        pytest.skip(message)
    (library,) = folder.rglob("libnvrtc.so.13")
    return library


def check(name: str, strategies: Sequence[str], architectures: Sequence[str], record: Any) -> None:
    """Check that NVRTC compiles all kernels without warnings, and that none spills more than allowed.

    The kernels of a program are compiled together, as devices of a run do it.
    """
    for strategy, source in each_source(name, strategies):
        for architecture in architectures:
            _check_code(name, strategy, source, architecture, record)


def check_each(name: str, strategies: Sequence[str], architectures: Sequence[str], record: Any) -> None:
    """Check as `check` does, but compile each kernel by itself, and equal kernels of several strategies once.

    Most kernels do not depend on the strategy.
    """
    for strategy, source in each_source(name, strategies):
        for architecture in architectures:
            for kernel in each_kernel(source):
                _check_code(name, strategy, kernel, architecture, record)


# The name that a part of a source defines.
DEFINED = re.compile(
    r"HC_FUNCTION \w+ (\w+)\(|^typedef .* (\w+);\n|HC_INVARIANTS\((\w+)|HC_TABLE \w+ (\w+)\[", re.MULTILINE
)
KERNEL = re.compile(r"^HC_KERNEL.*?^}\n", re.MULTILINE | re.DOTALL)


def each_kernel(source: str) -> list[str]:
    """Return a source for each kernel of a source, with the functions and types that it uses."""
    kernels = KERNEL.findall(source)
    assert len(kernels) == len(re.findall(r"^HC_KERNEL", source, re.MULTILINE)) > 0
    first = source.index(kernels[0])
    rest = re.sub(r"^//.*\n", "", source[first:], flags=re.MULTILINE)
    parts = [part for part in re.split(r"\n\n+", KERNEL.sub("\n", rest)) if part.strip()]
    result = []
    for kernel in kernels:
        text = kernel
        for part in reversed(parts):
            defined = DEFINED.search(f"{part}\n")
            assert defined, part[:200]
            if re.search(rf"\b{defined[defined.lastindex or 0]}\b", text):
                text = f"{part}\n{text}"
        result.append(source[:first] + text)
    return result


def _check_code(name: str, strategy: str, source: str, architecture: str, record: Any) -> None:
    code = nvrtc.compile_cuda(source, architecture)
    log = code.with_suffix(".log").read_text().lower()
    doubts = [line for line in log.splitlines() if "warning" in line or "error" in line]
    assert [line for line in doubts if "deprecated and may be removed" not in line] == []
    resources = nvrtc.resources(code)
    assert len(resources) == len(re.findall(r"^HC_KERNEL", source, re.MULTILINE))
    for kernel, usage in resources.items():
        label = f"{strategy} {architecture} {kernel}"
        print(f"{label}: {usage.registers} registers, {usage.spilled} bytes spilled")
        record(label, f"{usage.registers} registers, {usage.spilled} bytes spilled")
        assert usage.spilled <= may_spill(name, strategy), (name, label)
