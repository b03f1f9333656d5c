"""Starts of a linear solve: the tolerance does not depend on the start."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import equations
import halocline as hc
from halocline.errors import InputError
from linear_problem import N, problem, residual_in_numpy

SHORT = [pytest.param("cg", marks=pytest.mark.long), "cg-fused"]


@pytest.mark.parametrize(("n", "iterations"), [(256, 387), pytest.param(512, 783, marks=pytest.mark.long)])
def test_a_repeated_solve_has_the_tolerance_of_the_first(n: int, iterations: int) -> None:
    """The iterations are those of NumPy; UMBC HPCF-2018-10 reports 1581 at n = 1024 from a zero guess."""
    poisson = equations.poisson(n, 2, threads=1)
    for _ in range(10):
        poisson.solve(max_iterations=2, start="last")  # the residual exceeds the right-hand side
    warm = poisson.solve(start="last")
    assert warm.residuals[0] > 1.5 * warm.rhs_norm
    assert warm.converged
    assert warm.true_residual_relative <= 1.1e-6
    cold = poisson.solve()
    assert (cold.iterations, cold.converged) == (iterations, True)
    assert float(cold.residuals[0]) == cold.rhs_norm == warm.rhs_norm
    again = poisson.solve(start="last")  # at most one iteration, due to rounding errors
    assert again.iterations <= 1
    assert again.rhs_norm == cold.rhs_norm


@pytest.mark.parametrize("method", SHORT)
def test_values_on_walls_belong_to_the_right_hand_side(method: str) -> None:
    linear = problem(method)
    shape = (N, N - 4)
    of_rhs = residual_in_numpy(np.zeros(shape))
    zero = linear.solve(rtol=1e-8)
    assert zero.rhs_norm == float(zero.residuals[0]) == pytest.approx(of_rhs, rel=1e-12)
    exact = np.array(linear.fields.gather(linear.unknown))
    rng = np.random.default_rng(21)
    for size, fewer in ((1e-3, True), (1e3, False)):
        linear.fields[linear.unknown] = exact + size * rng.uniform(-1.0, 1.0, shape)
        solution = linear.solve(rtol=1e-8, start="last")
        assert solution.converged
        assert solution.rhs_norm == zero.rhs_norm
        assert (solution.residuals[0] < zero.residuals[0]) == fewer
        assert (solution.iterations < zero.iterations) == fewer
        assert solution.true_residual <= 2e-8 * of_rhs
        # a start from zero ignores the values in the field
        assert linear.solve(rtol=1e-8).fields.checksum(linear.unknown) == zero.fields.checksum(linear.unknown)


def test_a_right_hand_side_of_zero_has_the_solution_zero_from_any_start() -> None:
    grid = hc.Grid((8, 8), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    linear = hc.LinearProblem(lambda v: -hc.laplacian(v), u, 0.0)
    for start in ("zero", "last"):
        linear.fields[u] = 3.0
        solution = linear.solve(start=start)
        assert (solution.converged, solution.iterations, solution.rhs_norm) == (True, 0, 0.0)
        assert not solution.fields.gather(u).any()


@pytest.mark.parametrize("method", SHORT)
def test_a_warm_start_resumes_from_a_checkpoint_with_the_same_bits(method: str, tmp_path: Path) -> None:
    def warm() -> hc.LinearProblem:
        linear = problem(method, threads=1)
        linear.fields[linear.unknown] = lambda x, y: 2.0 + x * y
        return linear

    whole = warm().solve(rtol=1e-7, start="last")
    part = warm().solve(rtol=1e-7, start="last", max_iterations=9, checkpoint=hc.Checkpoint(tmp_path))
    assert (part.iterations, part.reason) == (9, "iteration limit")
    for start in ("zero", "last"):  # the second solve specifies a start
        rest = problem(method, threads=1).solve(rtol=1e-7, start=start, resume=tmp_path)
        assert (rest.iterations, rest.rhs_norm) == (whole.iterations, whole.rhs_norm)
        np.testing.assert_array_equal(rest.residuals, whole.residuals)
        assert rest.fields.checksum("u") == whole.fields.checksum("u")


def test_an_unknown_start_is_rejected() -> None:
    with pytest.raises(InputError, match=r"start 'zeros' is unknown \(did you mean .zero.\?\)"):
        problem().solve(start="zeros")
    u = hc.Grid(4).field("u", boundary=hc.Value(0.0))
    with pytest.raises(InputError, match="start 'first' is unknown"):
        hc.solve(lambda v: -hc.laplacian(v), u, 1.0, start="first")
