"""Every argument of every public function rejects values of wrong types with a message."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import arranged
from halocline.errors import InputError
from halocline.lang.program import Program
from halocline.lang.trace import tracing
from stepped_programs import program_of

GRID = hc.Grid((6, 5))
OTHER = hc.Grid((4, 3))
WALLED = hc.Grid((6, 5))
WALLED.field("u", boundary=hc.Value(0))
u, v, q = GRID.field("u"), GRID.vector("v"), OTHER.field("q")
s = hc.parameter("s")


def heat(u: Any) -> Any:
    return {u: hc.laplacian(u)}


def ghosts(condition: Any) -> None:
    """Form the ghosts of a field with a boundary condition."""
    grid = hc.Grid((6, 5))
    grid.field("u", boundary=condition)
    arranged(program_of(grid, heat, scheme=hc.Euler(), dt=1e-3), grid)


@dataclass(frozen=True)
class Nothing:
    """An object that no argument accepts."""


WRONG: dict[str, Any] = {
    "text": "nonsense",
    "None": None,
    "list": [1, "a"],
    "object": Nothing(),
    "other grid": q,
    "complex": 1 + 2j,
    "array": np.ones((2, 2)),
    "objects": np.array([Nothing(), None]),
    "huge": 10**400,
    "nan": float("nan"),
    "negative": -3,
    "dictionary": {"a": 1},
    "function": lambda a, b, c, d: a,
    "class": Nothing,
    "bytes": b"x",
    "empty": (),
}

# calls with their arguments by name: positional ones have the names 0, 1, ...
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Grid": (
        hc.Grid,
        {
            "0": (6, 5), "extent": 1.0, "origin": 0.0, "periodic": False, "walls": "face", "stretch": None,
            "active": None,
        },
    ),
    "grid.field": (
        lambda *a, **k: hc.Grid((6, 5)).field(*a, **k),
        {"0": "f", "location": "cell", "dtype": "float64", "boundary": hc.Value(0)},
    ),
    "grid.vector": (
        lambda *a, **k: hc.Grid((6, 5)).vector(*a, **k),
        {"0": "f", "components": 2, "location": "cell", "dtype": "float64", "boundary": hc.Value(0)},
    ),
    "grid.h": (GRID.h, {"0": 0}),
    "grid.cell_number": (GRID.cell_number, {"axes": "xy"}),
    "Value": (lambda *a, **k: ghosts(hc.Value(*a, **k)), {"0": 0.0, "order": 2}),
    "Derivative": (lambda *a, **k: ghosts(hc.Derivative(*a, **k)), {"0": 0.0, "order": 2}),
    "Extrapolate": (lambda *a, **k: ghosts(hc.Extrapolate(*a, **k)), {"0": 2}),
    "BoundaryKernel": (lambda *a, **k: ghosts(hc.BoundaryKernel(*a, **k)), {"0": lambda u: u[0]}),
    "Checkpoint": (
        hc.Checkpoint,
        {"0": "c", "every": "5 steps", "keep": 2, "overwrite": False, "time_limit": "1 h", "io_threads": 1},
    ),
    "Output": (
        hc.Output,
        {
            "0": "a.zarr", "every": "5 steps", "exact": False, "region": hc.Coarsen(2), "window": "output",
            "dtype": "float32", "compression": "zstd", "units": {"T": "K"}, "overwrite": False,
            "io_threads": 1,
        },
    ),
    "Box": (lambda *a, **k: hc.Box(*a, **k).check(GRID), {"x": (0.2, 0.4)}),
    "Slice": (lambda *a, **k: hc.Slice(*a, **k).check(GRID), {"x": 0.2}),
    "Coarsen": (lambda *a, **k: hc.Coarsen(*a, **k).check(hc.Grid((6, 4))), {"0": 2}),
    "Points": (lambda *a, **k: hc.Points(*a, **k).check(GRID), {"0": [(0.1, 0.2)], "interpolate": "linear"}),
    "Execution": (
        hc.Execution,
        {"device": "cpu", "threads": 1, "decomposition": "optimal", "patch": None},
    ),
    "steps": (hc.steps, {"0": 5}),
    "cells": (hc.cells, {"0": 4, "1": 6, "also": [(4,)]}),
    "setting": (
        hc.setting,
        {
            "0": "kappa", "1": 1.0, "unit": "m", "about": "it", "minimum": 0.0, "above": -1.0, "maximum": 2.0,
            "below": 3.0, "whole": False, "words": (), "origin": "a paper",
        },
    ),
    "Check": (
        hc.Check,
        {"0": "error", "1": 0.5, "maximum": 1.0, "minimum": 0.0, "about": "it", "compared": True},
    ),
    "Event": (hc.Event, {"0": "floor", "1": "floors", "2": "it", "warn_above": 0.1}),
    "Family": (
        hc.Family,
        {"0": "waves", "1": 2, "2": (8, 16), "lines": ({"kappa": 1.0},), "order": 2},
    ),
    "Extrapolated": (
        hc.Extrapolated,
        {"0": ("u",), "published": lambda n, values: {}, "source": "it", "noise": lambda values: 0.0},
    ),
    "parameter": (hc.parameter, {"0": "kappa", "unit": "m", "about": "it"}),
    "scalar": (hc.scalar, {"0": "rho"}),
    "scalars": (hc.scalars, {"0": "rho old"}),
    "program": (hc.program, {"0": lambda u: u.set(0)}),
    "order": (lambda a: hc.order(a).__enter__(), {"0": 4}),
    "lookup": (hc.lookup, {"0": (1.0, 2.0), "1": s}),
    "random": (hc.random, {"0": 1, "1": 2, "2": 3}),
    "shift": (hc.shift, {"0": u, "1": "x", "2": 1}),
    "to": (hc.to, {"0": u, "1": "face-x", "order": 2}),
    "derivative": (hc.derivative, {"0": u, "1": "x", "2": "y", "order": 2}),
    "difference": (hc.difference, {"0": u, "1": "x", "2": 2}),
    "mixed": (hc.mixed, {"0": u, "1": "x", "2": "y", "order": 2}),
    "second": (hc.second, {"0": u, "1": "x", "order": 2}),
    "laplacian": (hc.laplacian, {"0": u, "order": 2}),
    "hyperdiffusion": (hc.hyperdiffusion, {"0": u}),
    "grad": (hc.grad, {"0": u, "order": 2}),
    "div": (hc.div, {"0": v, "order": 2}),
    "curl": (hc.curl, {"0": v, "order": 2}),
    "grad_div": (hc.grad_div, {"0": v, "order": 2}),
    "traceless_strain": (hc.traceless_strain, {"0": v, "order": 2}),
    "upwinding": (hc.upwinding, {"0": u, "1": v, "order": 2}),
    "dot": (hc.dot, {"0": v, "1": v}),
    "cross": (hc.cross, {"0": v, "1": v}),
    "value": (hc.value, {"0": u, "at": (1, 1)}),
    "value by coordinates": (hc.value, {"0": u, "x": 0.1, "y": 0.2}),
    "stage": (hc.stage, {"0": u, "1": "name", "storage": "auto", "location": "cell"}),
    "symmetric_sum": (hc.symmetric_sum, {"0": u, "1": u}),
    "where": (hc.where, {"0": u > 0, "1": u, "2": 1.0}),
    "branch": (hc.branch, {"0": u > 0, "1": u, "2": 1.0}),
    "first": (hc.first, {"0": u > 0}),
    "count": (hc.count, {"0": u > 0}),
    "assign": (hc.assign, {"0": {u: 1.0}}),
    "every": (lambda a: hc.every(a).__enter__(), {"0": 2}),
    "when": (lambda a: hc.when(a).__enter__(), {"0": s > 0}),
    "loop": (
        lambda **k: hc.loop(**k).__enter__(),
        {"until": s > 0, "limit": 3, "record": ()},
    ),
    "stop": (hc.stop, {"0": s > 0, "1": "reason"}),
    **{
        name: (getattr(hc, name), {"0": u})
        for name in (
            "abs", "cos", "exp", "log", "sign", "sin", "sqrt", "tanh", "norm", "sum", "max", "min",
        )
    },
    **{name: (getattr(hc, name), {"0": u, "1": u}) for name in ("maximum", "minimum", "pow")},
    "Simulation": (
        lambda *a, **k: hc.Simulation(*a, threads=1, **k),
        {
            "0": WALLED, "1": heat, "parameters": {}, "scheme": hc.Euler(), "dt": 1e-3, "time_step": "exact",
            "order": 2, "after_step": None, "terms": None, "communicator": None,
        },
    ),
    "LinearProblem": (
        lambda *a, **k: hc.LinearProblem(*a, threads=1, **k),
        {"0": lambda x: 2.0 * x, "1": u, "2": 1.0, "method": "cg", "parameters": {}, "communicator": None},
    ),
}  # fmt: skip

# calls that compile if a value is accepted: few kinds of values are enough
FEW = ("text", "None", "list", "object", "other grid", "complex")

NOT_CALLED = {
    # they accept any value, or none
    "print", "Euler", "RK2", "RK3", "RK3Previous", "RK4", "SSPRK3", "Periodic", "Symmetric", "Antisymmetric",
    # results and classes that functions of the grid or a program create
    "Outcome", "Solution", "Expr", "Field", "Scalar", "Vector",
    # the output that contains them checks them
    "time_max", "time_mean", "time_min", "time_variance",
    # their arguments are checked in io/test_picture.py, io/test_plot.py and mpi/test_wrong_input.py
    "explain", "picture", "plot", "plot_lines", "solve",
    "BreakdownError", "CompileError", "HaloclineError", "InputError", "RunError", "Stopped",
}  # fmt: skip


def test_every_public_callable_is_called() -> None:
    public = {name for name in hc.__all__ if callable(getattr(hc, name))}
    assert public - {name.split()[0] for name in CALLS} == NOT_CALLED


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.ERROR, "halocline")
    monkeypatch.chdir(tmp_path)


def call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    positional = [value for name, value in arguments.items() if name.isdecimal()]
    named = {name: value for name, value in arguments.items() if not name.isdecimal()}
    with tracing(Program("wrong")):
        return function(*positional, **named)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_types_are_rejected_with_a_message(name: str) -> None:
    function, arguments = CALLS[name]
    call(function, arguments)
    rejected, failures = 0, []
    for argument in arguments:
        for kind in FEW if name in ("Simulation", "LinearProblem") else WRONG:
            wrong = WRONG[kind]
            try:
                call(function, arguments | {argument: wrong})
            except InputError as error:
                rejected += 1
                if len(str(error)) > 1500:
                    failures.append(f"{name}({argument}={kind}): {len(str(error))} characters")
            except Exception as error:
                failures.append(f"{name}({argument}={kind}): {error!r}"[:300])
    assert rejected > 0
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("kind", WRONG)
def test_explain_accepts_problems(kind: str) -> None:
    with pytest.raises(InputError, match=r"expected an hc\.Simulation or an hc\.LinearProblem"):
        hc.explain(WRONG[kind])


@pytest.mark.parametrize("path", ["", ".", "..", "a\0b", "x" * 5000, "x" * 5000 + ".npy"])
def test_impossible_paths_are_rejected(path: str, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    grid = hc.Grid((4, 4))
    u = grid.field("u")
    sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.1, threads=1)
    with pytest.raises(InputError, match=r"there is no|File name too long"):
        sim[u] = path
    if "\0" in path:
        for kind in (hc.Output, hc.Checkpoint):
            with pytest.raises(InputError, match="contains a null character"):
                kind(path)
