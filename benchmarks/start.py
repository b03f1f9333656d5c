"""Seconds from the start of a process to its first result, and the libraries that are compiled for it.

    python benchmarks/start.py [--repeats 7] [--json FILE]

Each measurement is a process of its own. `import halocline` is measured alone. The first program of the
README runs on 64^3 cells and one thread. It is measured up to the end of its first step, and up to its
checksum and maximum. It runs with an empty kernel cache (cold), and again with the same cache (warm), from
the README's initial values and from `sim[T] = 1.0`. Seconds of processor time, including those of the
compiler, are printed next to wall-clock seconds, because other processes may use the cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import arguments, median, save

PROGRAM = """
import resource, time

def now():
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(s.ru_utime + s.ru_stime for s in spent)

times = [now()]
import halocline as hc
times.append(now())
import numpy as np

grid = hc.Grid((64, 64, 64), extent=(1.0, 1.0, 1.0), periodic=True)
T = grid.field("T")

def heat(T, kappa):
    return {{T: kappa * hc.laplacian(T)}}

sim = hc.Simulation(grid, heat, parameters={{"kappa": 0.1}}, scheme=hc.RK3(), order=6, dt=1e-4, threads=1)
sim[T] = {start}
sim.run(steps=1)
times.append(now())
sim.checksum(T), sim.evaluate(hc.max(T))
times.append(now())
print(*(value - first for time in times[1:] for value, first in zip(time, times[0])))
"""
STARTS = {
    "function": "lambda x, y, z: np.exp(-50 * ((x - 0.5) ** 2 + (y - 0.5) ** 2 + (z - 0.5) ** 2))",
    "constant": "1.0",
}
PARTS = ("import halocline", "first step", "checksum and maximum")


def measured(start: str, cache: str) -> list[tuple[float, float]]:
    """Return seconds by the clock and of processors at the end of each part, in a new process."""
    environment = os.environ | {"HALOCLINE_CACHE": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # bytecode exists from a user's second process on
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(start=STARTS[start])],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    numbers = [float(word) for word in done.stdout.split()]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def costs(start: str, repeats: int) -> list[dict[str, Any]]:
    """Measure a program with an empty cache and with a full one."""
    times: dict[str, list[list[tuple[float, float]]]] = {"cold": [], "warm": []}
    libraries = 0
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            times["cold"].append(measured(start, cache))
            libraries = len(list(Path(cache).glob("*.so")))
            times["warm"].append(measured(start, cache))
    rows = []
    for kind, runs in times.items():
        for number, part in enumerate(PARTS):
            clock, cpu = (
                median([run[number][number_of_clock] for run in runs]) for number_of_clock in (0, 1)
            )
            compiled = libraries if kind == "cold" else 0
            print(
                f"{start}, {kind}: {part} after {clock:.2f} s, {cpu:.2f} s of processors",
                end="",
            )
            print(f"; {compiled} libraries compiled" if part == PARTS[-1] else "")
            rows.append(
                {"start": start, "cache": kind, "part": part, "seconds": clock, "processor_seconds": cpu,
                 "libraries": compiled}
            )  # fmt: skip
    return rows


def main() -> None:
    """Measure, print and record."""
    options = arguments((__doc__ or "").splitlines()[0])
    save(options.json, [row for start in STARTS for row in costs(start, options.repeats)])


if __name__ == "__main__":
    main()
