"""Floating-point instructions of the kernels in the runs of a study."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from halocline.compile.compiler import compile_program
from halocline.problems.problem import problem_of
from halocline.run.host.process import environment
from halocline.run.measurements.instructions import DISASSEMBLER, instructions_of
from halocline.study.measurement import Measurement

if TYPE_CHECKING:
    from halocline.study.study import Run

OPTIONS = ("dim", "order", "scheme", "dtype")  # options of a command that influence the generated source


def with_instructions(runs: Sequence[Run], measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements with `instructions`, the floating-point instructions per cell and step.

    The kernel library of a run depends on its problem, order, scheme, data type, compiler and environment.
    Without a disassembler, `instructions` is None. It is also None for a file without settings, because the
    program of such a file exists only while the file runs.
    """
    has_disassembler = shutil.which(DISASSEMBLER) is not None
    sources: dict[Any, str | None] = {}
    results = []
    for run, measurement in zip(runs, measurements, strict=True):
        key = run.size_option, run.command.settings, *(getattr(run.command, name) for name in OPTIONS)
        if key not in sources:
            sources[key] = _source(run)
        source, instructions = sources[key], None
        if source is not None and has_disassembler:
            with environment(run.command.environment):
                instructions = instructions_of(source, measurement["shape"][-1])
        results.append({**measurement, "instructions": instructions and asdict(instructions)})
    return results


def _source(run: Run) -> str | None:
    """Return the generated source of a run; None for a file without settings."""
    command = run.command
    options = {name: getattr(command, name) for name in OPTIONS}
    problem = problem_of(command.name, run.shape, command.settings, **options)
    return compile_program(problem.program, problem.grid).source if problem.has_settings else None
