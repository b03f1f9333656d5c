"""One of the programs for benchmarks/programs.py, with the Halocline of the Python that runs it.

Prints "ready", and then million cells per second for each input line.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import halocline as hc

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))  # files of the examples

Run = Callable[[], float]  # million cells per second


def stepped(sim: Any, size: int, steps: int) -> Run:
    """Return steps of a simulation."""
    sim.run(steps=3)
    return lambda: size * steps / sim.run(steps=steps).loop_seconds / 1e6


def heat(n: int, order: int, dtype: str) -> Run:
    """Return forward Euler steps in space."""
    grid = hc.Grid((n, n, n), periodic=True)
    T = grid.field("T", dtype=dtype)
    equations = lambda T, kappa: {T: kappa * hc.laplacian(T)}  # noqa: E731
    options: dict[str, Any] = {"scheme": hc.Euler(), "order": order, "dt": 0.05 / n**2, "threads": 1}
    sim = hc.Simulation(grid, equations, parameters={"kappa": 1.0}, **options)
    sim[T] = lambda x, y, z: x * (1 - x) * y * (1 - y) * z * (1 - z)
    return stepped(sim, n**3, max(20, round(2e8 / n**3)))


def poisson(n: int, method: str) -> Run:
    """Return iterations of conjugate gradients in the plane."""
    grid = hc.Grid((n, n), walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    x, y = u.coordinates
    waves = hc.cos(2 * math.pi * x) * hc.sin(math.pi * y) ** 2
    waves = waves + hc.cos(2 * math.pi * y) * hc.sin(math.pi * x) ** 2
    operator = lambda v: 4 * v - (v[-1, 0] + v[1, 0] + v[0, -1] + v[0, 1])  # noqa: E731
    rhs = grid.h(0) ** 2 * (-2 * math.pi**2 * waves)
    problem = hc.LinearProblem(operator, u, rhs, method=method, threads=1)
    count = max(50, round(1e8 / n**2))

    def run() -> float:
        done = problem.solve(rtol=1e-30, max_iterations=count)
        return n**2 * done.iterations / done.seconds / 1e6

    run()
    return run


def leapfrog(n: int, order: int) -> Run:
    """Return leapfrog steps of the wave equation in space."""
    grid = hc.Grid((n, n, n), periodic=True)
    u, before = grid.field("u"), grid.field("before")

    @hc.program
    def step(dt: Any) -> None:
        hc.assign({before: u, u: 2.0 * u - before + dt**2 * hc.laplacian(u, order=order)})

    sim = hc.Simulation(grid, step, dt=0.3 / n, threads=1)
    sim[u] = sim[before] = lambda x, y, z: np.sin(2 * np.pi * x)
    return stepped(sim, n**3, max(20, round(2e8 / n**3)))


def wave(n: int) -> Run:
    """Return leapfrog steps in space."""
    grid = hc.Grid((n, n, n))
    p, v = grid.field("p", boundary=hc.Derivative(0.0)), grid.vector("v", location="face")

    @hc.program
    def step(dt: Any) -> None:
        h = [grid.h(axis) for axis in range(grid.ndim)]
        v.set(v - dt * hc.Vector((p - hc.shift(p, a, -1)) / h[a] for a in range(grid.ndim)))
        p.set(p - dt * sum((hc.shift(f, a) - f) / h[a] for a, f in enumerate(v)))

    sim = hc.Simulation(grid, step, dt=0.3 / n, threads=1)
    sim[p] = lambda *x: np.exp(-30 * sum((x_i - 0.4) ** 2 for x_i in x))
    return stepped(sim, n**3, max(20, round(1e8 / n**3)))


def gray_scott(n: int) -> Run:
    """Return steps of two species that react and diffuse in the plane."""
    grid = hc.Grid((n, n), periodic=True)
    u, v = grid.field("u"), grid.field("v")

    def equations(u: Any, v: Any) -> Any:
        rate = u * v * v
        return {
            u: 0.16 * hc.laplacian(u) * grid.h(0) ** 2 - rate + 0.06 * (1 - u),
            v: 0.08 * hc.laplacian(v) * grid.h(0) ** 2 + rate - 0.122 * v,
        }

    sim = hc.Simulation(grid, equations, scheme=hc.Euler(), dt=1.0, threads=1)
    sim[u], sim[v] = 1.0, lambda x, y: 0.25 * np.exp(-100 * ((x - 0.5) ** 2 + (y - 0.5) ** 2))
    return stepped(sim, n * n, max(20, round(1e8 / n**2)))


def hancock(n: int, dim: int) -> Run:
    """Return steps of a blast, with the scheme of examples/hancock.py."""
    import hancock as scheme
    from gas import GAMMA

    grid = hc.Grid((n,) * dim, extent=1.0)
    wall, bounce = hc.Symmetric(), hc.Antisymmetric()
    rho, E = grid.field("rho", boundary=wall), grid.field("E", boundary=wall)
    sides = [{f"{a}-": bounce, f"{a}+": bounce, "other": wall} for a in "xy"[:dim]]
    grid.vector("m", boundary=sides)
    h = [grid.h(axis) for axis in range(dim)]

    @hc.program
    def step(rho: Any, m: Any, E: Any, dt: Any) -> None:
        U = hc.Vector((rho, *m, E))
        U.set(scheme.advanced(U, scheme.fluxes(U, dt, h), dt, h))

    sim = hc.Simulation(grid, step, dt=0.1 / n, threads=1)

    def burst(inside: float, outside: float) -> Callable[..., Any]:
        return lambda *x: np.where(sum((c - 0.35) ** 2 for c in x) < 0.2**2, inside, outside)

    sim[rho], sim[E] = burst(1.0, 0.125), burst(1.0 / (GAMMA - 1), 0.1 / (GAMMA - 1))
    sim.run(steps=n)  # waves have reached the whole grid
    return stepped(sim, n**dim, max(5, round(3e7 / n**dim)))


def mhd(n: int) -> Run:
    """Return steps of the case mhd-benchmark."""
    from halocline.problems.problem import Problem

    sim = Problem("mhd-benchmark", [n]).run(steps=0, threads=1).simulation
    return stepped(sim, n**3, max(2, round(2e6 / n**3)))


PROGRAMS: dict[str, Callable[[], Run]] = {
    "heat, order 2": lambda: heat(256, 2, "float64"),
    "heat, order 6": lambda: heat(256, 6, "float64"),
    "heat, order 2, float32": lambda: heat(256, 2, "float32"),
    "heat, order 6, in cache": lambda: heat(48, 6, "float64"),
    "cg-fused": lambda: poisson(2048, "cg-fused"),
    "cg-fused, in cache": lambda: poisson(256, "cg-fused"),
    "cg": lambda: poisson(2048, "cg"),
    "leapfrog, order 4": lambda: leapfrog(256, 4),
    "leapfrog, order 8": lambda: leapfrog(256, 8),
    "wave": lambda: wave(192),
    "Gray-Scott": lambda: gray_scott(2048),
    "Gray-Scott, in cache": lambda: gray_scott(256),
    "Hancock, 1D": lambda: hancock(4000, 1),
    "Hancock, 2D": lambda: hancock(256, 2),
    "MHD, 64^3": lambda: mhd(64),
    "MHD, 128^3": lambda: mhd(128),
}


if __name__ == "__main__":
    measured = PROGRAMS[sys.argv[1]]()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(measured(), flush=True)
