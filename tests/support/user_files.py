"""Python files of a user, for commands."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import preloaded
from halocline.cli.app import run

HEAT = '''"""Heat on a square."""

import math
import halocline as hc

n = 16
kappa = 0.1
name: str = "T"
late = -0.5
twice = 1
twice = 2

grid = hc.Grid((n, n), periodic=True)
T = grid.field(name)
sim = hc.Simulation(
    grid, lambda T: {T: kappa * hc.laplacian(T)}, scheme=hc.RK3(), dt=0.1 / n**2 / kappa, order=4
)
sim[T] = lambda x, y: hc.sin(2 * math.pi * x) * hc.sin(2 * math.pi * y)
sim.run(until=0.02)
'''

EXACT = """
import numpy as np

def exact(t):
    faded = math.exp(-8 * math.pi**2 * kappa * t)
    return {T: lambda x, y: faded * np.sin(2 * math.pi * x) * np.sin(2 * math.pi * y)}

def check(sim):
    assert sim.time > 0.01, "it did not run"
    assert kappa < 0.3, "kappa is large"
"""

SOLVE = """import halocline as hc

n = 24
grid = hc.Grid((n, n), walls="node")
u = grid.field("u", boundary=hc.Value(0.0))
solution = hc.solve(lambda u: -hc.laplacian(u), u, 1.0)
"""


def halocline(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return preloaded.halocline(*words, cwd=cwd, env=os.environ | {"HALOCLINE_OUT": str(cwd)})


def json_result(*words: str | Path, cwd: Path) -> dict[str, Any]:
    """Return the JSON output of a command."""
    process = halocline(*words, "--json", cwd / "found.json", cwd=cwd)
    assert process.returncode == 0, process.stderr
    contents: dict[str, Any] = json.loads((cwd / "found.json").read_text())
    return contents


# -- runs of a file ------------------------------------------------------------------------------------------


def record_of_run(*words: str | Path, cwd: Path) -> dict[str, Any]:
    """Return the record of a run in this process."""
    assert run(["run", *map(str, words), "--json", str(cwd / "run.json")]) == 0
    record: dict[str, Any] = json.loads((cwd / "run.json").read_text())["run"]
    return record


@pytest.fixture
def heat(tmp_path: Path) -> Path:
    path = tmp_path / "heat.py"
    path.write_text(HEAT + EXACT)
    return path
