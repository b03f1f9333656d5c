"""Random programs on random grids: the engine against NumPy, and several ranks against one.

An example is a program in the form of data, which can be compiled for several grids. Shapes and spacings
are no part of the compiled code, so that one compilation serves many runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halocline as hc
from numpy_reference import Number, binary, unary
from random_program_checks import agrees_with_numpy, on_ranks, shapes_odd, shapes_tiny
from random_programs import ANY_SPEED, Recipe, options, recipes
from suites import examples

# --- one process against NumPy ---


@settings(max_examples=examples(12, 25), **ANY_SPEED)
@given(recipes(), shapes_odd, st.lists(shapes_tiny, min_size=3, max_size=3), options)
def test_random_programs_agree_with_numpy(
    recipe: Recipe, large: tuple[int, ...], tiny: list[tuple[int, ...]], drawn: dict[str, Any]
) -> None:
    agrees_with_numpy(recipe, large, tiny, drawn)


# --- linear problems against a dense matrix ---


def dense(grid: hc.Grid, shift: float) -> np.ndarray:
    """Return the matrix of shift u - laplacian u + x u.

    The walls of x are on nodes, with u = 0, and y is periodic. Rows and columns are in C order.
    """
    n, m = grid.shape
    hx, hy = grid.extent[0] / (n + 1), grid.extent[1] / m
    x = (np.arange(n) + 1) * hx
    whole = np.zeros((n, m, n, m))
    for i in range(n):
        for j in range(m):
            whole[i, j, i, j] += shift + x[i] + 2 / hx**2 + 2 / hy**2
            for k, h in ((i - 1, hx), (i + 1, hx)):
                if 0 <= k < n:
                    whole[i, j, k, j] -= 1 / h**2
            for k in ((j - 1) % m, (j + 1) % m):
                whole[i, j, i, k] -= 1 / hy**2
    return whole.reshape(n * m, n * m)


@pytest.mark.parametrize("method", ["cg", "cg-fused"])
def test_a_linear_solve_agrees_with_a_dense_matrix(method: str) -> None:
    grid = hc.Grid((9, 8), (1.0, 2.0), periodic=(False, True), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    b = np.random.default_rng(6).uniform(-1, 1, grid.shape)
    problem = hc.LinearProblem(
        lambda u: 0.5 * u - hc.laplacian(u) + grid.x * u, u, b, method=method, threads=2
    )
    matrix = dense(grid, 0.5)
    expected = np.linalg.solve(matrix, b.ravel()).reshape(grid.shape)
    solution = problem.solve(rtol=1e-12)
    assert solution.converged
    np.testing.assert_allclose(solution.fields[u], expected, rtol=1e-9, atol=1e-12)

    # the iterates are those of the textbook: residual norms agree until rounding errors grow
    x, r = np.zeros(b.size), b.ravel().copy()
    p, norms = r.copy(), [np.linalg.norm(r)]
    for _ in range(12):
        q = matrix @ p
        alpha = (r @ r) / (p @ q)
        x, r, old = x + alpha * p, r - alpha * q, r @ r
        p = r + (r @ r) / old * p
        norms.append(np.linalg.norm(r))
    np.testing.assert_allclose(solution.residuals[:13], norms, rtol=1e-6)

    # a solve that reaches the limit returns a result, from which a second solve may start
    again = hc.LinearProblem(lambda u: 0.5 * u - hc.laplacian(u) + grid.x * u, u, b, method=method)
    few = again.solve(rtol=1e-12, max_iterations=5)
    assert (few.converged, few.iterations, few.reason) == (False, 5, "iteration limit")
    rest = again.solve(rtol=1e-6, start="last")
    assert rest.residuals[0] == pytest.approx(float(few.residuals[-1]), rel=1e-9)
    assert rest.rhs_norm == few.rhs_norm == few.residuals[0]


# --- several ranks against one ---


@pytest.mark.ranks(2, 3, 4, long=(2, 4))
def test_random_programs_have_the_same_bits_on_ranks() -> None:
    count = examples(6, 12)
    assert on_ranks(count) > count


def test_unbounded_errors_stay_unbounded_times_zero() -> None:
    """Zero times an unbounded error has an unbounded error, and a value that is not formed stays NaN."""
    zero, free = (
        Number(np.zeros(1), np.zeros(1), "float64"),
        Number(np.ones(1), np.full(1, np.inf), "float64"),
    )
    unformed = Number(np.full(1, np.nan), np.full(1, np.nan), "float64")
    assert binary("mul", zero, free).error == np.inf
    assert unary("exp", Number(np.full(1, -1e4), np.full(1, 1e4), "float64")).error == np.inf
    assert np.isnan(binary("mul", zero, unformed).error)
