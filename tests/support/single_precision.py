"""Cases in single precision: recorded runs, differences from float64, and double precision in kernels."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from halocline.compile.compiler import compile_program
from halocline.compile.ir import pipeline
from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import POINT, Kernel
from halocline.errors import InputError
from halocline.problems.problem import Problem
from halocline.problems.result import Result
from source import ROOT

Run = dict[str, Any]
RUNS: list[Run] = json.loads((ROOT / "tests" / "data" / "case_runs.json").read_text())["runs"]
DEFAULT = ("heat", "poisson")
SHORT = ("alfven-decay", "heat", "poisson", "wave")  # cases with kernels that compile fast
STEPS = 3

# Maximum difference from float64 after three steps, relative to the maximum of the same field. A field below
# a thousandth of the largest field counts as that thousandth: momentum of a gas nearly at rest is the
# difference of fluxes of the size of the pressure. Measured: at most 8e-5 (linear-wave), with two exceptions.
MOST = 1e-3
MOST_OF = {
    # the scheme decides differently in one cell of 16 x 16; float64 with gamma = 1.3999999 differs as much
    "rotor": 0.03,
    # magnetic stress is 1e-6 of the pressure, of which float32 has seven digits
    "field-loop": 0.03,
}
LEAVES = ("const", "scalar", "invariant", "load")
# Intended double precision at each point: whole numbers of cells, which reductions return; the right-hand
# side of a linear problem, computed from coordinates once per solve; the phase of a random force; distances
# between points of stretched axes, which are differences of coordinates in which float32 would lose digits.
CELL_NUMBER = {"index", "add", "mul", "fma"}
OF_COORDINATES = CELL_NUMBER | {"sub", "div", "sin", "cos"}
MEANT = {"poisson": OF_COORDINATES, "helical-turbulence": OF_COORDINATES}


def recorded(*, long: bool, once: bool = False) -> list[Any]:
    """Return the recorded runs as parameters; with `long` also long kernels, with `once` one run per case.

    The default test suite has the first runs of two cases.
    """
    selected = [run for run in RUNS if long or (run["case"] in SHORT and len(run["n"]) < 3)]
    if once:
        selected = list({run["case"]: run for run in selected}.values())
    first = {run["case"]: run for run in reversed(selected) if run["case"] in DEFAULT}
    return [
        pytest.param(
            run,
            id=f"{run['case']}-{RUNS.index(run)}",
            marks=() if run is first.get(run["case"]) else pytest.mark.long,
        )
        for run in selected
    ]


def problem(run: Run, dtype: str = "float32") -> Problem:
    """Return the problem of a recorded run."""
    return Problem(run["case"], run["n"], run["given"], dtype=dtype, **run["options"])


def check_ways(run: Run, ways: list[dict[str, Any]]) -> int:
    """Check the recorded checksum for the options that fit the grid, and return their number."""
    fitting = 0
    for options in ways:
        try:
            record = problem(run).run(steps=STEPS, **options).record
        except InputError as error:
            if "decomposition" in str(error) or "subdomain" in str(error):
                continue
            raise
        fitting += 1
        assert (record.dtype, record.checksum) == ("float32", run["float32"]), options
    return fitting


def check_ranks(run: Run, ways: list[dict[str, Any]]) -> None:
    """Check the recorded checksum for all options on the ranks of a test.

    If the recorded grid is too small for every option, a larger grid is compared with a run on one rank.
    """
    from mpi4py import MPI

    doubled = 0
    while not check_ways(run, ways):
        doubled += 1
        assert doubled <= 3, run
        run = {**run, "n": [2 * cells for cells in run["n"]]}
        alone = problem(run).run(steps=STEPS, threads=1, communicator=MPI.COMM_SELF)
        run["float32"] = alone.record.checksum


def check_difference(run: Run) -> None:
    """Check that a run differs from the float64 run by no more than single precision explains."""
    precisions = [
        _fields(problem(run, dtype).run(steps=STEPS, threads=1)) for dtype in ("float64", "float32")
    ]
    least = 1e-3 * max(np.abs(values).max() for values in precisions[0].values())
    for name, values in precisions[1].items():
        assert values.dtype == np.float32, name
        reference = precisions[0][name]
        difference = np.abs(values - reference).max() / max(np.abs(reference).max(), least)
        assert difference < MOST_OF.get(run["case"], MOST), (name, difference)


def _fields(result: Result) -> dict[str, Any]:
    fields = result.problem if hasattr(result.problem, "gather") else result.problem.fields
    return {f.name: fields.gather(f) for f in result.fields}


def check_kernels(run: Run) -> None:
    """Check that no kernel of a step computes in float64 at each point, except for intended operations."""
    case = problem(run)
    with pipeline.recorded() as trail:
        compile_program(case.program, case.grid)
    kernels = [kernel for name, kernel in trail if name == "translate" and kernel.ndim]
    assert kernels
    stretched = run["given"].get("gathered")
    allowed = OF_COORDINATES if stretched else MEANT.get(run["case"], CELL_NUMBER)
    for kernel in kernels:
        arrays = {array.dtype for array in kernel.arrays}
        assert arrays <= {"float32"}, kernel.comment
        assert set(float64_operations(kernel)) <= allowed, kernel.comment


def float64_operations(kernel: Kernel) -> Counter[str]:
    """Return the operations of float64 that a kernel executes at each point.

    The choice between two numbers of cells in a reduction does not count.
    """
    visited: set[int] = set()
    numbers = [n for s in ir.flat(kernel.body) for n in ir.roots((s,))]
    reduced = {s.value for s in ir.flat(kernel.body) if isinstance(s, ir.Reduce)}
    chosen = {number for number in reduced if kernel.values[number].op == "where"}
    while numbers:
        number = numbers.pop()
        if number not in visited:
            visited.add(number)
            numbers += kernel.values[number].args
    values = [kernel.values[number] for number in visited - chosen]
    wide = [v for v in values if v.dtype == "float64" and v.depth >= POINT and v.op not in LEAVES]
    return Counter(v.op for v in wide)
