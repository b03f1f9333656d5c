"""Programs that are stopped and continued in separate processes; see restart_programs.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import halocline as hc
from halocline.run.ranks.launch import mpiexec
from hang import HANG

PROGRAMS = Path(__file__).parent / "restart_programs.py"
NAMES = ("heat", "holes", "staggered", "forced", "poisson")


def command(phase: str, folder: Path, *names: str, ranks: int = 1) -> list[str]:
    """Return the command line of a phase of programs."""
    launcher = [] if ranks == 1 else [str(mpiexec()), "-n", str(ranks)]
    return [*launcher, sys.executable, str(PROGRAMS), phase, str(folder), *names]


def results(
    phase: str, folder: Path, *names: str, ranks: int = 1, device: str = "cpu", io_ranks: int = 0
) -> dict[str, str]:
    """Return the checksums that the programs print, by name."""
    process = subprocess.run(
        command(phase, folder, *names, ranks=ranks),
        env={**os.environ, "HALOCLINE_TEST_DEVICE": device, "HALOCLINE_IO_RANKS": str(io_ranks)},
        capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return dict(line.split(": ", 1) for line in process.stdout.splitlines())


# -- the same bits -------------------------------------------------------------------------------------------


def heat(kappa: float = 0.1, shape: tuple[int, ...] = (12, 10), **options: Any) -> hc.Simulation:
    """Return a small simulation of heat on a periodic grid."""
    grid = hc.Grid(shape, periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(
        grid,
        lambda T, kappa: {T: kappa * hc.laplacian(T)},
        **{"parameters": {"kappa": kappa}, "scheme": hc.RK3(), "dt": 1e-3, "threads": 1, **options},
    )
    sim[T] = np.random.default_rng(5).uniform(size=shape)
    return sim
