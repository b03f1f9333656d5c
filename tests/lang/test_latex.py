"""Formulas in LaTeX of expressions, time derivatives and programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import halocline as hc
from halocline.lang.latex import formula, symbol

FORMULAS: dict[str, Callable[..., Any]] = {
    r"\nabla^2 T": lambda T, u, rho: hc.laplacian(T),
    r"\partial_x \partial_y \left(T^{2}\right)": lambda T, u, rho: hc.derivative(T**2, "x", "y"),
    r"\partial_x^2 T": lambda T, u, rho: hc.second(T, 0),
    r"\nabla\cdot \mathbf{u}": lambda T, u, rho: hc.div(u),
    r"\nabla\cdot \left(\rho \, u_{x}, \rho \, u_{y}\right)": lambda T, u, rho: hc.div(rho * u),
    r"u_{x} \, \partial_x T + u_{y} \, \partial_y T": lambda T, u, rho: hc.dot(u, hc.grad(T)),
    r"\frac{2 \, \nabla\cdot \mathbf{u}}{1 + \rho}": lambda T, u, rho: 2 * hc.div(u) / (1 + rho),
    r"T \, \left(\rho - u_{x}\right)": lambda T, u, rho: T * (rho - u[0]),
    r"T - \rho - u_{x}": lambda T, u, rho: T - (rho + u[0]),
    r"-\nabla^2 T": lambda T, u, rho: -hc.laplacian(T),
    r"\frac{1}{T^{6}}": lambda T, u, rho: T**-6,
    r"\left(T \, \rho\right)^{2}": lambda T, u, rho: (T * rho) ** 2,
    r"\frac{1}{3} \, T": lambda T, u, rho: T * (1 / 3),
    r"2.5 \cdot 10^{-9} \, T": lambda T, u, rho: T * 2.5e-9,
    r"T[1, 0] - T[-1, 0]": lambda T, u, rho: T[1, 0] - T[-1, 0],
    r"\overline{T}": lambda T, u, rho: hc.to(T, "face-x"),
    r"e^{-x^{2}}": lambda T, u, rho: hc.exp(-(T.grid.x**2)),
    r"\sqrt{\left|T\right|}": lambda T, u, rho: hc.sqrt(abs(T)),
    r"\ln\left(T\right)": lambda T, u, rho: hc.log(T),
    r"\max\left(T, \rho\right)": lambda T, u, rho: hc.maximum(T, rho),
    r"\max\left(T\right)": lambda T, u, rho: hc.max(T),
    r"\begin{cases} T & \text{if } T > 0 \\ 0 & \text{otherwise} \end{cases}": lambda T, u, rho: hc.where(
        T > 0, T, 0.0
    ),
}


@pytest.fixture
def fields() -> tuple[Any, Any, Any]:
    grid = hc.Grid((8, 8), periodic=True)
    return grid.field("T"), grid.vector("u"), grid.field("rho")


@pytest.mark.parametrize("text", FORMULAS)
def test_expressions_are_written_with_their_operators(text: str, fields: tuple[Any, Any, Any]) -> None:
    assert formula(FORMULAS[text](*fields)) == text


def test_notebooks_show_expressions_as_formulas(fields: tuple[Any, Any, Any]) -> None:
    assert hc.laplacian(fields[0])._repr_latex_() == r"$\displaystyle \nabla^2 T$"


def test_notation_does_not_change_nodes(fields: tuple[Any, Any, Any]) -> None:
    """An equal formula with explicit offsets is the same node, and has the notation of the operator."""
    u = fields[0]
    by_hand = (u[1, 0] - u[-1, 0]) * (0.5 * (1.0 / u.grid.h(0)))
    assert hc.derivative(u, 0).placement.node is by_hand
    assert formula(by_hand) == r"\partial_x T"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kappa", r"\kappa"),
        ("rho_1", r"\rho_{1}"),
        ("u_x", "u_{x}"),
        ("lnrho", r"\mathrm{lnrho}"),
        ("h_x", r"\Delta x"),
        ("dt", r"\Delta t"),
        ("cs2_max", r"\mathrm{cs2}_{\mathrm{max}}"),
        ("next'", r"\mathrm{next}"),
        ("__", r"\mathrm{\_\_}"),
    ],
)
def test_names_become_symbols(name: str, text: str) -> None:
    assert symbol(name) == text


def test_long_repeated_parts_are_written_once(fields: tuple[Any, Any, Any]) -> None:
    T, u, rho = fields
    part = hc.exp(hc.sqrt(T * T + rho * rho) * hc.div(u)) + hc.sin(T * rho + u[0])
    for _ in range(20):  # 2^20 copies of the part, without names
        part = hc.sqrt(part * hc.cos(part))
    text = formula(part)
    assert len(text) < 5000
    assert r"\quad\text{where } a_{1} = " in text
    assert text.count(r"\nabla\cdot") == 1


def test_equations_of_a_simulation_are_its_time_derivatives() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    grid.field("T")
    grid.vector("u", location="face")

    def heat(T: Any, u: Any, kappa: Any, t: Any) -> Any:
        return {T: kappa * hc.laplacian(T) - hc.div(u) + hc.sin(t), u: -hc.grad(T)}

    sim = hc.Simulation(grid, heat, parameters={"kappa": 0.1}, scheme=hc.RK3(), dt=1e-4, order=4)
    assert sim.equations.rows == (
        r"\partial_t T &= \kappa \, \nabla^2 T + \sin\left(t\right) - \nabla\cdot \mathbf{u}",
        r"\partial_t u_{x} &= -\partial_x T",
        r"\partial_t u_{y} &= -\partial_y T",
    )
    assert str(sim.equations).startswith("\\begin{aligned}\n")
    assert sim.equations._repr_latex_().startswith("$$\n\\begin{aligned}\n")
    assert set(grid.fields) == {"T", "u_x", "u_y"} | {f.name for f in sim.program_fields}


def test_earlier_values_have_marks_that_powers_may_follow() -> None:
    grid = hc.Grid(8, periodic=True)
    for name in ("T", "u"):
        grid.field(name)

    @hc.program
    def step(T: Any, u: Any) -> None:
        square = T * T
        hc.assign({T: 0.5 * T})
        hc.assign({u: square + T})

    text = str(hc.Simulation(grid, step, dt=0.1).equations)
    assert "{T^{(1)}}^{2}" in text
    assert "T^{(1)}^" not in text


def test_equations_of_a_program_are_its_statements() -> None:
    grid = hc.Grid((7, 7), walls="node")
    for name in ("w", "b"):
        grid.field(name, boundary=hc.Value(0))

    @hc.program
    def step(w: Any, b: Any, dt: Any, c: Any) -> None:
        flux = hc.stage(c * w, "flux")
        hc.assign({b: w, w: 2 * w - b + dt**2 * hc.laplacian(flux)})
        m = hc.scalar("m")
        m.set(hc.max(abs(w)))
        with hc.when(m > 3):
            w.set(w / m)
        hc.stop(m < 0, "never")

    sim = hc.Simulation(grid, step, parameters={"c": 1.0}, dt=1e-3)
    rows = sim.equations.rows
    assert rows[:3] == (
        r"b &\leftarrow w",
        r"w &\leftarrow 2 \, w + \Delta t^{2} \, \nabla^2 \mathrm{flux} - b",
        r"\mathrm{flux} &= c \, w",
    )
    assert rows[3:] == (
        r"m &\leftarrow \max\left(\left|w\right|\right)",
        r"&\text{if } m > 3",
        r"\quad w &\leftarrow \frac{w}{m}",
    )
