"""Explicit heat steps with Devito for benchmarks/heat.py, in an environment of its own.

Prints "ready", and then million cells per second for each input line.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from devito import Constant, Eq, Grid, Operator, TimeFunction, configuration


def main(n: int, order: int, dtype: str, steps: int) -> None:
    """Time `steps` steps on n^3 cells; OMP_NUM_THREADS sets the threads."""
    configuration["log-level"] = "ERROR"
    grid = Grid(shape=(n, n, n), extent=(1.0, 1.0, 1.0), dtype=np.dtype(dtype).type)
    u = TimeFunction(name="u", grid=grid, time_order=1, space_order=order)
    u.data[0] = np.random.default_rng(1).random((n, n, n))
    kappa = Constant(name="kappa", value=1.0, dtype=grid.dtype)
    step = Operator(
        [Eq(u.forward, u + grid.stepping_dim.spacing * kappa * u.laplace)], opt=("advanced", {"openmp": True})
    )
    dt = 0.1 / n**2
    step.apply(time_M=5, dt=dt, autotune="aggressive")
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        step.apply(time_M=steps - 1, dt=dt)
        print(n**3 * steps / (time.perf_counter() - start) / 1e6, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
