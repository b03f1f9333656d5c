"""Explicit heat steps with Halocline for benchmarks/heat.py.

Prints "ready", and then million cells per second for each input line.
"""

from __future__ import annotations

import sys

import halocline as hc


def main(n: int, order: int, dtype: str, threads: int, steps: int) -> None:
    """Time `steps` steps of forward Euler on n^3 cells."""
    grid = hc.Grid((n, n, n), periodic=True)
    T = grid.field("T", dtype=dtype)

    def heat(T, kappa):  # type: ignore[no-untyped-def]
        return {T: kappa * hc.laplacian(T)}

    sim = hc.Simulation(
        grid, heat, parameters={"kappa": 1.0}, scheme=hc.Euler(), order=order, dt=0.1 / n**2, threads=threads
    )
    sim[T] = lambda x, y, z: x * (1 - x) * y * (1 - y) * z * (1 - z)
    sim.run(steps=3)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(n**3 * steps / sim.run(steps=steps).seconds / 1e6, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
