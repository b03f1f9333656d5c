"""Differences and upwinding: their orders, and identities of vector calculus."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import halocline as hc
from loops import some
from suites import cases


def errors(n: int, order: int, ndim: int) -> dict[str, float]:
    """Return the maximum error of every operator on smooth periodic fields, with n cells per wave."""
    grid = hc.Grid((n,) * ndim, 2 * math.pi, periodic=True)
    f = grid.field("f")
    v = grid.vector("v", components=3)
    s = [np.sin, np.cos]
    points = np.meshgrid(*[(np.arange(n) + 0.5) * 2 * math.pi / n] * ndim, indexing="ij")
    x, y = points[0], points[1]
    z = points[2] if ndim == 3 else 0.0 * x

    def field(a: int, b: int, c: int) -> Any:
        """Return sin or cos of each coordinate, and its derivatives by a count per axis."""

        def wave(axis: Any, kind: int, derivatives: int) -> Any:
            turns = kind + derivatives
            return (-1) ** (((turns + 0) // 2) % 2) * s[turns % 2](axis)

        return lambda i=0, j=0, k=0: (
            wave(x, a, i) * wave(y, b, j) * (wave(z, c, k) if ndim == 3 else float(k == 0))
        )

    g = field(0, 1, 1)
    w = [field(1, 0, 0), field(1, 1, 0), field(1, 1, 1)]
    d = lambda q, *axes: q(*(axes.count(a) for a in range(3)))  # noqa: E731
    spread = (d(w[0], 0) + d(w[1], 1) + d(w[2], 2)) / 3
    exact: dict[str, Any] = {
        "dx": g(1), "dy": g(0, 1), "dz": g(0, 0, 1),
        "dxx": g(2), "dyy": g(0, 2),
        "dxy": g(1, 1), "dyz": g(0, 1, 1),
        "laplacian": g(2) + g(0, 2) + g(0, 0, 2),
        "div": d(w[0], 0) + d(w[1], 1) + d(w[2], 2),
        "curl_x": d(w[2], 1) - d(w[1], 2), "curl_y": d(w[0], 2) - d(w[2], 0),
        "curl_z": d(w[1], 0) - d(w[0], 1),
        **{f"grad_div_{'xyz'[i]}": d(w[0], 0, i) + d(w[1], 1, i) + d(w[2], 2, i) for i in range(3)},
        "strain_xx": d(w[0], 0) - spread, "strain_zz": d(w[2], 2) - spread,
        "strain_xy": (d(w[0], 1) + d(w[1], 0)) / 2, "strain_yz": (d(w[1], 2) + d(w[2], 1)) / 2,
    }  # fmt: skip
    out = {name: grid.field(name) for name in exact}

    def program() -> None:
        with hc.order(order):
            grad = hc.grad(f)
            curl, strain = hc.curl(v), hc.traceless_strain(v)
            operators = {
                "dx": hc.derivative(f, "x"), "dy": grad[1], "dz": hc.derivative(f, 2),
                "dxx": hc.second(f, "x"), "dyy": hc.derivative(f, "y", "y"),
                "dxy": hc.mixed(f, "x", "y"), "dyz": hc.derivative(f, "y", "z"),
                "laplacian": hc.laplacian(f), "div": hc.div(v),
                "curl_x": curl[0], "curl_y": curl[1], "curl_z": curl[2],
                **{f"grad_div_{axis}": e for axis, e in zip("xyz", hc.grad_div(v), strict=True)},
                "strain_xx": strain[0][0], "strain_zz": strain[2][2],
                "strain_xy": strain[0][1], "strain_yz": strain[1][2],
            }  # fmt: skip
        for name, e in operators.items():
            out[name].set(e)

    sim = hc.Simulation(grid, hc.program(program))
    sim[f] = g()
    for component, q in zip(v, w, strict=True):
        sim[component] = q()
    sim.run()
    return {name: float(np.abs(sim[out[name]] - exact[name]).max()) for name in exact}


@cases("ndim, order", itertools.product((2, 3), (2, 4, 6, 8)), default=[(2, 2), (2, 4), (3, 6), (2, 8)])
def test_operators_converge_with_their_documented_order(order: int, ndim: int) -> None:
    coarse, fine = errors(16, order, ndim), errors(32, order, ndim)
    for name, error in some(fine.items()):
        if ndim == 2 and name in ("dz", "dyz", "grad_div_z"):
            assert error == coarse[name] == 0.0  # the grid has no such axis
            continue
        assert 1e-14 < error < 0.1
        assert math.log2(coarse[name] / error) == pytest.approx(order, abs=0.25), name


@pytest.mark.parametrize("order", [2, 4, 6, 8])
def test_upwinding_loses_one_order_and_hyperdiffusion_has_two(order: int) -> None:
    """Upwinding with a speed that changes sign loses one order, and the sixth derivative has order two."""
    errors_of_sizes = []
    for n in (32, 64):
        grid = hc.Grid(n, 2 * math.pi, periodic=True)
        f, u, advected, smoothed = (grid.field(name) for name in ("f", "u", "advected", "smoothed"))

        def program(f: Any = f, u: Any = u, advected: Any = advected, smoothed: Any = smoothed) -> None:
            with hc.order(order):
                advected.set(u * hc.derivative(f, 0) - hc.upwinding(f, (u,)))
            smoothed.set(hc.hyperdiffusion(f))

        sim = hc.Simulation(grid, hc.program(program), threads=1)
        x = (np.arange(n) + 0.5) * 2 * math.pi / n
        sim[f], sim[u] = np.sin(x), 1 + 2 * np.cos(x)
        sim.run()
        upwind_error = np.abs(sim[advected] - (1 + 2 * np.cos(x)) * np.cos(x)).max()
        errors_of_sizes.append((upwind_error, np.abs(sim[smoothed] + np.sin(x)).max()))
    upwind, hyper = (math.log2(coarse / fine) for coarse, fine in zip(*errors_of_sizes, strict=True))
    assert upwind == pytest.approx(order - 1, abs=0.25)
    assert hyper == pytest.approx(2, abs=0.1)


def test_vector_calculus_identities_are_exact_for_commuting_differences() -> None:
    """div curl = 0 and curl grad = 0 hold to rounding, since differences along two axes commute."""
    grid = hc.Grid((8, 9, 10), periodic=True)
    f, v = grid.field("f"), grid.vector("v")
    a, b = grid.field("a"), grid.vector("b")

    def program() -> None:
        rotation = hc.Vector(hc.stage(c, storage="patch") for c in hc.curl(v))
        slope = hc.Vector(hc.stage(c, storage="inline") for c in hc.grad(f))
        a.set(hc.div(rotation))
        b.set(hc.curl(slope))

    sim = hc.Simulation(grid, hc.program(program))
    random = np.random.default_rng(2)
    for field in (f, *v):
        sim[field] = random.uniform(-1, 1, grid.shape)
    sim.run()
    for field in (a, *b):
        assert 0 < np.abs(sim[field]).max() < 1e-11
