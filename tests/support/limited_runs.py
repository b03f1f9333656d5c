"""Runs under limits of the system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from halocline.run.ranks.launch import environment, mpiexec
from hang import HANG


def run(command: list[str], before: str = "") -> tuple[int, str, str]:
    """Return status, output and errors of a command, in a shell that runs `before` first."""
    process = subprocess.run(
        ["bash", "-c", f'{before}\nexec "$@"', "bash", *command],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    return process.returncode, process.stdout, process.stderr


RUN = """
import sys
import time
import numpy as np
import halocline as hc

grid = hc.Grid((32, 32), periodic=True)
u = grid.field("u")
options = {"methods": METHODS} if METHODS else {}
sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-4, threads=2, **options)
sim[u] = lambda x, y: np.sin(x)
sim.run(steps=3)
hc.print("ran")
"""


@pytest.fixture
def script(tmp_path):
    def write(text: str) -> Path:
        file = tmp_path / "case.py"
        file.write_text(text)
        return file

    return write


def with_ranks(file: Path, ranks: int, launcher: str = "halocline") -> list[str]:
    """Return the command that runs a file on ranks: that of Halocline, or mpiexec alone."""
    if launcher == "mpiexec":
        return [str(mpiexec()), "-n", str(ranks), sys.executable, str(file)]
    return [sys.executable, "-m", "halocline.cli", "run", str(file), "--ranks", str(ranks)]


def in_small_shm(size: str, command: list[str]) -> tuple[int, str, str]:
    """Run a command with the given size of /dev/shm; skip the test if the size cannot be set."""
    mount = f"mount -t tmpfs -o size={size} tmpfs /dev/shm"
    can = subprocess.run(["unshare", "-m", "bash", "-c", mount], capture_output=True, text=True, check=False)
    if can.returncode != 0:
        pytest.skip(f"a small /dev/shm cannot be mounted here: {can.stderr.strip()}")
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", f'{mount}\nexec "$@"', "bash", *command],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    return done.returncode, done.stdout, done.stderr
