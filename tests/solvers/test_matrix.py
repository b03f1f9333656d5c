"""Properties of matrices, derived from formulas and compared with dense NumPy matrices.

Further tests cover solves with null spaces, and errors of solves that cannot succeed.
"""

from __future__ import annotations

import itertools
import logging
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import BreakdownError, InputError
from halocline.lang import trace
from halocline.lang.expression import as_expr
from halocline.lang.program import Program
from halocline.solvers.matrix import Matrix, Properties
from patched_matrices import PATCHED, patched_laplacian

# -- rows against dense matrices ---------------------------------------------------------------------


GHOST = {"value": -1.0, "slope": 1.0}  # ratio of a ghost of a cell-centred field to its mirror
CONDITIONS = {"value": hc.Value(3.0), "slope": hc.Derivative(0.5)}


def column(point: tuple[int, ...], shape: tuple[int, ...], walls: tuple[str, ...]) -> tuple[float, tuple]:
    """Return the inner point that determines a ghost, and the sign."""
    sign, inside = 1.0, []
    for i, n, wall in zip(point, shape, walls, strict=True):
        if wall != "around" and not 0 <= i < n:
            sign, i = sign * GHOST[wall], -i - 1 if i < 0 else 2 * n - 1 - i
        inside.append(i % n)
    return sign, tuple(inside)


def matrix_of(operator: Any, u: hc.Field) -> Matrix:
    with trace.tracing(Program("matrix")) as program:
        formula = operator(u)
    return Matrix(as_expr(formula), u, program)


@pytest.mark.parametrize(
    "seed", [*range(24), *(pytest.param(n, marks=pytest.mark.long) for n in range(24, 200))]
)
def test_rows_and_properties_are_those_of_a_dense_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(5, 7, ndim))
    walls = tuple(str(w) for w in rng.choice(["around", "value", "slope"], ndim))
    grid = hc.Grid(shape, periodic=tuple(w == "around" for w in walls))
    sides = {f"{'xyz'[a]}{s}": CONDITIONS[w] for a, w in enumerate(walls) if w != "around" for s in "+-"}
    u = grid.field("u", boundary=sides or None)
    reach = [tuple(int(i) for i in o) for o in rng.integers(-2, 3, (3, ndim)) if any(o)]
    kind = str(rng.choice(["constant", "coordinates", "unequal", "singular", "negative"]))
    weights = [round(float(w), 3) for w in rng.uniform(0.5, 2.0, len(reach))]
    x, axis = grid.positions()[0], grid.x

    def factor(coordinate: Any) -> Any:
        return 2.0 + coordinate if kind == "coordinates" else 1.0

    sign = -1.0 if kind == "negative" else 1.0
    shift = 0.0 if kind == "singular" else 0.75

    def operator(v: Any) -> Any:
        total = sign * shift * v
        for o, w in zip(reach, weights, strict=True):
            back = tuple(-i for i in o)
            other = 2.0 if kind == "unequal" else 1.0
            total = total + sign * w * factor(axis) * ((v - v[o]) + other * (v - v[back]))
        return total

    size = int(np.prod(shape))
    dense = np.zeros((size, size))
    for n, point in enumerate(itertools.product(*map(range, shape))):
        scale = 2.0 + x[point[0]] if kind == "coordinates" else 1.0
        dense[n, n] += sign * shift
        for o, w in zip(reach, weights, strict=True):
            for side, other in ((1, 1.0), (-1, 2.0 if kind == "unequal" else 1.0)):
                factor_, inside = column(
                    tuple(i + side * j for i, j in zip(point, o, strict=True)), shape, walls
                )
                dense[n, n] += sign * w * scale * other
                dense[n, np.ravel_multi_index(inside, shape)] -= sign * w * scale * other * factor_

    matrix = matrix_of(operator, u)
    properties = matrix.properties({})
    rows = np.zeros((size, size))
    for n, point in enumerate(itertools.product(*map(range, shape))):
        for other, c in matrix.row(point).items():
            rows[n, np.ravel_multi_index(other, shape)] = c
    np.testing.assert_allclose(rows, dense, rtol=1e-12, atol=1e-13)
    varies = kind == "coordinates" and bool(reach)
    symmetric = np.allclose(dense, dense.T, rtol=1e-9, atol=1e-12)
    assert properties.symmetric == (None if varies else symmetric), (kind, walls, reach)
    # one sampled row of variable coefficients shows that the operator of a constant is not zero
    assert properties.singular == np.allclose(dense.sum(axis=1), 0.0, atol=1e-12), (kind, walls, reach)
    assert properties.negative == bool((np.diag(dense) < 0).all())
    if properties.asymmetry is not None:
        one, other = (
            np.ravel_multi_index(p, shape) for p in (properties.asymmetry.one, properties.asymmetry.other)
        )
        assert properties.asymmetry.coefficient == pytest.approx(dense[one, other], abs=1e-12)
        assert properties.asymmetry.transposed == pytest.approx(dense[other, one], abs=1e-12)


def test_laplacians_of_both_signs_are_classified_for_all_walls() -> None:
    kinds = set()
    for order in (2, 4):
        for walls, bc in (("around", None), ("value", hc.Value(0)), ("slope", hc.Derivative(0))):
            for sign in (1.0, -1.0):
                grid = hc.Grid((9, 9), periodic=walls == "around")
                u = grid.field("u", boundary=bc)

                def operator(v: Any, order: int = order, sign: float = sign) -> Any:
                    with trace.order(order):
                        return -sign * hc.laplacian(v)

                properties = matrix_of(operator, u).properties({})
                assert properties.symmetric is True
                assert properties.singular == (walls != "value")
                assert properties.negative == (sign < 0)
                kinds.add((properties.singular, properties.negative))
    assert len(kinds) == 4


def flux(k: Any, v: Any, storage: str) -> Any:
    """Return -div(k grad v) along x, with k on the faces between cells."""
    gradient = hc.stage(0.5 * (k + k[-1]) * (v - v[-1]), "gradient", storage=storage)
    return gradient - gradient[1]


@pytest.mark.parametrize("storage", ["inline", "patch", "array"])
def test_coefficients_may_be_fields_and_stages(storage: str) -> None:
    grid = hc.Grid(12, periodic=True)
    u, k = grid.field("u"), grid.field("k")
    properties = matrix_of(lambda v: flux(k, v, storage), u).properties({})
    assert (properties.symmetric, properties.singular) == (None, None)
    # the symmetry depends on the field: k of a cell and of its eastern neighbour may be equal
    assert matrix_of(lambda v: k * (v - v[1]) + (v - v[-1]), u).properties({}).symmetric is None
    assert matrix_of(lambda v: v + 0.1 * hc.sum(v), u).properties({}) == Properties()


def test_nonsymmetric_boundary_conditions_are_detected() -> None:
    """The conditions are a slope on a wall with ghost points, and a polynomial of higher order."""
    for walls, condition in (("node", hc.Derivative(0)), ("face", hc.Value(0, order=3))):
        u = hc.Grid((8, 8), walls=walls).field("u", boundary=condition)
        properties = matrix_of(lambda v: -hc.laplacian(v), u).properties({})
        assert properties.symmetric is False
        assert properties.singular == (walls == "node")


def test_points_on_walls_and_inactive_cells_are_not_in_the_matrix() -> None:
    u = hc.Grid(8).field("u", location="node", boundary=hc.Value(0))
    matrix = matrix_of(lambda v: -hc.laplacian(v), u)
    assert matrix.row((0,)) == {}
    assert set(matrix.row((1,))) == {(1,), (2,)}
    assert matrix.properties({}) == Properties(True, singular=False)
    holes = hc.Grid((8, 8), periodic=True, active=[[True, True], [True, False]]).field("u")
    assert matrix_of(lambda v: -hc.laplacian(v), holes).properties({}) == Properties(True, singular=False)


def test_properties_follow_the_value_of_a_parameter() -> None:
    u = hc.Grid(8, periodic=True).field("u")
    matrix = matrix_of(lambda v: hc.parameter("shift") * v - hc.laplacian(v), u)
    properties = [matrix.properties({"shift": shift}) for shift in (0.0, 1.0, 0.0)]
    assert [f.singular for f in properties] == [True, False, True]
    assert matrix.properties({"shift": 0.0, "other": 1.0}) is properties[2]
    assert matrix.parameters == {"shift"}


# -- solves ------------------------------------------------------------------------------------------


SHORT = [pytest.param("cg", marks=pytest.mark.long), "cg-fused"]
SHAPE = (8, 6)
NAMES = ("west", "east", "south", "north", "centre")


def problem(method: str, **options: Any) -> hc.LinearProblem:
    """Return a problem with five coefficients: periodic for cg, between walls with slopes for cg-fused."""
    around = method == "cg"
    grid = hc.Grid(SHAPE, periodic=around)
    sides = {"x+": hc.Derivative(hc.parameter("slope")), "other": hc.Derivative(0.0)}
    u, f = grid.field("u", boundary=None if around else sides), grid.field("f")
    w, e, s, n, c = map(hc.parameter, NAMES)
    start = dict(zip(NAMES, (-1.0, -1.0, -1.0, -1.0, 5.0), strict=True)) | ({} if around else {"slope": 0.0})
    return hc.LinearProblem(
        lambda v: c * v + w * v[-1, 0] + e * v[1, 0] + s * v[0, -1] + n * v[0, 1],
        u,
        f,
        method=method,
        parameters=start,
        **options,
    )


def dense_of(values: dict[str, float], around: bool) -> np.ndarray:
    walls = ("around",) * 2 if around else ("slope",) * 2
    size = SHAPE[0] * SHAPE[1]
    dense = np.zeros((size, size))
    for n, (i, j) in enumerate(itertools.product(*map(range, SHAPE))):
        places = ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1), (i, j))
        for name, place in zip(NAMES, places, strict=True):
            dense[n, np.ravel_multi_index(column(place, SHAPE, walls)[1], SHAPE)] += values[name]
    return dense


def drawn(kind: str, rng: np.random.Generator) -> dict[str, float]:
    a, b, shift = (round(float(x), 3) for x in rng.uniform(0.5, 2.0, 3))
    west = east = -a
    if kind == "unsymmetric":
        east *= 0.25
    centre = 2 * (a + b) + {"singular": 0.0, "incompatible": 0.0, "indefinite": -(a + b)}.get(kind, shift)
    sign = -1.0 if kind == "negative" else 1.0
    return {n: sign * v for n, v in zip(NAMES, (west, east, -b, -b, centre), strict=True)}


@pytest.mark.parametrize("method", SHORT)
def test_generated_operators_are_solved_or_reported(method: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "halocline")
    rng, linear = np.random.default_rng(36), problem(method, threads=1)
    u, f = linear.unknown, linear.fields.grid.fields["f"]
    kinds = ("definite", "singular", "incompatible", "indefinite", "negative", "unsymmetric")
    ends, reasons = dict.fromkeys(kinds, 0), []
    for kind in kinds * 3:
        values = drawn(kind, rng)
        b = rng.uniform(-1.0, 1.0, SHAPE)
        if kind == "singular":
            b -= b.mean()
        linear.parameters.update(values)
        linear.fields[f] = b
        linear.fields[u] = rng.uniform(-1.0, 1.0, SHAPE)
        dense = dense_of(values, method == "cg")
        start = ("zero", "last")[ends[kind] % 2]
        ends[kind] += 1
        if kind in ("definite", "singular"):
            solution = linear.solve(rtol=1e-11, start=start)
            assert solution.converged
            # the mean is zero if the matrix is singular
            expected = np.linalg.pinv(dense, rcond=1e-10) @ b.ravel()
            np.testing.assert_allclose(solution.fields.gather(u).ravel(), expected, atol=1e-9)
            assert solution.rhs_norm == pytest.approx(np.linalg.norm(b), rel=1e-12)
        elif kind == "incompatible":
            with pytest.raises(InputError, match=rf"has the mean {b.mean():.4g}"[:-1]):
                linear.solve(rtol=1e-11, start=start)
        elif kind == "unsymmetric":
            caplog.clear()
            try:
                solution = linear.solve(rtol=1e-8, max_iterations=60, start=start)
            except BreakdownError as error:
                reasons.append(str(error))
            else:
                residual = np.linalg.norm(b.ravel() - dense @ solution.fields.gather(u).ravel())
                assert solution.true_residual == pytest.approx(residual, rel=1e-6)
                assert solution.converged == (residual <= 2e-8 * solution.rhs_norm)
            warned = [m for m in caplog.messages if "the operator is not symmetric (row (" in m]
            assert len(warned) == (ends[kind] == 1)  # once per problem
        else:
            message = (
                "change the sign of the operator" if kind == "negative" else "it is indefinite or singular"
            )
            with pytest.raises(BreakdownError, match=message):
                linear.solve(rtol=1e-11, start=start)
    assert set(ends.values()) == {3}
    assert all("nor is it symmetric: row (" in reason for reason in reasons)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("method", SHORT)
def test_a_projected_solution_has_the_same_bits_on_any_ranks(method: str) -> None:
    from mpi4py import MPI

    results = set()
    for options in (
        {"threads": 1},
        {"threads": 2, "patch": 3},
        {"threads": 1, "communicator": MPI.COMM_SELF},
    ):
        linear = problem(method, **options)
        linear.parameters["centre"] = 4.0
        f = linear.fields.grid.fields["f"]
        linear.fields[f] = np.sin(np.arange(48.0)).reshape(SHAPE) - np.sin(np.arange(48.0)).mean()
        for start in ("zero", "last"):
            solution = linear.solve(rtol=1e-5 if start == "zero" else 1e-9, start=start)
            assert solution.converged
            results.add((start, solution.iterations, solution.fields.checksum(linear.unknown)))
    assert len(results) == 2


def test_random_vectors_determine_properties_of_unknown_formulas(caplog: pytest.LogCaptureFixture) -> None:
    """The symmetry of the matrix depends on the values of a field."""
    caplog.set_level(logging.WARNING, "halocline")
    for east, count in ((lambda i: 1.0 + (i % 7), 1), (lambda i: 2.0 + 0.0 * i, 0)):
        caplog.clear()
        grid = hc.Grid(16, periodic=True)
        u, k = grid.field("u"), grid.field("k")
        linear = hc.LinearProblem(lambda v, k=k: 20.0 * v - k * v[1] - 2.0 * v[-1], u, 1.0, threads=1)
        linear.fields[k] = np.asarray(east(np.arange(16)))
        for _ in range(2):
            linear.solve(max_iterations=5)
        assert len([m for m in caplog.messages if "for random vectors x and y" in m]) == count


def test_the_error_of_an_incompatible_problem_includes_slopes_in_the_mean() -> None:
    linear = problem("cg-fused", threads=1)
    linear.parameters.update({"centre": 4.0, "slope": 16.0})
    h, u, f = 1.0 / SHAPE[0], linear.unknown, linear.fields.grid.fields["f"]
    linear.fields[f] = 0.5
    # the ghosts beyond x+ are 16 h = 2 more than their mirrors, in one of eight cells along x
    for start in ("zero", "last"):
        with pytest.raises(InputError, match=r"boundary derivatives, has the mean 0.75, .* Subtract 0.75 "):
            linear.solve(start=start)
    linear.fields[f] = 0.5 - 0.75  # the correction that the error suggests
    solution = linear.solve(rtol=1e-10)
    assert solution.converged
    values = solution.fields.gather(u)
    dense = dense_of(dict(linear.parameters), around=False)
    residual = -0.25 - (dense @ values.ravel()).reshape(SHAPE)
    residual[-1] += 16.0 * h
    np.testing.assert_allclose(residual, 0.0, atol=1e-9)
    assert abs(values.mean()) < 1e-13


# -- coefficients that depend on the place or on fields ------------------------------------------------


def dense_of_patched(p: dict[str, float], m: np.ndarray) -> np.ndarray:
    shape, size = PATCHED, m.size
    dense, (hx, hy) = np.zeros((size, size)), (1.0 / PATCHED[0], 1.0 / PATCHED[1])
    for n, (i, j) in enumerate(itertools.product(*map(range, shape))):
        x, y = (i + 0.5) * hx, (j + 0.5) * hy
        inside = p["left"] < x < p["right"] and p["low"] < y < p["high"]
        dense[n, n] += 2 / hx**2 + 2 / hy**2 + max(m[i, j] - p["threshold"], 0.0)
        dense[n, n] += inside * p["box"] + (n == p["pinned"]) * p["pin"]
        for step, h in (((-1, 0), hx), ((1, 0), hx), ((0, -1), hy), ((0, 1), hy)):
            place = (i + step[0], j + step[1])
            weight = -1.0 / h**2 + (inside * p["wind"] * step[0] / (2 * hx) if step[0] else 0.0)
            if place[0] < 0 and p["from_y"] < y < p["to_y"]:
                weight = -weight
            dense[n, np.ravel_multi_index(column(place, shape, ("slope",) * 2)[1], shape)] += weight
    return dense


@pytest.mark.parametrize(
    ("method", "dtype", "rounds"),
    [
        ("cg-fused", "float64", 1),
        pytest.param("cg", "float64", 6, marks=pytest.mark.long),
        pytest.param("cg-fused", "float32", 4, marks=pytest.mark.long),
    ],
)
def test_connected_parts_of_the_grid_determine_null_spaces(
    method: str, dtype: str, rounds: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "halocline")
    rng, linear = np.random.default_rng(2), patched_laplacian(method, dtype)
    u, grid = linear.unknown, linear.fields.grid
    f, m = grid.fields["f"], grid.fields["m"]
    exact = dtype == "float64"
    singular = ends = 0
    nothing = dict(linear.parameters)
    for kind in ("none", "box", "threshold", "wall", "pinned", "none", "incompatible", "small") * rounds:
        values, field = dict(nothing), np.full(PATCHED, 1.5)
        west, south = rng.uniform(0.05, 0.5, 2)
        if kind == "box":
            box = (west, west + 0.25, south, south + 0.3)
            values |= {**dict(zip(("left", "right", "low", "high"), box, strict=True)), "box": 50.0}
        elif kind == "threshold":
            field[tuple(rng.integers(0, PATCHED))] = 102.0
        elif kind == "wall":
            values |= {"from_y": south, "to_y": south + 0.3}
        elif kind == "pinned":
            values |= {"pinned": float(rng.integers(0, field.size)), "pin": 200.0}
        elif kind == "small":
            field[...] = 2.0 + 2.0**-10  # in float32, the difference is within rounding errors
        linear.parameters.update(values)
        linear.fields[m] = field
        dense, b = dense_of_patched(values, field), rng.uniform(-1.0, 1.0, PATCHED)
        if kind != "incompatible":
            b -= b.mean()  # the operator determines whether a mean stays in the solution
        linear.fields[f] = b
        constant = not dense.sum(axis=1).round(8).any()
        assert constant == (kind in ("none", "incompatible"))
        for start in ("zero", "last"):
            linear.fields[u] = 3.0
            if kind == "incompatible":
                with pytest.raises(InputError, match="the operator maps constants to zero"):
                    linear.solve(rtol=1e-6, start=start)
                continue
            solution = linear.solve(rtol=1e-11 if exact else 1e-3, start=start)
            assert solution.converged
            solution_values = solution.fields.gather(u)
            if exact:
                expected = np.linalg.pinv(dense, rcond=1e-12) @ b.ravel()
                np.testing.assert_allclose(
                    solution_values.ravel(), expected, atol=1e-6 if kind == "small" else 1e-9
                )
            if constant:
                assert abs(solution_values.mean()) < (1e-12 if exact else 1e-6)
                singular += 1
            ends += 1
    assert (singular, ends) == (4 * rounds, 14 * rounds)
    assert not caplog.messages
    linear.parameters.update({**nothing, "left": 0.2, "right": 0.3, "high": 1.0, "wind": 100.0})
    dense = dense_of_patched(dict(linear.parameters), field)
    assert not np.allclose(dense, dense.T)
    linear.solve(max_iterations=3)
    assert [text for text in caplog.messages if "for random vectors x and y" in text]


def test_an_operator_is_applied_only_after_a_change() -> None:
    linear = patched_laplacian("cg-fused")
    f, m = (linear.fields.grid.fields[name] for name in "fm")
    linear.fields[m], linear.fields[f] = 1.5, lambda x, y: x - 0.5
    linear.solve()
    probe, counts, calls = linear._probe, [], []
    assert probe is not None
    measure = probe._measure
    probe._measure = lambda: (calls.append(1), measure())[1]  # type: ignore[method-assign]
    changes: list[Any] = [
        lambda: None,
        lambda: linear.fields.__setitem__(f, lambda x, y: y - 0.5),
        lambda: linear.fields.__setitem__(m, 3.0),
        lambda: linear.fields[m].fill(1.0),
        lambda: linear.parameters.update(box=1.0),
        lambda: None,
    ]
    for change in changes:
        change()
        linear.solve(max_iterations=1)
        counts.append(len(calls))
    assert counts == [0, 0, 1, 2, 3, 3]


def test_properties_of_large_stencils_use_random_vectors() -> None:
    grid = hc.Grid((12, 12, 12), periodic=True)
    u, k = grid.field("u"), grid.field("k")
    rows: list[Any] = []
    for factor, singular in ((k, None), (1.0, True)):
        matrix = matrix_of(
            lambda v, factor=factor: hc.laplacian(factor * hc.laplacian(v, order=4), order=4), u
        )
        row = matrix.row
        matrix.row = lambda point, row=row: (rows.append(point), row(point))[1]  # type: ignore[method-assign]
        assert matrix.properties({}) == Properties(None, singular=singular)
    assert 2 < len(rows) < 60
