"""Programs that tests stop and continue: run as `python restart_programs.py PHASE FOLDER [PROGRAM ...]`.

PHASE is "whole" (from the start to the end), "first" (a part, with checkpoints), "resume" (from the newest
checkpoint to the end) or "slow" (with a checkpoint after every step, and time to be killed). All phases also
write output. The script prints a line per program, with its checksums and a hash of its output.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import halocline as hc
from halocline.archive.reader import Store
from halocline.errors import Stopped
from halocline.problems.problem import Problem

EXECUTION: dict[str, Any] = {"threads": 1}
if "HALOCLINE_TEST_DEVICE" in os.environ:
    EXECUTION["device"] = os.environ["HALOCLINE_TEST_DEVICE"]
WHOLE, PART = 30, 17  # steps or iterations
STEP = 0.03  # minimum seconds of a step that may be killed


def heat() -> hc.Simulation:
    """Return a run with a delayed time step, a time-dependent condition and an unused field."""
    grid = hc.Grid((20, 13, 11), periodic=(True, False, True))
    T = grid.field("T", boundary={"y-": hc.Value(0.5), "y+": hc.Derivative(hc.parameter("flux"))})
    unused = grid.field("kept", dtype="float32")
    sim = hc.Simulation(
        grid,
        lambda T, kappa, t: {T: kappa * hc.laplacian(T) + 0.1 * hc.cos(20.0 * t)},
        parameters={"kappa": 0.1, "flux": 0.2},
        scheme=hc.RK3(),
        dt=lambda T: 2e-3 / (1.0 + hc.max(abs(T))),
        time_step="delayed",
        **EXECUTION,
    )
    sim[T] = lambda x, y, z: np.exp(-20 * ((x - 0.5) ** 2 + (y - 0.4) ** 2))
    sim[unused] = lambda x, y, z: x + 2 * y - z
    return sim


def holes() -> hc.Simulation:
    """Return a run with inactive blocks."""
    active = np.ones((4, 3), bool)
    active[1, 1] = active[3, 0] = False
    grid = hc.Grid((24, 15), periodic=True, active=active)
    u = grid.field("u")
    sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u) - u**3}, scheme=hc.RK3(), dt=1e-4, **EXECUTION)
    sim[u] = lambda x, y: np.sin(7 * x) + np.cos(9 * y)
    return sim


def staggered() -> hc.Simulation:
    """Return a run with values on faces, owned points on walls, and scalars that pass to the next step."""
    grid = hc.Grid((17, 14))
    p = grid.field("p", boundary=hc.Derivative(0.0))
    grid.field("v", location="face-x", boundary=hc.Value(0.0))
    grid.field("w", location="face-y", dtype="float32", boundary=hc.Value(0.0))

    @hc.program
    def acoustics(p: Any, v: Any, w: Any, dt: Any, step: Any) -> None:
        most = hc.scalar("most")
        h_x, h_y = grid.h(0), grid.h(1)
        v.set(v - dt * (p - p[-1, 0]) / h_x)
        w.set(w - dt * (p - p[0, -1]) / h_y)
        p.set(p - dt * ((v[1, 0] - v) / h_x + (w[0, 1] - w) / h_y) / (1.0 + 0.1 * most))
        with hc.every(4):
            most.set(hc.max(abs(p)))

    sim = hc.Simulation(grid, acoustics, dt=0.01, **EXECUTION)
    sim[p] = lambda x, y: np.exp(-30 * ((x - 0.4) ** 2 + (y - 0.5) ** 2))
    sim.values["most"] = 0.5
    return sim


def forced() -> Problem:
    """Return a problem of magnetohydrodynamics with a random force."""
    return Problem("helical-turbulence", [12])


def store_of(path: Path) -> Path:
    """Return the path of the output of a program."""
    return path.with_name(f"{path.name}.zarr")


def output_options(phase: str, path: Path) -> dict[str, Any]:
    """Return the output and checkpoint options of a phase.

    A phase that died before its first checkpoint starts again and overwrites its output.
    """
    options: dict[str, Any] = {"output": hc.Output(store_of(path), every=hc.steps(2), overwrite=True)}
    if phase in ("first", "slow"):
        options["checkpoint"] = hc.Checkpoint(path, every=hc.steps(5 if phase == "first" else 1))
    return options


def can_resume(phase: str, path: Path) -> bool:
    """Return True if a phase resumes from an existing checkpoint."""
    return phase in ("resume", "slow") and (path / "newest.json").exists()


def stored(path: Path) -> str:
    """Return a hash of the output."""
    store, whole = Store(store_of(path)), hashlib.sha256()
    for name in sorted(store.arrays):
        whole.update(name.encode() + store.read_all(name).tobytes())
    return whole.hexdigest()[:16]


def simulated(make: Callable[[], hc.Simulation]) -> Callable[[str, Path], str]:
    """Return a function that runs a phase of a simulation and returns its results as text."""

    def run(phase: str, path: Path) -> str:
        sim = make()
        if can_resume(phase, path):
            sim.resume(path)
        slow = {"every": hc.steps(1), "callback": lambda sim: time.sleep(STEP)} if phase == "slow" else {}
        sim.run(
            steps=max(0, (PART if phase == "first" else WHOLE) - sim.steps),
            **output_options(phase, path),
            **slow,
        )
        names = sorted(f.name for f in sim.grid.fields.values() if f.name in sim.store.storages)
        sums = [sim.checksum(name) for name in names]
        return " ".join([str(sim.steps), sim.time.hex(), *sums, stored(path)])

    return run


def case(phase: str, path: Path) -> str:
    """Run a phase of the forced case and return its results as text."""
    run = forced()
    options: dict[str, Any] = {
        "steps": PART if phase == "first" else WHOLE,
        "every": 4,
        **output_options(phase, path),
    }
    if can_resume(phase, path):
        options["resume"] = path
    if phase == "slow":
        options["on_row"] = lambda *row: time.sleep(4 * STEP)
    record = run.run(**options, **EXECUTION).record
    assert record.series is not None
    steps = [row["step"] for row in record.series]
    return f"{record.checksum} {steps} {record.series[-1]} {stored(path)}"


def poisson(phase: str, path: Path) -> str:
    """Run conjugate gradients."""
    grid = hc.Grid((40, 30), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    problem = hc.LinearProblem(
        lambda u: -hc.laplacian(u), u, lambda x, y: np.sin(5 * x) * y, method="cg-fused", **EXECUTION
    )
    options = output_options(phase, path)
    if phase == "first":
        options["max_iterations"] = PART
    if can_resume(phase, path):
        options["resume"] = path
    solution = problem.solve(rtol=1e-8, **options)
    residuals = solution.residuals.sum().hex()
    return f"{solution.iterations} {solution.fields.checksum(u)} {residuals} {stored(path)}"


PROGRAMS: dict[str, Callable[[str, Path], str]] = {
    "heat": simulated(heat),
    "holes": simulated(holes),
    "staggered": simulated(staggered),
    "forced": case,
    "poisson": poisson,
}


def main() -> None:
    phase, folder, *names = sys.argv[1:]
    for name in names or PROGRAMS:
        try:
            hc.print(f"{name}: {PROGRAMS[name](phase, Path(folder) / name)}")
        except Stopped as stop:
            hc.print(f"{name}: {stop}")
            raise


if __name__ == "__main__":
    main()
