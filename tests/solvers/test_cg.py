"""True residual b - A x of a solution, compared with the recursive residual of conjugate gradients."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest

import halocline as hc
from halocline.solvers.cg import METHODS
from halocline.solvers.linear import MARGIN, reachable
from linear_problem import problem, residual_in_numpy
from suites import cases


@cases("method", sorted(METHODS), default=["cg-fused"])
def test_recursive_and_true_residual_agree_above_rounding(method: str, caplog) -> None:
    linear = problem(method, threads=2)
    with caplog.at_level(logging.WARNING, "halocline"):
        solution = linear.solve(rtol=1e-6)
    assert (solution.converged, solution.reason, caplog.messages) == (True, "converged", [])
    assert solution.true_residual == pytest.approx(float(solution.residuals[-1]), rel=1e-7)
    assert solution.rhs_norm == float(solution.residuals[0])  # the start is zero
    assert solution.true_residual_relative == solution.true_residual / solution.rhs_norm
    values = solution.fields.gather(linear.unknown)
    assert solution.true_residual == pytest.approx(residual_in_numpy(values), rel=1e-7)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_below_rounding_only_the_recursive_residual_decreases(method: str, caplog) -> None:
    linear = problem(method)
    with caplog.at_level(logging.WARNING, "halocline"):
        solution = linear.solve(rtol=1e-30)
    assert solution.residual_relative <= 1e-30
    assert 1e-16 < solution.true_residual_relative < 1e-11
    assert (solution.converged, solution.reason) == (False, "rounding limit")
    # NumPy rounds in another order: only the magnitude agrees
    in_numpy = residual_in_numpy(solution.fields.gather(linear.unknown))
    assert solution.true_residual / 4 < in_numpy < 4 * solution.true_residual
    (message,) = caplog.messages
    tolerance = reachable(solution.true_residual_relative)
    assert "the recursive residual reached rtol=1e-30" in message
    assert f"b - A x stagnates at {solution.true_residual_relative:.2g} because of rounding errors" in message
    assert message.endswith(f"Use rtol={tolerance:g} or larger.")

    # this tolerance is reached
    again = problem(method).solve(rtol=tolerance)
    assert (again.converged, again.reason) == (True, "converged")
    assert again.true_residual_relative <= MARGIN * tolerance
    assert again.iterations < solution.iterations


def test_a_start_that_cannot_be_improved_has_converged(caplog) -> None:
    linear = problem()
    linear.solve(rtol=1e-15)
    caplog.clear()
    second = linear.solve(rtol=1e-6, start="last")
    assert (second.converged, second.reason, second.iterations) == (True, "converged", 0)
    assert second.residual_relative == pytest.approx(second.true_residual_relative, rel=1e-6)
    assert caplog.messages == []


def test_a_zero_right_hand_side_has_no_residual() -> None:
    grid = hc.Grid((8, 8), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    solution = hc.solve(lambda v: -hc.laplacian(v), u, 0.0)
    assert (solution.converged, solution.iterations) == (True, 0)
    assert (solution.true_residual, solution.true_residual_relative) == (0.0, 0.0)


def test_the_log_has_a_solve_that_ends_at_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    """The default limit causes a warning; a given limit may be intended, and is only logged."""
    caplog.set_level("INFO", "halocline")
    problem().solve(rtol=1e-6, max_iterations=5)
    u = hc.Grid(8, walls="node").field("u", boundary=hc.Value(0.0))
    solution = hc.solve(lambda u: u + u[1] - u[-1], u, 1.0)  # not symmetric
    assert (solution.reason, solution.iterations) == ("iteration limit", 80)
    of_given_limit, of_default_limit = (r for r in caplog.records if "not converged after" in r.message)
    assert (of_given_limit.levelname, of_default_limit.levelname) == ("INFO", "WARNING")
    assert f"not converged after {solution.iterations} iterations" in of_default_limit.message


def test_the_true_residual_is_computed_at_the_iteration_limit() -> None:
    solution = problem().solve(rtol=1e-6, max_iterations=5)
    assert (solution.converged, solution.reason) == (False, "iteration limit")
    assert solution.true_residual == pytest.approx(float(solution.residuals[-1]), rel=1e-9)


def test_a_right_hand_side_may_contain_old_values_of_the_unknown() -> None:
    """Two implicit steps of diffusion, (1 - dt laplacian) u = u + dt, use the old values on the right."""
    grid = hc.Grid((24, 20), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    step = hc.LinearProblem(lambda v: v - 1e-3 * hc.laplacian(v), u, u + 1e-3)
    for _ in range(2):
        before = np.array(step.fields.gather(u)) if u.name in step.fields.store.storages else 0.0
        solution = step.solve(rtol=1e-8)
        assert solution.converged
        after = np.pad(solution.fields.gather(u), 1)
        second = sum(
            (np.roll(after, 1, a) - 2 * after + np.roll(after, -1, a)) / grid.spacing[a] ** 2 for a in (0, 1)
        )
        residual = before + 1e-3 - (after - 1e-3 * second)[1:-1, 1:-1]
        assert solution.true_residual == pytest.approx(np.linalg.norm(residual), rel=1e-5)


def test_the_true_residual_uses_no_additional_memory_or_pass() -> None:
    linear = problem()
    vectors = sorted(linear.fields.store.storages)
    solution = linear.solve(rtol=1e-6)
    assert sorted(linear.fields.store.storages) == vectors
    assert len(vectors) <= 5  # x, r, p, and q or the next values
    assert len(solution.residuals) == solution.iterations + 1
    (loop,) = (o for o in linear.schedule.operations if hasattr(o, "body"))
    assert linear.schedule.operations[-1] is loop  # no later operation counts in the time of the solve


@pytest.mark.ranks(1, 2, 3, long=(1, 2))
@cases("method", sorted(METHODS), default=["cg"])
def test_the_true_residual_has_the_same_bits_on_any_layout(method: str) -> None:
    from mpi4py import MPI

    results = set()
    for options in ({"threads": 1}, {"threads": 2, "patch": 5}, {"threads": 2, "decomposition": "1d-y"}):
        solution = problem(method, **options).solve(rtol=1e-30)
        results.add((solution.true_residual.hex(), solution.reason))
    assert len(results) == 1
    alone = problem(method, threads=1, communicator=MPI.COMM_SELF).solve(rtol=1e-30)
    assert results == {(alone.true_residual.hex(), "rounding limit")}


def test_a_tolerance_that_can_be_reached_has_one_digit() -> None:
    assert [reachable(x) for x in (2.1e-12, 1e-12, 9.5e-13, 0.0123)] == [3e-12, 1e-12, 1e-12, 0.02]
    for x in np.random.default_rng(2).uniform(-15, 0, 100):
        assert 10**x <= reachable(10**x) * (1 + 1e-12) < math.inf
