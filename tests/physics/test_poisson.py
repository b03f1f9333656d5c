"""The elliptic problem compared with NumPy, with published numbers, and with itself on other ranks."""

from __future__ import annotations

import resource
from types import SimpleNamespace

import numpy as np
import pytest

import suites
from halocline.errors import InputError
from halocline.run.ranks.communicator import Communicator
from halocline.run.ranks.mpi import world
from halocline.study.reporting.solves import predicted_bytes
from loops import some
from poisson_runs import record_of, solve_with_result
from record_keys import ALL, KEYS

# -- the problem in NumPy ------------------------------------------------------------------------------------


def coordinates(n: int, dim: int) -> list[np.ndarray]:
    x = np.arange(1, n + 1) / (n + 1)
    return np.meshgrid(*[x] * dim, indexing="ij")


def right_hand_side(n: int, dim: int) -> np.ndarray:
    """Return h² f, from -Δ Π sin²(π x_i) term by term; in two dimensions Eq. 3.1."""
    xs = coordinates(n, dim)
    f = np.zeros((n,) * dim)
    for i in range(dim):
        term = -2 * np.pi**2 * np.cos(2 * np.pi * xs[i])
        for j in range(dim):
            if j != i:
                term = term * np.sin(np.pi * xs[j]) ** 2
        f += term
    return f / (n + 1) ** 2


def apply(v: np.ndarray) -> np.ndarray:
    """Return 2 dim v minus the neighbours, with zeros beyond the walls."""
    padded = np.pad(v, 1)
    middle = (slice(1, -1),) * v.ndim
    out = 2.0 * v.ndim * v
    for axis in range(v.ndim):
        out = out - np.roll(padded, 1, axis)[middle] - np.roll(padded, -1, axis)[middle]
    return out


def conjugate_gradients(b: np.ndarray, rtol: float) -> tuple[np.ndarray, int]:
    x, r = np.zeros_like(b), b.copy()
    p, rho = r.copy(), float((r * r).sum())
    goal, count = rtol**2 * rho, 0
    while rho > goal:
        q = apply(p)
        alpha = rho / float((p * q).sum())
        x += alpha * p
        r -= alpha * q
        rho, old = float((r * r).sum()), rho
        p = r + rho / old * p
        count += 1
    return x, count


def direct(b: np.ndarray) -> np.ndarray:
    """Return the exact solution of the linear system, in the eigenvectors of the second difference: sines."""
    n = b.shape[0]
    k = np.arange(1, n + 1)
    sines = np.sqrt(2 / (n + 1)) * np.sin(np.pi * np.outer(k, k) / (n + 1))
    values = 2 - 2 * np.cos(np.pi * k / (n + 1))
    spectrum = b
    for axis in range(b.ndim):
        spectrum = np.moveaxis(np.tensordot(sines, spectrum, (1, axis)), 0, axis)
    total = sum(values.reshape([-1 if a == axis else 1 for a in range(b.ndim)]) for axis in range(b.ndim))
    spectrum = spectrum / total
    for axis in range(b.ndim):
        spectrum = np.moveaxis(np.tensordot(sines, spectrum, (1, axis)), 0, axis)
    return spectrum


# -- one rank ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "dim"), [(37, 1), (64, 2), (17, 3)])
@suites.cases("method", ["cg", "cg-fused"], default=["cg-fused"])
def test_iterations_and_error_agree_with_numpy(n, dim, method):
    x, count = conjugate_gradients(right_hand_side(n, dim), 1e-6)
    exact = np.prod([np.sin(np.pi * c) ** 2 for c in coordinates(n, dim)], axis=0)
    record, result = solve_with_result(n, dim, method=method, threads=2)
    assert abs(record.iterations - count) <= 1
    assert record.converged
    assert record.residual_relative <= 1e-6
    if record.iterations == count:
        assert record.error_max == pytest.approx(np.abs(x - exact).max(), rel=1e-9)
        assert np.abs(result.simulation.gather("u") - x).max() < 1e-12


@pytest.mark.parametrize(("n", "dim"), [(1, 1), (100, 1), (1, 2), (40, 2), (2, 3), (12, 3)])
def test_the_solution_satisfies_the_linear_system(n, dim):
    _, result = solve_with_result(n, dim, rtol=1e-13, threads=1)
    assert np.abs(result.simulation.gather("u") - direct(right_hand_side(n, dim))).max() < 1e-11


def test_the_record_has_the_documented_keys_and_correct_values():
    record = record_of(200, method="cg-fused", threads=1)
    assert list(vars(record)) == ALL
    assert set(KEYS) <= set(ALL)
    assert (record.n, record.dof, record.ranks, record.threads) == (200, 40_000, 1, 1)
    assert 0.5 * record.seconds < record.seconds_per_iteration * record.iterations <= record.seconds
    assert record.bytes_per_iteration == 8 * 8 * record.dof  # eight streams
    assert record_of(50, method="cg", threads=1).bytes_per_iteration == 11 * 8 * 2500
    assert predicted_bytes(200, 2) <= record.memory_bytes
    assert record.memory_bytes <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert record.bandwidth_share > 0
    assert len(record.checksum) == 32
    int(record.checksum, 16)


def test_a_solve_at_the_iteration_limit_is_not_converged():
    record = record_of(64, max_iterations=7)
    assert (record.iterations, record.converged) == (7, False)
    assert record.residual_relative > 1e-6
    none = record_of(63, max_iterations=0)
    assert (none.iterations, none.seconds_per_iteration, none.bandwidth_share) == (0, None, None)
    assert none.error_max == pytest.approx(1, abs=1e-12)  # the initial guess is zero, u is one in the middle


def test_errors_fall_with_the_square_of_the_spacing():
    errors = [record_of(n, rtol=1e-10).error_max for n in (15, 31, 63, 127)]
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert np.all(abs(ratios - 4) < 0.15)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 0}, "n is 0"),
        ({"n": -3}, "n is -3"),
        ({"n": 2.0}, "n is 2.0"),
        ({"n": 8, "dim": 4}, "dim is 4"),
        ({"n": 8, "dim": True}, "dim is True"),
        ({"n": 8, "method": "cgfused"}, "did you mean 'cg-fused'"),
        ({"n": 8, "rtol": 0.0}, "rtol is 0;"),
        ({"n": 8, "rtol": float("nan")}, "rtol is nan"),
        ({"n": 8, "max_iterations": -1}, "steps is -1"),
        ({"n": 8, "threads": 0}, "threads is 0"),
        ({"n": 8, "patch": 0}, "patch"),
        ({"n": 8, "decomposition": "optimum"}, "did you mean 'optimal'"),
        ({"n": 8, "decomposition": "3d"}, "3d"),
    ],
)
def test_invalid_options_are_reported(options, words):
    with pytest.raises(InputError) as raised:
        record_of(**options)
    assert words in str(raised.value)


# -- identical bits ------------------------------------------------------------------------------------------


HOW = {
    1: ["optimal", "1x1"],
    2: ["optimal", "bisection", "morton", "row", "1d-x", "1d-y", "1x2"],
    3: ["optimal", "1d-y", "3x1"],
    4: ["optimal", "morton", "2d", "1d-x", "2x2", "1x4"],
}


def results_of(record: SimpleNamespace) -> tuple[object, ...]:
    return record.iterations, record.converged, record.checksum, record.error_max, record.residual_relative


@pytest.mark.ranks(1, 2, 3, 4, long=(1, 2, 4))
@pytest.mark.parametrize("method", [pytest.param("cg", marks=pytest.mark.long), "cg-fused"])
def test_solutions_have_the_same_bits_on_any_layout(method):
    ranks = world().size
    ways = [{"decomposition": d} for d in HOW[ranks]]
    ways += [{"threads": 2, "patch": 16}, {"patch": (7, 128), "threads": 2}, {"patch": (64, 5)}]
    for n, limit, cases in ((64, 30, ways), (64, None, ways[-1:]), (128, None, ways[:1])):
        options = {"method": method, "max_iterations": limit, "threads": 1}
        records = [record_of(n, **{**options, **case}) for case in cases]
        alone = record_of(n, communicator=Communicator(), **options)
        for case, result in some(zip(cases, records, strict=True)):
            assert results_of(result) == results_of(alone), case
            assert result.ranks == ranks


# -- the published numbers -----------------------------------------------------------------------------------
