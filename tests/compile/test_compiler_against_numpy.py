"""Random programs on random grids: the engine against a plain evaluation in NumPy, and ranks against one.

An example is a program drawn as data, so that it can be put on several grids: shapes and spacings are no part
of what is compiled, and one compilation serves many runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, note, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.errors import InputError
from numpy_reference import Number, Undecided, binary, unary
from random_programs import ANY_SPEED, PARAMETERS, Case, Recipe, options, recipes, shapes_to_cut, too_small

# --- one process against NumPy ---


def check(recipe: Recipe, shape: tuple[int, ...], *, must_fit: bool, **options: Any) -> bool:
    case = Case(recipe, shape, (1.5, 0.75, 1.0)[: recipe.ndim])
    try:
        sim = case.simulate(**options)
    except InputError as error:
        if must_fit or not too_small(error):
            raise
        return False
    try:
        wanted = case.reference()
    except Undecided:
        return False
    compared = 0
    for f in case.own:
        if f.name not in sim.store.storages:
            continue
        have, want = np.asarray(sim[f], dtype=np.float64), wanted.fields[f]
        assert np.isfinite(want.value).all(), f"the reference of {f.name} is not finite"
        worst = np.max(np.abs(have - want.value) - want.error)
        if worst > 0:
            at = np.unravel_index(np.argmax(np.abs(have - want.value) - want.error), have.shape)
            expected = f"{want.value[at]!r} +- {want.error[at]:.2g}"
            note(f"{f.name}{list(map(int, at))} of {shape}: {have[at]!r}, expected {expected}")
        assert worst <= 0
        sure = want.error <= (1e-3 if f.dtype == "float32" or "float32" in str(recipe) else 1e-9)
        compared += int(sure.sum())
    for name, value in wanted.scalars.items():
        if name in sim.values and name not in PARAMETERS:
            assert abs(sim.values[name] - float(value.value)) <= 2 * float(value.error), name
    event("compared" if compared else "nothing was certain")
    return compared > 0


shapes_tiny = st.tuples(*[st.integers(1, 7)] * 3)
shapes_odd = st.tuples(*[st.integers(13, 19)] * 3)


def agrees_with_numpy(
    recipe: Recipe, large: tuple[int, ...], tiny: list[tuple[int, ...]], drawn: dict[str, Any]
) -> None:
    note(str(recipe))
    assume(check(recipe, large[: recipe.ndim], must_fit=True, **drawn))
    for shape in tiny:
        check(recipe, shape[: recipe.ndim], must_fit=False, **drawn)


@settings(max_examples=25, **ANY_SPEED)
@given(recipes(), shapes_odd, st.lists(shapes_tiny, min_size=3, max_size=3), options)
def test_random_programs_agree_with_numpy(
    recipe: Recipe, large: tuple[int, ...], tiny: list[tuple[int, ...]], drawn: dict[str, Any]
) -> None:
    agrees_with_numpy(recipe, large, tiny, drawn)


@pytest.mark.long
@settings(max_examples=600, **ANY_SPEED)
@given(recipes(), shapes_odd, st.lists(shapes_tiny, min_size=3, max_size=3), options)
def test_many_random_programs_agree_with_numpy(
    recipe: Recipe, large: tuple[int, ...], tiny: list[tuple[int, ...]], drawn: dict[str, Any]
) -> None:
    agrees_with_numpy(recipe, large, tiny, drawn)


# --- linear problems against a dense matrix ---


def dense(grid: hc.Grid, shift: float) -> np.ndarray:
    """shift u - laplacian u + x u, with u = 0 on the wall of x (on nodes), y around; cells in C order."""
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
    want = np.linalg.solve(matrix, b.ravel()).reshape(grid.shape)
    solution = problem.solve(rtol=1e-12)
    assert solution.converged
    np.testing.assert_allclose(solution.fields[u], want, rtol=1e-9, atol=1e-12)

    # the same iterates as the textbook's: residual norms agree until rounding parts them
    x, r = np.zeros(b.size), b.ravel().copy()
    p, norms = r.copy(), [np.linalg.norm(r)]
    for _ in range(12):
        q = matrix @ p
        alpha = (r @ r) / (p @ q)
        x, r, old = x + alpha * p, r - alpha * q, r @ r
        p = r + (r @ r) / old * p
        norms.append(np.linalg.norm(r))
    np.testing.assert_allclose(solution.residuals[:13], norms, rtol=1e-6)

    # a solve that reaches the limit has a result, from which a second solve may start
    again = hc.LinearProblem(lambda u: 0.5 * u - hc.laplacian(u) + grid.x * u, u, b, method=method)
    few = again.solve(rtol=1e-12, max_iterations=5)
    assert (few.converged, few.iterations, few.reason) == (False, 5, "iteration limit")
    rest = again.solve(rtol=1e-6, start="last")
    assert rest.residuals[0] == pytest.approx(float(few.residuals[-1]), rel=1e-9)
    assert rest.rhs_norm == few.rhs_norm == few.residuals[0]


# --- several ranks against one ---


def same_on_ranks(
    recipe: Recipe, shape: tuple[int, ...], drawn: dict[str, Any], strategies: list[str]
) -> int:
    """Whether checksums on all ranks are those of one; how many decompositions were thick enough."""
    from mpi4py import MPI

    def checksums(case: Case, sim: hc.Simulation) -> dict[str, str]:
        return {f.name: sim.checksum(f.name) for f in case.own if f.name in sim.store.storages}

    found = {}
    for strategy in strategies:
        case = Case(recipe, shape, (1.5, 0.75, 1.0)[: recipe.ndim])
        try:
            parted = case.simulate(decomposition=strategy, **drawn)
        except InputError as error:
            if too_small(error):
                continue
            raise
        found[strategy] = checksums(case, parted), dict(parted.values)
    # after all ranks together, of which one compiles what each would for itself
    alone = Case(recipe, shape, (1.5, 0.75, 1.0)[: recipe.ndim])
    serial = alone.simulate(communicator=MPI.COMM_SELF, threads=1)
    wanted = checksums(alone, serial)
    for strategy, (sums, values) in found.items():
        assert sums == wanted, strategy
        for name, value in serial.values.items():
            assert values[name] == value or np.isnan(value), name
    return len(found)


two_strategies = st.lists(
    st.sampled_from(["optimal", "optimal", "bisection", "row", "1d-x", "1d-y", "2d"]),
    min_size=2,
    max_size=2,
    unique=True,
)


def on_ranks(examples: int) -> int:
    """Random programs, the same on every rank (see conftest); the number of comparisons."""
    compared = 0

    @settings(max_examples=examples, **ANY_SPEED)
    @given(recipes(), shapes_to_cut, options, two_strategies)
    def example(recipe: Recipe, shape: tuple[int, ...], drawn: dict[str, Any], strategies: list[str]) -> None:
        nonlocal compared
        compared += same_on_ranks(recipe, shape[: recipe.ndim], drawn, strategies)

    example()
    return compared


@pytest.mark.ranks(2, 3, 4, long=(2, 4))
def test_random_programs_are_the_same_on_ranks() -> None:
    assert on_ranks(12) > 12


@pytest.mark.long
@pytest.mark.ranks(2, 3, 4, 6, 8, timeout=3000)
def test_many_random_programs_are_the_same_on_ranks() -> None:
    assert on_ranks(150) > 150


def test_what_has_no_bound_has_none_times_zero() -> None:
    """And what lies in a ghost that has not been formed stays that."""
    zero, free = (
        Number(np.zeros(1), np.zeros(1), "float64"),
        Number(np.ones(1), np.full(1, np.inf), "float64"),
    )
    unformed = Number(np.full(1, np.nan), np.full(1, np.nan), "float64")
    assert binary("mul", zero, free).error == np.inf
    assert unary("exp", Number(np.full(1, -1e4), np.full(1, 1e4), "float64")).error == np.inf
    assert np.isnan(binary("mul", zero, unformed).error)
