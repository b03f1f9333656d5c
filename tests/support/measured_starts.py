"""Start times of processes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

from hang import HANG


def measure(script: str, times: int, cache: Path | None = None) -> tuple[float, float, float]:
    """Return the medians of wall-clock and processor seconds of a script, and the minimum of the former.

    The processor seconds include the compiler.
    """
    environment = dict(os.environ)
    # Bytecode is cached in daily use of Python.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if cache is not None:
        environment["HALOCLINE_CACHE"] = str(cache)
    seconds = []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=HANG
        )
        assert done.returncode == 0, done.stderr
        seconds.append([float(word) for word in done.stdout.split()])
    wall, processor = zip(*seconds, strict=True)
    return statistics.median(wall), statistics.median(processor), min(wall)


# the first program of the README, up to the end of its first step
FIRST_CALL = """
import resource, time
import halocline as hc
import numpy as np

def seconds():
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(s.ru_utime + s.ru_stime for s in spent)

start, used = time.perf_counter(), seconds()
grid = hc.Grid((64, 64, 64), periodic=True)
T = grid.field("T")

def heat(T, kappa):
    return {T: kappa * hc.laplacian(T)}

sim = hc.Simulation(grid, heat, parameters={"kappa": 0.1}, scheme=hc.RK3(), dt=1e-5, order=6, threads=1)
sim[T] = lambda x, y, z: np.exp(-50 * ((x - 0.5) ** 2 + (y - 0.5) ** 2 + (z - 0.5) ** 2))
sim.run(steps=1)
print(time.perf_counter() - start, seconds() - used)
"""


def check(label: str, measured: tuple[float, float, float], bound: float) -> None:
    wall, cpu_seconds, least = measured
    print(f"{label}: {wall:.2f} s, {cpu_seconds:.2f} s of computing; promised < {bound} s")
    # other processes on the cores increase the wall time; a long wait is detected too
    assert min(wall, cpu_seconds) < bound, label
    assert least < 4 * bound, label
