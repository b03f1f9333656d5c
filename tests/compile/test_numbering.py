"""Names of users: no conflict with names of solvers, of the compiler or of generated code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.solvers.cg import METHODS

# --- scalars of solvers ---


def solved(names: Sequence[str], method: str) -> np.ndarray:
    """Return the solution of a problem whose operator contains parameters of the given names."""
    grid = hc.Grid((7, 6), walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    values = {name: 20.0 + n for n, name in enumerate(names)}
    solution = hc.solve(
        lambda u: -hc.laplacian(u) + sum(hc.parameter(name) for name in names) * u,
        u,
        grid.x * sum(hc.parameter(name) for name in names),
        method=method,
        rtol=1e-12,
        parameters=values,
    )
    assert solution.converged
    largest, *parameter_values = solution.fields.evaluate(
        hc.max(abs(u)), *(hc.parameter(name) for name in names)
    )
    assert largest == np.abs(solution.fields[u]).max()
    assert parameter_values == list(values.values())
    return np.array(solution.fields[u])


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_parameter_may_have_the_name_of_any_scalar_of_a_solver(method: str) -> None:
    solver_names = (
        "alpha rho old beta next_rho curvature first goal rtol max_iterations result0 reduced1 sum0 around"
    )
    names = f"{solver_names} _sum0 _around _limit0 _passes0 _reduced1".split()
    plain = [f"mu{n}" for n in range(len(names))]
    np.testing.assert_allclose(solved(names, method), solved(plain, method), rtol=1e-11)


def test_a_parameter_may_have_the_name_of_a_result() -> None:
    grid = hc.Grid(5)
    u = grid.field("u")
    sim = hc.Simulation(
        grid, lambda u, result0: {u: u}, parameters={"result0": 3.0}, scheme=hc.Euler(), dt=1.0
    )
    sim[u] = 2.0
    assert sim.evaluate(hc.max(u) * hc.parameter("result0"), hc.parameter("result0") + 1.0) == (6.0, 4.0)


def test_two_solves_in_one_program() -> None:
    grid = hc.Grid((7, 6), walls="node")
    u, v = grid.field("u", boundary=hc.Value(0)), grid.field("v", boundary=hc.Value(0))

    @hc.program
    def solve_twice(u: Any, v: Any, tolerance: Any, limit: Any) -> None:
        METHODS["cg-fused"](lambda x: -hc.laplacian(x), u, hc.parameter("alpha"), tolerance, limit)
        METHODS["cg"](lambda x: -hc.laplacian(x) + hc.parameter("rho") * x, v, u, tolerance, limit)

    values = {"tolerance": 1e-12, "limit": 200.0, "alpha": 1.0, "rho": 3.0}
    sim = hc.Simulation(grid, solve_twice, parameters=values)
    sim.run()
    first = hc.solve(lambda x: -hc.laplacian(x), u, 1.0, rtol=1e-12)
    np.testing.assert_allclose(sim[u], first.fields[u], rtol=1e-10)
    second = hc.solve(lambda x: -hc.laplacian(x) + 3.0 * x, v, np.array(sim[u]), rtol=1e-12)
    np.testing.assert_allclose(sim[v], second.fields[v], rtol=1e-10)


@pytest.mark.parametrize("parameters", [{}, {"mu": 1.0}])
def test_a_scalar_after_a_parameter_of_its_name_is_an_error(parameters: dict[str, float]) -> None:
    grid = hc.Grid(5)
    grid.field("u")

    @hc.program
    def step(u: Any) -> None:
        u.set(u * hc.parameter("mu"))
        hc.scalar("mu").set(hc.max(u))

    with pytest.raises(InputError, match="already has a scalar or parameter named 'mu'"):
        hc.Simulation(grid, step, parameters=parameters)


def test_an_internal_scalar_is_an_unknown_parameter() -> None:
    grid = hc.Grid(5)
    grid.field("u")
    with pytest.raises(InputError, match="parameter '_mu' is unknown"):
        hc.Simulation(grid, hc.program(lambda u: u.set(u * hc.parameter("_mu"))))


# --- fields of solvers ---


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_repeated_solve_leaves_no_fields_and_compiles_nothing(method: str) -> None:
    grid = hc.Grid((9, 8), walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    right = np.random.default_rng(5).uniform(size=grid.shape)

    def problem(rhs: Any) -> hc.LinearProblem:
        return hc.LinearProblem(lambda u: -hc.laplacian(u), u, rhs, method=method)

    one, fields = problem(right), list(grid.fields)
    other = problem(2.0 * right)
    assert list(grid.fields) == fields
    assert other.prepared.library == one.prepared.library
    second, first = other.solve(rtol=1e-12).fields[u], one.solve(rtol=1e-12).fields[u]
    np.testing.assert_allclose(second, 2.0 * np.array(first), rtol=1e-9)


def test_a_repeated_simulation_leaves_no_fields_and_compiles_nothing() -> None:
    grid = hc.Grid((9, 8), periodic=True)
    u = grid.field("u")

    def equation(u: Any) -> Any:
        square = hc.stage(u * u, "kept", storage="array")
        return {u: hc.laplacian(square)}

    def simulation() -> hc.Simulation:
        return hc.Simulation(grid, equation, scheme=hc.RK3(), dt=1e-4)

    one, fields = simulation(), list(grid.fields)
    other = simulation()
    assert list(grid.fields) == fields
    assert other.prepared.library == one.prepared.library
    for sim, scale in ((one, 1.0), (other, 2.0)):
        sim[u] = scale + grid.x
    one.run(steps=2)
    alone = one.checksum("u")
    other.run(steps=2)
    assert one.checksum("u") == alone != other.checksum("u")


def test_two_temporary_fields_of_one_name_are_distinct() -> None:
    grid = hc.Grid(5)
    names = []

    @hc.program
    def twice(u: Any) -> None:
        for w in (u.like("w"), u.like("w")):
            names.append(w.name)
            w.set(u)

    u = grid.field("u")
    for _ in range(2):
        twice.trace(u)
    assert [*names, u.like("w").name] == ["w", "w2", "w", "w2", "w3"]
