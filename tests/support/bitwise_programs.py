"""Programs whose results must be identical bit by bit for all ways of execution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import halocline as hc

DTYPES = ("float64", "float32")


@dataclass
class Result:
    """Checksums by field, and numbers that must agree in all bits."""

    checksums: dict[str, str]
    numbers: tuple[float, ...] = ()


Problem = Callable[..., Result]


def finish(sim: hc.Simulation, names: str, **run: Any) -> Result:
    """Run a simulation, and return the checksums of the named fields, the time and the number of steps."""
    sim.run(**run)
    return Result({n: sim.checksum(n) for n in names.split()}, (sim.time, float(sim.steps)))


def heat(dtype: str, **options: Any) -> Result:
    """Run heat conduction of sixth order with a periodic axis and a wall value from a parameter."""
    grid = hc.Grid((29, 23), (1.0, 0.8), periodic=(True, False))
    T = grid.field("T", dtype=dtype, boundary={"y-": hc.Value(hc.parameter("hot")), "y+": hc.Derivative(0.0)})

    def equation(T: Any, kappa: Any) -> Any:
        return {T: kappa * hc.laplacian(T)}

    parameters = {"kappa": 0.01, "hot": 2.0}
    sim = hc.Simulation(grid, equation, parameters=parameters, scheme=hc.RK3(), dt=1e-3, order=6, **options)
    sim[T] = lambda x, y: np.exp(-30 * ((x - 0.5) ** 2 + (y - 0.4) ** 2))
    return finish(sim, "T", until=0.0075)


def wave(dtype: str, **options: Any) -> Result:
    """Run a wave of second order: two coupled fields, walls everywhere, the time step from a reduction."""
    grid = hc.Grid((17, 31))
    u = grid.field("u", dtype=dtype, boundary=hc.Value(0.0))
    grid.field("v", dtype=dtype)
    c = grid.field("c", dtype=dtype, boundary=hc.Extrapolate(1))

    def equation(u: Any, v: Any, c: Any) -> Any:
        return {u: v, v: hc.div(c * c * hc.grad(u))}

    sim = hc.Simulation(
        grid, equation, scheme=hc.RK2(), dt=lambda c: 0.3 * grid.h(0) / hc.max(abs(c)), **options
    )
    sim[u] = lambda x, y: hc.sin(3.1 * x) * hc.cos(1.7 * y)
    sim[c] = lambda x, y: 1.0 + 0.3 * x * y
    return finish(sim, "u v c", steps=12)


def gray_scott(dtype: str, **options: Any) -> Result:
    """Run a nonlinear reaction with a random start and a nine-point Laplacian, which reads corners."""
    grid = hc.Grid((24, 26), 2.5, periodic=True)
    u, v = grid.field("u", dtype=dtype), grid.field("v", dtype=dtype)

    def nine(f: Any) -> Any:
        sides = f[1, 0] + f[-1, 0] + f[0, 1] + f[0, -1]
        corners = f[1, 1] + f[1, -1] + f[-1, 1] + f[-1, -1]
        return (0.2 * sides + 0.05 * corners - f) / grid.h(0) ** 2

    def equations(u: Any, v: Any, feed: Any, kill: Any) -> Any:
        reaction = u * v**2
        return {
            u: 2e-4 * nine(u) - reaction + feed * (1 - u),
            v: 1e-4 * nine(v) + reaction - (feed + kill) * v,
        }

    sim = hc.Simulation(
        grid, equations, parameters={"feed": 0.037, "kill": 0.06}, scheme=hc.Euler(), dt=0.5, **options
    )
    random = np.random.default_rng(7)
    sim[u], sim[v] = random.uniform(0.4, 1.0, grid.shape), random.uniform(0.0, 0.4, grid.shape)
    return finish(sim, "u v", steps=25)


def fluxes(dtype: str, **options: Any) -> Result:
    """Run finite volumes: limited slopes as stages of stages, fluxes at faces, walls, where, reductions."""
    grid = hc.Grid((14, 19), periodic=(False, True))
    q = grid.field("q", dtype=dtype, boundary={"x-": hc.Value(1.0), "x+": hc.Extrapolate(2)})
    grid.field("F", location="face-x", dtype=dtype)
    grid.field("G", location="face-y", dtype=dtype)

    @hc.program
    def step(q: Any, F: Any, G: Any, nu: Any) -> None:
        lowest, total, act, middle = hc.scalars("lowest total act middle")
        for axis, flux in enumerate((F, G)):
            one = (1, 0) if axis == 0 else (0, 1)
            minus = tuple(-o for o in one)
            left = hc.stage(q - q[minus], f"left_{axis}", storage="patch")
            slope = hc.stage(
                hc.where(left * left[one] > 0, 2 * left * left[one] / (left + left[one]), 0.0),
                f"slope_{axis}",
                storage="patch" if axis else "auto",
            )
            flux.set(q[minus] + 0.5 * (1 - nu) * slope[minus] + hc.exp(-q * q) * 1e-3)
        q.set(q - nu * (F[1, 0] - F) - 0.5 * nu * (G[0, 1] - G))
        lowest.set(hc.min(q))
        total.set(hc.sum(q))
        act.set(hc.count(q > 0.5))
        middle.set(hc.value(q, (7, -1)))
        q.set(q - 1e-3 * (middle + lowest) + 1e-6 * (total + act))

    sim = hc.Simulation(grid, step, parameters={"nu": 0.4}, **options)
    sim[q] = lambda x, y: 0.5 + 0.5 * hc.sin(6.0 * x) * hc.cos(5.0 * y)
    result = finish(sim, "q F G", steps=9)
    return Result(result.checksums, tuple(sim.values[n] for n in ("lowest", "total", "act", "middle")))


def three_axes(dtype: str, **options: Any) -> Result:
    """Run mixed derivatives, which read edges but no corners, and a nodal curl, which reads corners."""
    grid = hc.Grid((9, 8, 11), periodic=(True, True, False))
    A = grid.vector("A", dtype=dtype, boundary=hc.Antisymmetric())

    @hc.program
    def step(A: Any) -> None:
        j = hc.grad(hc.div(A)) - hc.laplacian(A)
        A.set(A + 1e-4 * j + 1e-3 * hc.Vector(c[1, -1, 1] - c for c in A))

    sim = hc.Simulation(grid, step, **options)
    random = np.random.default_rng(8)
    for component in A:
        sim[component] = random.uniform(-1, 1, grid.shape)
    return finish(sim, "A_x A_y A_z", steps=4)


def holes(dtype: str, **options: Any) -> Result:
    """Run with inactive blocks that match no cut, and with corners, walls and reductions next to them."""
    active = np.array([[0, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]], dtype=bool)
    grid = hc.Grid((26, 22), periodic=(True, False), active=active)
    u = grid.field("u", dtype=dtype, boundary=hc.Derivative(0.3))
    grid.field("v", dtype=dtype, boundary=hc.Value(0.7), location="face-y")

    @hc.program
    def step(u: Any, v: Any) -> None:
        most = hc.scalar("most")
        p = hc.stage(u * u + 0.25, "p")
        v.set(p[1, -1] - 0.5 * v + 0.1 * v[-1, 1])
        u.set(u + 0.01 * (u[1, 0] + u[-1, 1] - 2 * u) + 1e-3 * v[0, 1])
        most.set(hc.max(u) + hc.sum(u * v[0, 0]) + hc.count(u > 0.5))
        u.set(u + 1e-5 * most)

    sim = hc.Simulation(grid, step, **options)
    sim[u] = np.random.default_rng(11).uniform(-1, 1, grid.shape)
    result = finish(sim, "u v", steps=5)
    return Result(result.checksums, (*result.numbers, sim.values["most"]))


def solve(method: str) -> Problem:
    """Return a linear problem that a method solves."""

    def problem(dtype: str, **options: Any) -> Result:
        grid = hc.Grid((21, 18), walls="node")
        u = grid.field("u", dtype=dtype, boundary=hc.Value(0.0))
        solution = hc.solve(
            lambda u: u - 0.3 * hc.laplacian(u) + grid.x * u,
            u,
            rhs=lambda x, y: hc.sin(3 * x) + y,
            method=method,
            rtol=1e-8 if dtype == "float64" else 1e-4,
            **options,
        )
        assert solution.converged
        return Result({"u": solution.fields.checksum(u)}, (*solution.residuals, solution.true_residual))

    problem.__name__ = method
    return problem


PROBLEMS = [heat, wave, gray_scott, fluxes, three_axes, holes, solve("cg"), solve("cg-fused")]
