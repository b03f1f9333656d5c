"""Compilation of the kernels of a problem for other machines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from halocline.compile.compiler import compile_program
from halocline.compile.cxx import LEVEL
from halocline.compile.driver import collected_sources, compile_library
from halocline.compile.nvrtc import compile_cuda
from halocline.compile.processor import LEVELS, NATIVE
from halocline.compile.strategy import TILE_BYTES, Strategy
from halocline.compile.targets.source import with_literal_layouts, with_shared_layouts
from halocline.errors import InputError
from halocline.plan.launches import has_literal_layouts, literal_extents
from halocline.plan.rank import plan_subdomain
from halocline.plan.transfer import ON_DEVICES, Transfers
from halocline.problems.problem import Problem
from halocline.run.devices.devices import storage_layout
from halocline.run.domain.execution import Execution
from halocline.run.fields.pointwise import compiled_always
from halocline.run.host.process import environment


def is_cuda(target: str) -> bool:
    """Return True if a target is the architecture of CUDA devices, such as sm_90."""
    return re.fullmatch(r"sm_\d+", target) is not None


def check_target(target: str) -> None:
    """Raise InputError if kernels cannot be compiled for a target on this machine."""
    machine = os.uname().machine
    accepted = [NATIVE, *(name for name, level in LEVELS.items() if level.machine == machine)]
    if target not in accepted and not is_cuda(target):
        raise InputError(
            f"target {target!r} is unknown on this machine; expected {', '.join(accepted)}, or the "
            "architecture of a CUDA device, such as sm_90"
        )


def cpu_sources(problem: Problem) -> list[str]:
    """Run one step of a problem, and return the sources of all kernels for the CPU.

    They include the kernels that evaluate initial values and reductions, which a small problem does not
    compile.
    """
    with environment({LEVEL: "g"}), compiled_always(), collected_sources() as sources:
        problem.run(steps=1, threads=1)
    return list(sources)


def cuda_source(problem: Problem, ranks: int = 1) -> str:
    """Return the source of the kernels of a step for a CUDA device, of which each rank has one.

    The source is that of the first rank. Other ranks use the same source if their subdomains have the same
    shape.
    """
    schedule = compile_program(problem.program, problem.grid, device=Strategy(), shared=TILE_BYTES)
    assert schedule.device is not None
    layout = Execution().layout(schedule, problem.grid, ranks)
    plan = plan_subdomain(schedule, Transfers(layout, ON_DEVICES), 0)
    layouts = [storage_layout(field) for field in plan.fields]
    if has_literal_layouts(schedule, [plan]):
        return with_literal_layouts(schedule.device.source, layouts, literal_extents([plan]))
    return with_shared_layouts(schedule.device.source, [(layout,) for layout in layouts])


def compile_for(problem: Problem, targets: list[str], ranks: int = 1) -> Iterator[tuple[str, list[Path]]]:
    """Compile the kernels of a problem, and yield each target with its files in the cache.

    Parameters
    ----------
    problem : Problem
        For CPU targets, one step of it runs in this process. The kernels of a step do not depend on the
        number of cells, but the kernels of initial values may contain numbers of the grid.
    targets : list of str
        "native", a level of instruction sets, or the architecture of CUDA devices, such as "sm_90". Only the
        kernels of a step are compiled for CUDA devices, with the default decomposition. Large problems have
        kernels for one number of cells.
    ranks : int
        Number of ranks that later run the problem on CUDA devices.

    Raises
    ------
    InputError
        A target is unknown.
    CompileError
        A compiler is missing, or the cache cannot be written.
    """
    for target in targets:
        check_target(target)
    sources = cpu_sources(problem) if not all(map(is_cuda, targets)) else []
    for target in targets:
        if is_cuda(target):
            yield target, [compile_cuda(cuda_source(problem, ranks), target)]
        else:
            yield (
                target,
                [
                    compile_library(source, streaming=streaming, target=target)
                    for source in sources
                    for streaming in (False, True)
                ],
            )
