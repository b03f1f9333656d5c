"""Commands and simulations on devices."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import halocline as hc
import preloaded
from halocline import _native as native
from halocline.explanation.explain import Explanation, explain_program
from halocline.problems.problem import Problem

Devices = list[native.Device]

SIDES = ["opencl:0", "opencl:1"]


def halocline(line: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in a folder."""
    return preloaded.halocline(*line.split(), cwd=cwd, env={**os.environ, "COLUMNS": "120", **environment})


def heat(**execution: Any) -> hc.Simulation:
    """Return a simulation so small that its kernels compile quickly."""
    grid = hc.Grid((24,), periodic=True)
    grid.field("u")
    return hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-5, **execution)


# -- explain -------------------------------------------------------------------------------------------------


def explanation_on(device: str, **options: Any) -> Explanation:
    """Return the explanation of the Poisson case on a device."""
    case = Problem("poisson", [64, 64])
    return explain_program(case.program, case.grid, device=device, **options)
