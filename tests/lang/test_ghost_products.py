"""Notices about differences of products across walls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import halocline as hc
from stepped_programs import program_of


def notices(right_side: Callable[..., Any], order: int = 2, **grid_options: Any) -> list[str]:
    """Return the notices of a program that sets u to an expression of u, v, k and w."""
    grid = hc.Grid((8, 8), **grid_options)
    zero = None if all(grid.periodic) else hc.Value(0)
    u, v = (grid.field(name, boundary=zero) for name in "uv")
    k = grid.field("k", boundary=None if zero is None else hc.Derivative(0))
    w = grid.field("w", boundary=None if zero is None else hc.Value(1, order=3))
    q = grid.field("q", location="face-x", boundary=zero)

    @hc.program
    def step(kappa: Any) -> None:
        u.set(right_side(u, v, k, w, q, kappa))

    program = program_of(grid, step, parameters={"kappa": 1.0}, order=order)
    return program.notices


PRODUCTS: dict[str, tuple[Callable[..., Any], str]] = {
    "product": (lambda u, v, k, w, q, kappa: hc.laplacian(u * v), "laplacian"),
    "square": (lambda u, v, k, w, q, kappa: hc.derivative(u**2, "x"), "derivative"),
    "function": (lambda u, v, k, w, q, kappa: hc.second(hc.exp(u), 0), "second"),
    "quotient": (lambda u, v, k, w, q, kappa: hc.mixed(k / u, 0, 1), "mixed"),
    "sum": (lambda u, v, k, w, q, kappa: hc.laplacian(2 * k + kappa * u * v), "laplacian"),
    "stage": (lambda u, v, k, w, q, kappa: hc.laplacian(hc.stage(u * v)), "laplacian"),
    "selection": (lambda u, v, k, w, q, kappa: hc.laplacian(hc.where(u > 0, k, 1.0)), "laplacian"),
    "vector": (lambda u, v, k, w, q, kappa: hc.div([u * v, k]), "div"),
    "gradient": (lambda u, v, k, w, q, kappa: hc.grad(abs(u))[1], "grad"),
    "difference": (lambda u, v, k, w, q, kappa: hc.difference(u * v, 0, 2), "difference"),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_difference_of_a_product_at_a_wall_gives_a_warning(name: str) -> None:
    right_side, operator = PRODUCTS[name]
    (notice,) = notices(right_side)
    line = right_side.__code__.co_firstlineno
    assert notice.startswith(f"{__file__}:{line}: {operator} of ")
    assert "is computed from the ghosts of u" in notice
    assert "Store the expression in a field with its own boundary condition" in notice
    assert not notices(right_side, periodic=True)
    # points of these fields are on the wall, and no difference of order 2 reads beyond it
    assert not notices(right_side, walls="node")
    if name != "difference":  # `difference` has no order
        assert notices(right_side, walls="node", order=4)


LINEAR: dict[str, Callable[..., Any]] = {
    "field": lambda u, v, k, w, q, kappa: hc.laplacian(u),
    "number": lambda u, v, k, w, q, kappa: hc.laplacian(2.0 * u / 3.0 - v),
    "parameter": lambda u, v, k, w, q, kappa: hc.laplacian(kappa * u),
    "coordinate": lambda u, v, k, w, q, kappa: hc.laplacian(u * u.grid.x),
    "even factor": lambda u, v, k, w, q, kappa: hc.laplacian(k * u),
    "even": lambda u, v, k, w, q, kappa: hc.laplacian(k**2),
    "polynomial ghosts": lambda u, v, k, w, q, kappa: hc.laplacian(w**2),
    "mask": lambda u, v, k, w, q, kappa: hc.laplacian(hc.where(k > 0, u, v)),
    "product of derivatives": lambda u, v, k, w, q, kappa: (
        u * hc.laplacian(v) + hc.dot(hc.grad(u), hc.grad(v))
    ),
    "flux on faces": lambda u, v, k, w, q, kappa: hc.derivative(q * q, "x"),
    "operator of an operator": lambda u, v, k, w, q, kappa: hc.laplacian(hc.laplacian(u)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_a_difference_without_a_product_of_odd_ghosts_gives_no_warning(name: str) -> None:
    assert notices(LINEAR[name]) == []
    assert notices(LINEAR[name], order=2, walls="node") == []


def test_only_the_axes_with_walls_count() -> None:
    along_x = notices(lambda u, v, k, w, q, kappa: hc.derivative(u * v, "x"), periodic="y")
    along_y = notices(lambda u, v, k, w, q, kappa: hc.derivative(u * v, "y"), periodic="y")
    assert len(along_x) == 1
    assert along_y == []


def test_equations_and_linear_problems_warn(caplog: pytest.LogCaptureFixture) -> None:
    grid = hc.Grid((8, 8))
    m, lam = (grid.field(name, boundary=hc.Value(0)) for name in ("m", "lam"))
    hc.Simulation(grid, lambda m, lam: {m: hc.laplacian(m * lam)}, scheme=hc.RK3(), dt=1e-4, threads=1)
    hc.LinearProblem(lambda m: -hc.laplacian(lam * m), m, 1.0, threads=1)
    warnings = [r.getMessage() for r in caplog.records if "ghosts of lam and m" in r.getMessage()]
    assert len(warnings) == 2
    assert all(text.startswith(f"{__file__}:") for text in warnings)
