"""Vectors as fields: assignment, reads, gathers, reductions, pictures and output, by component."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.lang.expression import without_location

if TYPE_CHECKING:
    pass
from vector_problem import problem


def test_a_vector_accepts_each_form_of_values() -> None:
    sim, _, w = problem()
    values = np.arange(96.0).reshape(2, 8, 6)
    forms: list[tuple[Any, Any]] = [
        (0.5, np.full((2, 8, 6), 0.5)),
        (np.float32(0.5), np.full((2, 8, 6), 0.5)),
        ((1.0, 2), np.stack([np.full((8, 6), 1.0), np.full((8, 6), 2.0)])),
        (np.array([1.0, 2.0]), np.stack([np.full((8, 6), 1.0), np.full((8, 6), 2.0)])),
        (values, values),
        (list(values), values),
        (lambda x, y: (x + y, 2.0), None),
        (lambda x, y: np.stack([np.floor(8 * x), np.floor(6 * y)]), None),
        ((lambda x, y: x, values[1]), None),
        (2.0 * w, None),
    ]
    for form, expected in forms:
        sim[w] = form
        by_name = sim.gather("w")
        assert by_name.shape == (2, 8, 6)
        if expected is not None:
            np.testing.assert_array_equal(by_name, expected)
    sim["w"] = lambda x, y: (x, y)
    np.testing.assert_array_equal(sim.gather(w)[0], sim.gather(w[0]))
    np.testing.assert_array_equal(sim.gather(w)[1], np.broadcast_to(w[1].positions[1], (8, 6)))
    sim[w][1][...] = 7.0
    assert sim.evaluate(hc.max(w), hc.max(w[1])) == ((sim.evaluate(hc.max(w[0])), 7.0), 7.0)
    assert sim.checksum(w) == tuple(map(sim.checksum, w))
    assert [offset for offset, _ in sim.views(w)[0]] == [(0, 0)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((1.0, 2.0, 3.0), "vector 'w' has 2 components; got 3 values"),
        (np.zeros((8, 6)), r"vector 'w' has 2 components; got an array of shape \(8, 6\)"),
        (lambda x, y: x, "returns a value that has 2 components; got"),
        (lambda x, y: None, "the function given for vector 'w' returns None"),
        ("none.zarr/w", "there is no array none.zarr/w_x"),
    ],
)
def test_an_unsuitable_value_of_a_vector_is_one_message(value: Any, message: str) -> None:
    sim, u, w = problem()
    with pytest.raises(InputError, match=message):
        sim[w] = value
    with pytest.raises(InputError, match=r"the value of field 'u' is Vector\('w' .* use one component"):
        sim[u] = w


def test_components_with_different_points_are_gathered_as_a_tuple() -> None:
    grid = hc.Grid((6, 4))
    v = grid.vector("v", location="face", boundary=hc.Value(0.0))

    @hc.program
    def keep(v: Any) -> None:
        v.set(1.0 * v)

    sim = hc.Simulation(grid, keep)
    sim[v] = (np.ones((7, 4)), np.ones((6, 5)))
    assert [part.shape for part in sim.gather(v)] == [(7, 4), (6, 5)]
    assert sim.evaluate(hc.norm(v)) == pytest.approx(math.sqrt(20 + 18))


# calls of each public function of a field, with a vector in its place
CALLS: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda w, name=name: getattr(hc, name)(w)
        for name in (
            "abs", "cos", "exp", "log", "sign", "sin", "sqrt", "tanh", "min", "max", "sum", "norm",
            "laplacian", "div", "curl", "grad_div", "traceless_strain", "hyperdiffusion", "time_mean",
            "time_min", "time_max", "time_variance", "symmetric_sum", "grad",
        )
    },
    "count": lambda w: hc.count(w > 0.0),
    "first": lambda w: hc.first(w > 0.0),
    "value": lambda w: hc.value(w, (0, 0)),
    "dot": lambda w: hc.dot(w, w),
    "cross": lambda w: hc.cross(w, w),
    "derivative": lambda w: hc.derivative(w, 0),
    "second": lambda w: hc.second(w, 0),
    "mixed": lambda w: hc.mixed(w, 0, 1),
    "difference": lambda w: hc.difference(w, 0, 2),
    "shift": lambda w: hc.shift(w, 0),
    "to": lambda w: hc.to(w, "node"),
    "upwinding": lambda w: hc.upwinding(w, w),
    "pow": lambda w: hc.pow(w, 2),
    "minimum": lambda w: hc.minimum(w, 0.0),
    "maximum": lambda w: hc.maximum(w, 2.0 * w),
    "where": lambda w: hc.where(w > 0.0, w, 0.0),
    "branch": lambda w: hc.branch(w > 0.0, w, 0.0),
    "lookup": lambda w: hc.lookup((1.0, 2.0), w),
    "random": lambda w: hc.random(w),
    "solve": lambda w: hc.solve(lambda x: x - hc.laplacian(x), w, 1.0),
    "LinearProblem": lambda w: hc.LinearProblem(lambda x: x - hc.laplacian(x), w, 1.0),
}  # fmt: skip
REJECTING = {"grad", "lookup", "random", "solve", "LinearProblem"}

# public names that take no field of a user
WITHOUT_FIELDS = {
    "Antisymmetric", "BoundaryKernel", "Box", "BreakdownError", "cells", "Check", "Checkpoint", "Coarsen",
    "CompileError", "Derivative", "Euler", "Event", "every", "Execution", "explain", "Expr",
    "Extrapolate", "Extrapolated", "Family", "Field", "Grid", "HaloclineError", "InputError", "loop",
    "order", "Outcome", "parameter", "Periodic", "Points", "print", "program", "RK2", "RK3",
    "RK3Previous", "RK4",
    "RunError", "scalar", "Scalar", "scalars", "setting", "Simulation", "Slice", "Solution", "SSPRK3",
    "stop", "Stopped", "Symmetric", "Value", "Vector", "when", "__version__",
}  # fmt: skip
TESTED_BELOW = {"Output", "picture", "plot", "plot_lines", "assign", "stage"}


def test_every_public_function_accepts_vectors_or_reports_accepted_values() -> None:
    assert not CALLS.keys() & WITHOUT_FIELDS
    later_names = {"steps"}  # names of other changes
    unknown_names = set(hc.__all__) - CALLS.keys() - WITHOUT_FIELDS - TESTED_BELOW - later_names
    assert not unknown_names, "say how they take a vector"
    w = hc.Grid((8, 6), periodic=True).vector("w")
    for name, call in CALLS.items():
        if name in REJECTING:
            with pytest.raises(InputError, match=r"Vector\('w' on Grid.*; expected a "):
                call(w)
        else:
            assert call(w) is not None, name
    assert len(CALLS) > 40


def test_functions_of_a_vector_apply_to_its_components() -> None:
    w = hc.Grid((8, 6), periodic=True).vector("w")
    one_by_one = {*CALLS} - REJECTING - {
        "norm", "div", "curl", "grad_div", "traceless_strain", "dot", "cross", "upwinding",
        "time_mean", "time_min", "time_max", "time_variance",
    }  # fmt: skip
    for name in one_by_one:
        vector_result = CALLS[name](w)
        assert isinstance(vector_result, hc.Vector), name
        for component, result in zip(w, vector_result, strict=True):
            alone = CALLS[name](component)
            assert without_location(alone.expr) is without_location(result.expr), name
    operations: list[Callable[[Any], Any]] = [
        lambda a: a**2, abs, lambda a: +a, lambda a: 1.0 / a, lambda a: a == 0.0, lambda a: a != 0.0,
        lambda a: ~((a < 1.0) & (a >= 0.0) | (a > 3.0)), lambda a: np.float32(2.0) * a, np.sqrt,
        lambda a: np.maximum(a, 1.0), lambda a: 2.0**a, lambda a: a / np.float64(2.0),
    ]  # fmt: skip
    for operation in operations:
        for component, result in zip(w, operation(w), strict=True):
            assert result is operation(component), inspect.getsource(operation)
    assert {w: 1}[w] == 1
    with pytest.raises(InputError, match=r"minimum of vectors of 2 and 3 components"):
        hc.minimum(w, (1.0, 2.0, 3.0))
    with pytest.raises(InputError, match=r"NumPy's max cannot be traced"):
        np.max(w)


def test_a_vector_is_written_and_read(tmp_path: Path) -> None:
    sim, u, w = problem()
    sim[u] = 0.0
    sim[w] = lambda x, y: (x, y)
    before = sim.gather(w)
    store = tmp_path / "flow.zarr"
    sim.run(steps=1, output=hc.Output(store, ["w", u]))
    assert {"w_x", "w_y"} < {path.name for path in store.iterdir()}
    after = sim.gather(w)
    np.testing.assert_array_equal(after, 0.75 * before)
    sim[w] = 0.0
    sim[w] = str(store / "w")
    np.testing.assert_array_equal(sim.gather(w), after)


def test_statements_take_vectors() -> None:
    grid = hc.Grid((8, 6), periodic=True)
    v, w = grid.vector("v"), grid.vector("w")

    @hc.program
    def step(v: Any, w: Any) -> None:
        hc.assign({v: w, w: v})
        w.set(2.0 * hc.stage(w))

    sim = hc.Simulation(grid, step)
    sim[v], sim[w] = (1.0, 2.0), 3.0
    sim.run(steps=1)
    assert sim.evaluate(hc.max(v), hc.max(w)) == ((3.0, 3.0), (2.0, 4.0))
    with pytest.raises(InputError, match=r"field 'w_x' is set twice in one statement"):
        hc.Simulation(grid, hc.program(lambda w: hc.assign({w: 0.0, w[0]: 1.0})))
