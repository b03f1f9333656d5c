"""Heat steps with Halocline for benchmarks/patches.py, equal to those of peers/heat_nest.c.

Prints "ready" and a number that is computed from all bits of the result after ten steps. For each input line,
the program then prints million cells per second.
"""

from __future__ import annotations

import sys

import numpy as np

import halocline as hc


def main(n: int, steps: int) -> None:
    """Time `steps` steps of forward Euler on n^3 cells with one thread."""
    grid = hc.Grid((n, n, n), periodic=True)
    T = grid.field("T")

    def heat(T, kappa):  # type: ignore[no-untyped-def]
        return {T: kappa * hc.laplacian(T)}

    sim = hc.Simulation(
        grid, heat, parameters={"kappa": 1.0}, scheme=hc.Euler(), dt=0.1 / n**2, threads=1, patch="caches"
    )
    i, j, k = np.indices(grid.shape)
    sim[T] = ((7 * i + 5 * j + 3 * k) % 17) / 16
    sim.run(steps=10)
    words = np.ascontiguousarray(sim[T]).view(np.uint64).ravel()
    odd = 2 * np.arange(words.size, dtype=np.uint64) + np.uint64(1)
    print("ready", (words * odd).sum(dtype=np.uint64), flush=True)
    for _ in sys.stdin:
        print(n**3 * steps / sim.run(steps=steps).loop_seconds / 1e6, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
