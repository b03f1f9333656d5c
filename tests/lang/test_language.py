"""The language as its users meet it: errors that say what is wrong, tracing, operators and their order."""

from __future__ import annotations

import logging
import math
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError, RunError
from loops import some


def square(**options: Any) -> tuple[hc.Grid, hc.Field, hc.Field]:
    grid = hc.Grid((8, 6), periodic=True, **options)
    return grid, grid.field("u"), grid.field("v")


def test_parameters_hold_from_the_next_run_on(caplog: pytest.LogCaptureFixture) -> None:
    grid = hc.Grid(5, periodic=True)
    u = grid.field("u")

    @hc.program
    def scale(u: Any, factor: Any) -> None:
        u.set(factor * u)

    sim = hc.Simulation(grid, scale, parameters={"factor": 2, "fcator": 7.0})
    assert [r.getMessage() for r in caplog.records] == [
        "parameter fcator is given, but these equations do not read it"
    ]
    assert dict(sim.parameters) == {"factor": 2.0, "fcator": 7.0}
    sim[u] = hc.parameter("factor") + 1.0  # the factor of now
    sim.parameters["factor"] = 5
    sim.run()
    np.testing.assert_array_equal(sim[u], np.full(5, 15.0))
    with pytest.raises(InputError, match=r"parameter 'factor' cannot be removed"):
        del sim.parameters["factor"]

    problem = hc.LinearProblem(
        lambda v: hc.parameter("shift") * v - hc.laplacian(v), u, 6.0, parameters={"shift": 2.0}
    )
    for shift in (2.0, 3.0):
        problem.parameters["shift"] = shift
        solution = problem.solve(rtol=1e-12)
        np.testing.assert_allclose(solution.fields[u], np.full(5, 6.0 / shift), rtol=1e-10)


def solved() -> hc.Grid:
    grid = hc.Grid(4)
    hc.solve(lambda u: -hc.laplacian(u), grid.field("u", boundary=hc.Value(0.0)), 1.0)
    return grid


def run(
    grid: hc.Grid, program: Callable[..., Any], values: dict[hc.Field, Any], **options: Any
) -> hc.Simulation:
    sim = hc.Simulation(grid, hc.program(program), **options)
    for f, value in values.items():
        sim[f] = value
    sim.run()
    return sim


# --- grids and fields ---


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hc.Grid((0, 4)), r"shape \(0, 4\): axis x has 0 cells; at least 1 is needed"),
        (lambda: hc.Grid((4, -1)), r"axis y has -1 cells"),
        (lambda: hc.Grid((4, 2.5)), r"axis y has 2.5 cells; expected a whole number"),
        (lambda: hc.Grid((4, True)), r"axis y has True cells; expected a whole number"),
        (lambda: hc.Grid((2, 2, 2, 2)), r"has 4 axes; a grid has 1, 2 or 3"),
        (
            lambda: hc.Grid((4, 4), (1.0, 2.0, 3.0)),
            r"extent \(1.0, 2.0, 3.0\) has 3 entries for a grid of 2 axes",
        ),
        (
            lambda: hc.Grid((4, 4), (1.0, 0.0)),
            r"extent .*: axis y has length 0.0; expected a positive number",
        ),
        (lambda: hc.Grid(4, math.inf), r"axis x has length inf; expected a positive number"),
        (
            lambda: hc.Grid(4, "wide"),
            r"extent 'wide': axis x has 'wide'; expected a number: one for all axes",
        ),
        (lambda: hc.Grid(4, walls="edge"), r"walls 'edge': axis x has 'edge'; expected 'face' or 'node'"),
        (lambda: hc.Grid((4, 4), walls=("face", 3)), r"walls .*: axis y has 3; expected 'face' or 'node'"),
        (lambda: hc.Grid((4, 4), walls=("face",)), r"walls \('face',\) has 1 entries for a grid of 2 axes"),
        (
            lambda: square()[0].field("u"),
            r"the grid already has a field named 'u'; names are unique on a grid$",
        ),
        (
            lambda: solved().field("r"),
            r"already has a field named 'r'; .* a solver or stage made for itself: make your fields before",
        ),
        (lambda: square()[0].field("_statistic_T"), r"names that begin with '_statistic_' are reserved"),
        (lambda: square()[0].field("a b"), r"field name 'a b' is not an identifier such as 'T' or 'rho_1'"),
        (
            lambda: square()[0].field("w", dtype="int8"),
            r"field 'w': dtype 'int8' is unknown; expected one of float64, float32",
        ),
        (
            lambda: square()[0].field("w", location="face-z"),
            r"location 'face-z' names an axis that a grid of 2 axes lacks",
        ),
        (
            lambda: square()[0].field("w", location="corner"),
            r"location 'corner' is unknown; expected one of cell, node, face-x",
        ),
        (lambda: square()[0].vector("w", components=4), r"vector 'w': 4 components; expected 1 to 3"),
        (lambda: square()[0].vector("w", boundary=[None]), r"need one entry per component \(2\)"),
    ],
)
def test_grids_and_fields_that_make_no_sense(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_dtypes_may_be_given_as_numpy_has_them() -> None:
    grid = hc.Grid(4)
    assert grid.field("a", dtype=np.float32).dtype == "float32"
    assert grid.field("b", dtype=np.dtype("float64")).dtype == "float64"


# --- equations ---


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        (lambda u, v: u.set(v + np.ones(3)), r"operand is an array of shape \(3,\); expected a field"),
        (lambda u, v: u.set(math.sin(v)), r"not Field: functions such as math.sin cannot be traced"),
        (lambda u, v: u.set(v[1]), r"offset 1 does not fit a grid of 2 axes: give 2 whole numbers, one per"),
        (lambda u, v: u.set(v[0, 0, 1]), r"offset \(0, 0, 1\) does not fit a grid of 2 axes"),
        (lambda u, v: u.set(v[0, 0.5]), r"offset \(0, 0.5\) does not fit"),
        (lambda u, v: u.set(u if u > v else v), r"has no truth value while equations are traced: use"),
        (lambda u, v: u.set(max(u, v)), r"has no truth value while equations are traced"),
        (lambda u, v: u.set(u > v), r"field 'u' is set to the condition .*use hc.where\(condition, 1.0,"),
        (lambda u, v: u.set((u > v) + 1.0), r"operator 'add' needs a number on both sides, got \(u > v\)"),
        (lambda u, v: u.set(hc.where(u, v, 0.0)), r"where needs a condition such as u > 0 as its first"),
        (lambda u, v: u.set(hc.where((u > 0) & v, v, 0.0)), r"operator 'and' needs a condition on both"),
        (lambda u, v: u.set("text"), r"value of field 'u' is 'text' of type str; expected a field"),
        (lambda u, v: u.set([u, v]), r"value of field 'u' is .* of type list; expected a field"),
        (lambda u, v: u.set(np.sum(u)), r"NumPy's sum cannot be traced|NumPy's add cannot be traced"),
        (lambda u, v: u.set(np.arctan(u)), r"NumPy's arctan cannot be traced into a kernel; these can:"),
        (lambda u, v: u.set(hc.derivative(u, "w")), r"axis 'w' is unknown; expected 0, 1, 2 or 'x', 'y',"),
        (lambda u, v: u.set(hc.derivative(u, 0, order=3)), r"order 3 is not an order of central differences"),
        (lambda u, v: u.set(hc.div(u)), r"div needs a vector \(grid.vector or a tuple of expressions\), got"),
        (lambda u, v: u.set(hc.sum(3.0)), r"sum over the grid needs an expression that varies from cell to"),
        (lambda u, v: u.set(hc.count(u)), r"count needs a condition such as u > 0, got u"),
        (lambda u, v: u.set(hc.value(u, (8, 0))), r"value at \(8, 0\): no point of an expression of shape"),
        (lambda u, v: u.set(hc.value(u, (1,))), r"value at \(1,\): no point"),
        (lambda u, v: hc.scalar("s").set(u + 1), r"scalar 's' is set to \(u \+ 1\), which varies from cell"),
        (lambda u, v: hc.scalar("h_x").set(1.0), r"already has a scalar or parameter named 'h_x'"),
        (lambda u, v: hc.scalar("t").set(1.0), r"already has a scalar or parameter named 't'"),
        (lambda u, v: hc.scalar("two words"), r"scalar name 'two words' is not an identifier"),
        (lambda u, v: hc.stop(u > 0, "high"), r"hc.stop: the condition is \(u > 0\); expected"),
        (lambda u, v: u.set(hc.stage(2.0)), r"stage of 2: it does not vary from cell to cell; use a scalar"),
        (lambda u, v: u.set(hc.stage(u > 0)), r"stage of the condition .*use hc.where"),
        (lambda u, v: u.set(hc.stage(u, storage="disk")), r"stage storage 'disk' is unknown.*known: auto,"),
        (lambda u, v: u.set(hc.stage(u, "my stage")), r"stage name 'my stage' is not an identifier"),
        (lambda u, v: u.grid.z, r"Grid\(\(8, 6\).* has no axis z"),
        (lambda u, v: list(u), r"a field cannot be iterated over; use \[offset\]"),
    ],
)  # fmt: skip
def test_equations_that_make_no_sense(equation: Callable[..., Any], message: str) -> None:
    grid, _, _ = square()

    def program(u: Any, v: Any) -> None:
        equation(u, v)

    with pytest.raises((InputError, TypeError), match=message):
        hc.Simulation(grid, hc.program(program))


def test_a_field_of_another_grid_is_named() -> None:
    grid, _, _ = square()
    stranger = hc.Grid((8, 6), periodic=True).field("w")

    def reads(u: Any) -> None:
        u.set(u + stranger)

    def sets(u: Any) -> None:
        stranger.set(u)

    with pytest.raises(InputError, match=r"an expression mixes fields of two grids.*make all fields of one"):
        hc.Simulation(grid, hc.program(reads))
    with pytest.raises(InputError, match=r"field 'w' on .* is set to an expression of another grid"):
        hc.Simulation(grid, hc.program(sets))

    def keeps(u: Any) -> None:
        u.set(u * 1.5)

    sim = hc.Simulation(grid, hc.program(keeps))
    with pytest.raises(InputError, match="field 'w' belongs to another grid"):
        sim[stranger] = 1.0


def test_an_unknown_argument_lists_what_is_known_and_what_is_near() -> None:
    grid, _, _ = square()
    grid.vector("velocity")

    def program(u: Any, velocty: Any) -> None:
        u.set(1.0)

    message = (
        r"program: argument 'velocty' is unknown \(did you mean 'velocity'\?\); known: .*, u, .*, t, .*kappa"
    )
    with pytest.raises(InputError, match=message):
        hc.Simulation(grid, hc.program(program), parameters={"kappa": 1.0})

    def star(u: Any, *rest: Any) -> None:
        u.set(1.0)

    with pytest.raises(InputError, match=r"star: \*rest cannot be bound; name each field and parameter"):
        hc.Simulation(grid, hc.program(star))


def test_a_name_of_two_things_is_refused() -> None:
    grid, _, _ = square()

    def program(u: Any, v: Any) -> None:
        u.set(v)

    with pytest.raises(InputError, match=r"argument 'v' stands for a field and for a scalar or parameter"):
        hc.Simulation(grid, hc.program(program), parameters={"v": 1.0})


def test_a_parameter_without_a_value_is_an_error() -> None:
    grid, u, _ = square()

    def program(u: Any) -> None:
        u.set(u * hc.parameter("gama"))

    with pytest.raises(
        InputError, match=r"parameter 'gama' is unknown \(did you mean 'gamma'\?\); known: .*gamma"
    ):
        hc.Simulation(grid, hc.program(program), parameters={"gamma": 1.0})
    with pytest.raises(InputError, match=r"parameter 'mu' is unknown"):
        hc.solve(lambda u: u * hc.parameter("mu"), u, 1.0)

    def fine(u: Any) -> None:
        u.set(u * 2.0)

    sim = hc.Simulation(grid, hc.program(fine))
    sim[u] = hc.parameter("nu") * grid.x
    with pytest.raises(InputError, match=r"parameter 'nu' is unknown"):
        sim.run()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kappa": "much"}, r"parameter 'kappa' is 'much'; expected a number"),
        ({"kappa": math.nan}, r"parameter 'kappa' is nan; expected a finite number"),
        ({"dt": 0.1}, r"parameter name 'dt' cannot be used; choose an identifier other than t, dt, step"),
        ({"h_x": 0.1}, r"parameter name 'h_x' cannot be used"),
        ({"2k": 0.1}, r"parameter name '2k' cannot be used"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    grid, _, _ = square()
    with pytest.raises(InputError, match=message):
        hc.Simulation(grid, hc.program(lambda u: u.set(1.0)), parameters=parameters)


def test_what_a_function_of_time_derivatives_must_return() -> None:
    grid, _, _ = square()

    def make(result: Any) -> Callable[..., Any]:
        def f(u: Any) -> Any:
            return result(u)

        return f

    options = {"scheme": hc.Euler(), "dt": 0.1}
    for result, message in [
        (lambda u: u * 2.0, r"function 'f' returned .*; expected a mapping of fields to time derivatives"),
        (lambda u: None, r"function 'f' returned None"),
        (lambda u: {"u": 1.0}, r"returned a derivative of 'u'; keys must be fields"),
    ]:
        with pytest.raises(InputError, match=message):
            hc.Simulation(grid, make(result), **options)
    good = make(lambda u: {u: -u})
    with pytest.raises(InputError, match=r"gives time derivatives, so a scheme is needed: scheme=hc.RK3\(\)"):
        hc.Simulation(grid, good, dt=0.1)
    with pytest.raises(InputError, match=r"gives time derivatives, so a time step is needed: dt=0.01"):
        hc.Simulation(grid, good, scheme=hc.Euler())
    for dt in (0.0, -1.0, math.nan, "0.1s"):
        with pytest.raises(
            InputError, match=r"dt is .*; expected a positive number, or a function of fields"
        ):
            hc.Simulation(grid, good, scheme=hc.Euler(), dt=dt)
    with pytest.raises(InputError, match=r"dt varies from cell to cell; reduce it with hc.min"):
        hc.Simulation(grid, good, scheme=hc.Euler(), dt=lambda u: abs(u))
    with pytest.raises(InputError, match=r"equations are 3; expected a function"):
        hc.Simulation(grid, 3)
    with pytest.raises(InputError, match=r"grid is 3; expected a halocline.Grid"):
        hc.Simulation(3, good)


def test_an_error_in_the_users_function_keeps_its_traceback() -> None:
    grid, _, _ = square()

    def broken(u: Any) -> Any:
        return {u: undefined_name * u}  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InputError, match=r"function 'broken' raised NameError\(.*undefined_name") as caught:
        hc.Simulation(grid, broken, scheme=hc.Euler(), dt=0.1)
    cause = caught.value.__cause__
    assert isinstance(cause, NameError)
    assert traceback.extract_tb(cause.__traceback__)[-1].name == "broken"


@pytest.mark.ranks(3)
def test_ranks_that_differ_are_told_before_anything_runs() -> None:
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank
    grid, u, _ = square()

    def scaled(u: Any) -> None:
        u.set(u * (1.0 + (rank == 2)))

    def same(u: Any) -> None:
        u.set(u * 2.0)

    with pytest.raises(
        InputError, match=r"program 'scaled' is not the same on ranks 0 and 2: all ranks must build"
    ):
        hc.Simulation(grid, hc.program(scaled))
    other = hc.Grid((8, 8 + (rank == 1)))
    other.field("u")
    with pytest.raises(InputError, match=r"program 'same' is not the same on ranks 0 and 1"):
        hc.Simulation(other, hc.program(same))

    def faded(u: Any, factor: Any) -> None:
        u.set(u * factor)

    sim = hc.Simulation(grid, hc.program(faded), parameters={"factor": 1.0 + (rank == 1)})
    sim[u] = 1.0
    with pytest.raises(
        InputError, match=r"the parameters of program '\w+' are not the same on ranks 0 and 1"
    ):
        sim.run()


# --- values before and after ---


def test_an_expression_keeps_the_value_that_it_was_formed_with() -> None:
    grid, u, v = square()

    def program(u: Any, v: Any) -> None:
        before = u + 1.0
        u.set(u * 10.0)
        v.set(before)

    x = np.random.default_rng(1).uniform(size=grid.shape)
    sim = run(grid, program, {u: x})
    np.testing.assert_array_equal(sim[v], x + 1.0)
    np.testing.assert_array_equal(sim[u], x * 10.0)


@pytest.mark.parametrize("kind", ["expression", "stage", "neighbour", "loop", "scalar"])
def test_an_expression_of_a_value_that_is_gone_is_an_error_at_its_line(kind: str) -> None:
    grid, _, _ = square()

    def program(u: Any, v: Any) -> None:
        before = hc.stage(u + 1.0) if kind == "stage" else u[1, 0] if kind == "neighbour" else u + 1.0
        s = hc.scalar("s")
        s.set(1.0)
        if kind == "loop":
            with hc.loop(limit=2):
                v.set(before)
                u.set(v * 2.0)
        elif kind == "scalar":
            old = s * 2.0
            s.set(s + hc.sum(u))
            v.set(u * s)
            v.set(v + old)
        else:
            u.set(u * 10.0)
            v.set(u[0, 1])  # u is read around: it must be complete
            v.set(v + before)

    what = "scalar 's'" if kind == "scalar" else "field 'u'"
    message = (
        rf"test_language.py:\d+: an expression uses the value that {what} had before it was set again; keep"
    )
    with pytest.raises(InputError, match=message):
        hc.Simulation(grid, hc.program(program))


def test_expressions_of_what_a_loop_does_not_change_may_be_formed_before_it() -> None:
    grid, u, v = square()

    def program(u: Any, v: Any) -> None:
        double = 2.0 * u[1, 0]
        s = hc.scalar("s")
        s.set(3.0)
        triple = s * 1.0
        with hc.loop(limit=2):
            v.set(v + double * triple)

    x = np.random.default_rng(1).uniform(size=grid.shape)
    sim = run(grid, program, {u: x, v: 0.0})
    np.testing.assert_allclose(sim[v], 12 * np.roll(x, -1, 0), rtol=1e-15)


# --- values of fields ---


def keep(u: Any, v: Any) -> None:
    u.set(u * 1.5)
    v.set(v * 1.5)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((6, 8)), r"field 'u' has shape \(8, 6\), but the array given for it has shape \(6, 8\)"),
        (np.zeros(8), r"but the array given for it has shape \(8,\)"),
        (
            np.zeros((8, 6), dtype=complex),
            r"field 'u' is given an array of dtype complex128; expected real numbers",
        ),
        (np.full((8, 6), "x"), r"field 'u' is given an array of dtype <U1; expected real numbers"),
        (lambda x: x, r"the function given for field 'u' takes 1 argument without a default; expected the 2"),
        (lambda x, y, z, *more: x, r"takes 3 arguments without a default; expected the 2 coordinates"),
    ],
)
def test_values_that_do_not_fit_a_field(value: Any, message: str) -> None:
    grid, u, _ = square()
    sim = hc.Simulation(grid, hc.program(keep))
    with pytest.raises(InputError, match=message):
        sim[u] = value


def test_a_function_may_take_all_coordinates_at_once() -> None:
    grid, u, v = square()
    sim = hc.Simulation(grid, hc.program(keep))
    sim[u] = lambda *points: points[0] + 2 * points[1]
    sim[v] = lambda x, *more, scale=2, **options: x + scale * more[0]
    assert sim.checksum(u) == sim.checksum(v)


def test_fields_are_set_by_numbers_arrays_expressions_and_functions() -> None:
    grid, u, v = square()
    sim = hc.Simulation(grid, hc.program(keep))
    x, y = np.meshgrid((np.arange(8) + 0.5) / 8, (np.arange(6) + 0.5) / 6, indexing="ij")
    for value, want in [
        (2, np.full((8, 6), 2.0)),
        (np.arange(48).reshape(8, 6), np.arange(48.0).reshape(8, 6)),
        (np.float32(0.5), np.full((8, 6), 0.5)),
        (grid.x + 2.0 * grid.y, x + 2 * y),
        (lambda x, y: x * y, x * y),
        (lambda x, y: 7, np.full((8, 6), 7.0)),
    ]:
        sim[u] = value
        np.testing.assert_allclose(sim[u], want, rtol=1e-15)
    sim["v"] = u * 2.0  # of another field, as it is now
    np.testing.assert_array_equal(sim["v"], np.full((8, 6), 14.0))
    sim[v][...] = 1.0  # a view
    assert sim.evaluate(hc.sum(v)) == 48.0


def test_unknown_fields_are_named() -> None:
    grid, u, _ = square()
    grid.field("w")
    A = grid.vector("A")
    sim = hc.Simulation(grid, hc.program(keep))
    with pytest.raises(InputError, match=r"field 'U' is unknown.*; known: A, A_x, A_y, u, v, w"):
        sim["U"] = 1.0
    with pytest.raises(InputError, match=r"2.0 is not a field; expected a field of Grid\(.* or its name"):
        sim[2.0] = 1.0  # type: ignore[index]
    sim[A] = 1.0
    assert sim.evaluate(hc.sum(A)) == (48.0, 48.0)
    with pytest.raises(InputError, match=r"varies from cell to cell; reduce it with hc.sum"):
        sim.evaluate(u + 1.0)


@pytest.mark.ranks(1, 4, long=(1,))
def test_a_value_that_is_not_finite_is_reported_with_field_and_cell() -> None:
    """The same error on all ranks, before anything is computed."""
    grid, _, v = square()
    sim = hc.Simulation(grid, hc.program(keep))
    for bad in (math.nan, math.inf):
        array = np.ones((8, 6))
        array[5, 4] = array[6, 0] = bad
        sim[v] = array
        with pytest.raises(
            InputError, match=rf"field 'v' is {bad} at cell \(5, 4\) before the run; all values must"
        ):
            sim.run()
    sim[v] = 1.0
    sim.run()
    assert sim.steps == 1


def test_values_that_grow_without_bound_are_reported_with_the_step() -> None:
    grid, u, _ = square()
    sim = hc.Simulation(grid, lambda u: {u: u * u * 1e200}, scheme=hc.Euler(), dt=1.0)
    sim[u] = 1.0
    with pytest.raises(
        RunError, match=r"field 'u' is inf at cell \(0, 0\) after step \d+ .*a smaller time step may help"
    ):
        sim.run(steps=20)


# --- NumPy ---


def test_numpy_functions_are_traced() -> None:
    grid, u, v = square()

    def program(u: Any, v: Any) -> None:
        v.set(
            np.exp(-(u**2)) + np.float64(2.0) * u - np.float32(0.5)
            + np.where(np.logical_and(u > 0.25, np.less(u, 0.75)), np.sqrt(u), np.maximum(u, 0.5))
            + np.sin(u) * np.cos(u) / np.log(2 + np.abs(u)) + np.square(u)
            + np.tanh(u) + np.cosh(u) - np.sinh(u) + np.power(u, 3)
            + np.reciprocal(1 + u) + np.sign(u - 0.5) + np.tan(u) + np.log10(1 + u)
            + np.int64(3) * u
        )  # fmt: skip

    x = np.random.default_rng(1).uniform(size=grid.shape)
    sim = run(grid, program, {u: x})
    want = (
        np.exp(-(x**2)) + 2 * x - 0.5 + np.where((x > 0.25) & (x < 0.75), np.sqrt(x), np.maximum(x, 0.5))
        + np.sin(x) * np.cos(x) / np.log(2 + x) + x**2 + np.tanh(x) + np.cosh(x) - np.sinh(x)
        + x**3 + 1 / (1 + x) + np.sign(x - 0.5) + np.tan(x) + np.log10(1 + x) + 3 * x
    )  # fmt: skip
    np.testing.assert_allclose(sim[v], want, rtol=1e-14)


def test_functions_that_select_have_their_rules() -> None:
    """min and max: NaN where any is NaN, -0 below +0; where takes either side whatever the other is."""
    grid = hc.Grid(6)
    a, b, low, high, chosen, signs = (grid.field(n) for n in ("a", "b", "low", "high", "chosen", "signs"))

    def program() -> None:
        low.set(hc.minimum(a, b))
        high.set(hc.maximum(b, a))
        chosen.set(hc.where(a > 0, 1.0 / a, hc.sqrt(-a)))
        signs.set(hc.sign(a))

    sim = hc.Simulation(grid, hc.program(program))
    x = np.array([1.0, -0.0, 0.0, -4.0, 2.0, -1.0])
    y = np.array([2.0, 0.0, -0.0, -5.0, 2.0, 0.5])
    sim[a], sim[b] = x, y
    sim.run()
    np.testing.assert_array_equal(sim[low], [1, -0.0, -0.0, -5, 2, -1])
    assert np.signbit(sim[low][1:3]).all()
    assert not np.signbit(sim[high][1:3]).any()
    np.testing.assert_array_equal(sim[chosen], [1, 0, 0, 2, 0.5, 1])
    np.testing.assert_array_equal(sim[signs], np.sign(x))
    assert np.signbit(sim[signs][1])


@pytest.mark.ranks(1, 3, long=(1,))
def test_a_function_that_cannot_be_traced_runs_in_numpy_with_the_same_bits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from mpi4py import MPI

    def steps(x: Any, y: Any) -> Any:
        return np.interp(y, [0.0, 0.4, 1.0], [0.0, 1.0, 0.5]) * x + np.hypot(x, y)

    def make(**options: Any) -> hc.Simulation:
        grid = hc.Grid((9, 6), periodic=True)
        u = grid.field("u", location="face-y")
        sim = hc.Simulation(grid, hc.program(lambda u: u.set(u * 1.0 + 0.0 * u[1, 0])), **options)
        sim[u] = steps
        return sim

    with caplog.at_level(logging.WARNING, logger="halocline"):
        alone = make(communicator=MPI.COMM_SELF)
    assert (
        "field u: its function cannot be traced (NumPy's interp cannot be traced into a kernel: "
        in caplog.text
    )
    x, y = np.meshgrid((np.arange(9) + 0.5) / 9, np.arange(6) / 6, indexing="ij")
    np.testing.assert_allclose(alone["u"], steps(x, y), rtol=1e-14)
    for decomposition in ("1d-x", "1d-y"):
        assert make(decomposition=decomposition).checksum("u") == alone.checksum("u")


def test_mathematics_of_the_standard_library_runs_row_by_row_too(caplog: pytest.LogCaptureFixture) -> None:
    """`math.sin` takes no arrays either: the error is the user's, with a traceback to the line."""
    grid, u, _ = square()
    sim = hc.Simulation(grid, hc.program(keep))
    with pytest.raises(InputError, match=r"function '<lambda>' raised TypeError.*only") as caught:
        sim[u] = lambda x, y: math.sin(x) * y
    assert "math.sin(x) * y" in str(traceback.extract_tb(caught.value.__cause__.__traceback__)[-1].line)
    assert "cannot be traced" in caplog.text


# --- float32 ---


def test_a_value_is_rounded_when_it_is_stored() -> None:
    """Also where the statement that reads it shares the sweep."""
    grid = hc.Grid(64)
    u, v, w = grid.field("u", dtype="float32"), grid.field("v"), grid.field("w")

    def program() -> None:
        u.set(v * 0.1)
        w.set(u - v * 0.1)

    x = np.random.default_rng(1).uniform(1, 2, 64)
    sim = run(grid, program, {v: x})
    np.testing.assert_array_equal(sim[u], (x * 0.1).astype(np.float32))
    # the product may be fused into the difference, which spares its rounding
    assert np.count_nonzero(sim[w]) > 60
    np.testing.assert_allclose(sim[w], (x * 0.1).astype(np.float32) - x * 0.1, rtol=1e-6)


def test_arithmetic_has_the_precision_of_the_fields_in_it() -> None:
    grid = hc.Grid(64)
    a, b, p, q, r = (grid.field(n, dtype="float32") for n in "abpqr")
    c, d = grid.field("c"), grid.field("d")

    def program() -> None:
        p.set(a * b)
        q.set(a * 0.1)  # the literal is rounded too
        r.set(a / hc.parameter("third"))
        c.set(a * b)  # a product of float32, stored as float64
        d.set(a * c)  # float64, as c is

    random = np.random.default_rng(1)
    x, y = random.uniform(1, 2, (2, 64)).astype(np.float32)
    sim = hc.Simulation(grid, hc.program(program), parameters={"third": 1 / 3})
    sim[a], sim[b] = x, y
    sim.run()
    np.testing.assert_array_equal(sim[p], x * y)
    np.testing.assert_array_equal(sim[q], x * np.float32(0.1))
    np.testing.assert_array_equal(sim[r], x / np.float32(1 / 3))
    np.testing.assert_array_equal(sim[c], (x * y).astype(np.float64))
    np.testing.assert_array_equal(sim[d], x.astype(np.float64) * (x * y).astype(np.float64))


# --- coordinates, places, reductions ---


def test_coordinates_start_again_around_a_periodic_axis() -> None:
    """The neighbour of the last cell is the first, with its coordinate: wherever the value is formed."""
    grid = hc.Grid((6, 4), periodic=(True, False))
    u, a, b, c = (grid.field(n, boundary=hc.Value(lambda x, y: x)) for n in "uabc")

    def program() -> None:
        u.set(grid.x)
        a.set(u[1, 0])
        b.set((2.0 * grid.x)[-1, 0])
        s = hc.stage(hc.exp(grid.x), storage="patch")
        c.set(s[2, 0] - s)

    sim = run(grid, program, {})
    x = np.repeat((np.arange(6) + 0.5)[:, None] / 6, 4, axis=1)
    np.testing.assert_allclose(sim[a], np.roll(x, -1, 0), rtol=1e-15)
    np.testing.assert_allclose(sim[b], 2 * np.roll(x, 1, 0), rtol=1e-15)
    np.testing.assert_allclose(sim[c], np.roll(np.exp(x), -2, 0) - np.exp(x), rtol=1e-14, atol=1e-15)


def test_points_lie_where_their_location_says() -> None:
    for walls, first, h in (
        ("face", (0.5, 0.5), (0.25, 0.4)),
        ("node", (1.0, 1.0), (0.2, 2 / 6)),
        (("face", "node"), (0.5, 1.0), (0.25, 2 / 6)),
    ):
        grid = hc.Grid((4, 5), (1.0, 2.0), origin=(-1.0, 3.0), walls=walls)
        assert grid.spacing == pytest.approx(h)
        locations = {
            "cell": (0, 0),
            "node": (1, 1),
            "face-x": (1, 0),
            "face-y": (0, 1),
            "edge-x": (0, 1),
            "edge-z": (1, 1),
        }
        found = {
            loc: (grid.field(f"x{n}", location=loc), grid.field(f"y{n}", location=loc))
            for n, loc in enumerate(locations)
        }

        def program() -> None:
            for pair in found.values():  # noqa: B023
                for f, coordinate in zip(pair, pair[0].coordinates, strict=True):
                    f.set(coordinate)

        sim = run(grid, program, {})
        for location, staggered in locations.items():
            x, y = (
                o + (np.arange(n + s) + inset - 0.5 * s) * d
                for o, n, s, inset, d in zip((-1.0, 3.0), (4, 5), staggered, first, h, strict=True)
            )
            have = [np.array(sim[f]) for f in found[location]]
            np.testing.assert_allclose(have[0], np.repeat(x[:, None], len(y), 1), rtol=1e-14)
            np.testing.assert_allclose(have[1], np.repeat(y[None], len(x), 0), rtol=1e-14)


def test_reductions_run_over_the_points_of_their_expression() -> None:
    """A face field has a point more at the upper wall; a difference of its values belongs to cells. It does
    not matter whether the field is set in the same sweep."""
    grid = hc.Grid((4, 3))
    u = grid.field("u", boundary=hc.Value(0.0))
    F = grid.field("F", location="face-x")

    def program() -> None:
        F.set(u - u[-1, 0] + 1.0)
        for name, e in {
            "a": F,
            "b": F[1, 0] - F,
            "c": u * 1.0,
            "d": hc.stage(F * 2.0, storage="patch"),
            "e": F[0, 0] + u,
        }.items():
            hc.scalar(f"n_{name}").set(hc.count(e < 1e9))
        hc.scalar("last").set(hc.value(F, (-1, 2)))

    sim = run(grid, program, {u: 5.0})
    assert [sim.values[f"n_{n}"] for n in "abcde"] == [15, 12, 12, 15, 12]
    assert sim.values["last"] == -5.0 - 5.0 + 1.0


def test_reductions_agree_with_numpy() -> None:
    grid, u, v = square()
    sim = hc.Simulation(grid, hc.program(keep))
    x, y = np.random.default_rng(1).uniform(-1, 1, (2, 8, 6))
    sim[u], sim[v] = x, y
    A = grid.vector("A")
    assert len(A) == 2
    found = sim.evaluate(
        hc.sum(u), hc.dot(u, v), hc.norm(u - v), hc.min(u), hc.max(abs(v)), hc.count((u > 0) & ~(v > 0)),
        hc.value(u * v, (-1, 2)), hc.norm(hc.Vector((u, v))), hc.sum(hc.dot((u, v), (v, u))),
    )  # fmt: skip
    want = [
        math.fsum(x.ravel()), (x * y).sum(), np.linalg.norm(x - y), x.min(), abs(y).max(),
        np.count_nonzero((x > 0) & ~(y > 0)), x[-1, 2] * y[-1, 2],
        math.hypot(np.linalg.norm(x), np.linalg.norm(y)), 2 * (x * y).sum(),
    ]  # fmt: skip
    np.testing.assert_allclose(found, want, rtol=1e-14)
    assert found[0] == want[0]  # a sum is rounded once


def test_runs_end_at_their_time_and_count_of_steps() -> None:
    grid, u, _ = square()
    sim = hc.Simulation(grid, lambda u: {u: 1.0 + 0.0 * u}, scheme=hc.Euler(), dt=0.3)
    sim[u] = 0.0
    times: list[float] = []
    sim.run(until=1.0, every=0.5, exact=True, callback=lambda s: times.append(s.time))
    assert times == [0.5, 1.0]
    assert sim.steps == 4
    np.testing.assert_allclose(sim[u], 1.0, rtol=1e-15)
    sim.run(steps=2)
    assert sim.steps == 6
    assert sim.time == pytest.approx(1.6)
    for wrong, message in [
        ({"until": math.inf}, "until is inf"),
        ({"steps": -1}, "steps is -1"),
        ({"steps": 1.5}, "steps is 1.5"),
        ({"every": 0.0}, "every is 0.0"),
    ]:
        with pytest.raises(InputError, match=message):
            sim.run(**{"until": 2.0, **wrong})


def test_memory_grows_with_what_is_asked_and_nothing_is_lost() -> None:
    """A wider halo is allocated for `evaluate`; the field and its second buffer stay a pair."""
    grid = hc.Grid(8, periodic=True)
    u = grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(u[1] + 1.0)))
    sim[u] = np.arange(8.0)
    sim.run()
    assert sim.evaluate(hc.max(abs(u[3] - u))) == 5.0
    sim.run()
    assert sim[u].tolist() == [4, 5, 6, 7, 8, 9, 2, 3]


@pytest.mark.parametrize(
    ("scheme", "order"), [(hc.Euler(), 1), (hc.RK2(), 2), (hc.RK3(), 3), (hc.RK4(), 4), (hc.SSPRK3(), 3)]
)
def test_schemes_have_their_order_in_time(scheme: Any, order: int) -> None:
    """Also where the equations name the time: each stage of a step has its own."""
    ends = []
    for dt in (0.1, 0.05, 0.025):
        grid = hc.Grid(2)
        u = grid.field("u")

        def equation(u: Any, t: Any) -> Any:
            return {u: u * hc.cos(t) + hc.sin(3.0 * t) - 0.1 * u * u}

        sim = hc.Simulation(grid, equation, scheme=scheme, dt=dt)
        sim[u] = 1.0
        sim.run(until=2.0)
        assert sim.time == 2.0
        ends.append(float(sim[u][0]))
    first, second = ends[0] - ends[1], ends[1] - ends[2]
    assert math.log2(first / second) == pytest.approx(order, abs=0.25)


def test_reductions_in_equations_see_the_values_before_the_step() -> None:
    grid = hc.Grid(5)
    u, v, w = (grid.field(n) for n in "uvw")

    def equations(u: Any, v: Any, w: Any) -> Any:
        return {u: v, v: -u, w: hc.sum(u) * v + hc.max(v)}

    sim = hc.Simulation(grid, equations, scheme=hc.Euler(), dt=1.0)
    x = np.arange(5.0)
    sim[u], sim[v], sim[w] = x, x + 1, 0.0
    sim.run(steps=1)
    assert sim[w].tolist() == (10 * (x + 1) + 5).tolist()
    assert sim[v].tolist() == [1.0] * 5


def test_reductions_of_reductions() -> None:
    grid = hc.Grid(5)
    u, v = grid.field("u"), grid.field("v")

    def program() -> None:
        away = hc.stage(u - hc.sum(u) / 5.0, storage="patch")
        v.set(away * away + hc.sum((u - hc.sum(u) / 5.0) ** 2))
        hc.scalar("q").set(hc.max(v - hc.min(v - u)))
        hc.stop(hc.sum(v) > 1e9, "never")

    sim = run(grid, program, {u: np.arange(5.0)})
    assert sim[v].tolist() == [14, 11, 10, 11, 14]
    assert sim.values["q"] == 14 - min(14 - 0, 11 - 1, 10 - 2, 11 - 3, 14 - 4)


# --- operators ---


def errors(n: int, order: int, ndim: int) -> dict[str, float]:
    """The greatest error of every operator on smooth periodic fields, with n cells a wave."""
    grid = hc.Grid((n,) * ndim, 2 * math.pi, periodic=True)
    f = grid.field("f")
    v = grid.vector("v", components=3)
    s = [np.sin, np.cos]
    points = np.meshgrid(*[(np.arange(n) + 0.5) * 2 * math.pi / n] * ndim, indexing="ij")
    x, y = points[0], points[1]
    z = points[2] if ndim == 3 else 0.0 * x

    def field(a: int, b: int, c: int) -> Any:
        """sin or cos of each coordinate, and its derivatives by a count per axis."""

        def wave(axis: Any, kind: int, derivatives: int) -> Any:
            turns = kind + derivatives
            return (-1) ** (((turns + 0) // 2) % 2) * s[turns % 2](axis)

        return lambda i=0, j=0, k=0: (
            wave(x, a, i) * wave(y, b, j) * (wave(z, c, k) if ndim == 3 else float(k == 0))
        )

    g = field(0, 1, 1)
    w = [field(1, 0, 0), field(1, 1, 0), field(1, 1, 1)]
    d = lambda q, *axes: q(*(axes.count(a) for a in range(3)))  # noqa: E731
    spread = (d(w[0], 0) + d(w[1], 1) + d(w[2], 2)) / 3
    want: dict[str, Any] = {
        "dx": g(1), "dy": g(0, 1), "dz": g(0, 0, 1),
        "dxx": g(2), "dyy": g(0, 2),
        "dxy": g(1, 1), "dyz": g(0, 1, 1),
        "laplacian": g(2) + g(0, 2) + g(0, 0, 2),
        "div": d(w[0], 0) + d(w[1], 1) + d(w[2], 2),
        "curl_x": d(w[2], 1) - d(w[1], 2), "curl_y": d(w[0], 2) - d(w[2], 0),
        "curl_z": d(w[1], 0) - d(w[0], 1),
        **{f"grad_div_{'xyz'[i]}": d(w[0], 0, i) + d(w[1], 1, i) + d(w[2], 2, i) for i in range(3)},
        "strain_xx": d(w[0], 0) - spread, "strain_zz": d(w[2], 2) - spread,
        "strain_xy": (d(w[0], 1) + d(w[1], 0)) / 2, "strain_yz": (d(w[1], 2) + d(w[2], 1)) / 2,
    }  # fmt: skip
    out = {name: grid.field(name) for name in want}

    def program() -> None:
        with hc.order(order):
            grad = hc.grad(f)
            curl, strain = hc.curl(v), hc.traceless_strain(v)
            made = {
                "dx": hc.derivative(f, "x"), "dy": grad[1], "dz": hc.derivative(f, 2),
                "dxx": hc.second(f, "x"), "dyy": hc.derivative(f, "y", "y"),
                "dxy": hc.mixed(f, "x", "y"), "dyz": hc.derivative(f, "y", "z"),
                "laplacian": hc.laplacian(f), "div": hc.div(v),
                "curl_x": curl[0], "curl_y": curl[1], "curl_z": curl[2],
                **{f"grad_div_{axis}": e for axis, e in zip("xyz", hc.grad_div(v), strict=True)},
                "strain_xx": strain[0][0], "strain_zz": strain[2][2],
                "strain_xy": strain[0][1], "strain_yz": strain[1][2],
            }  # fmt: skip
        for name, e in made.items():
            out[name].set(e)

    sim = hc.Simulation(grid, hc.program(program))
    sim[f] = g()
    for component, q in zip(v, w, strict=True):
        sim[component] = q()
    sim.run()
    return {name: float(np.abs(sim[out[name]] - want[name]).max()) for name in want}


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("order", [2, 4, 6, 8])
def test_operators_converge_with_the_order_that_they_claim(order: int, ndim: int) -> None:
    coarse, fine = errors(16, order, ndim), errors(32, order, ndim)
    for name, error in some(fine.items()):
        if ndim == 2 and name in ("dz", "dyz", "grad_div_z"):
            assert error == coarse[name] == 0.0  # the grid has no such axis
            continue
        assert 1e-14 < error < 0.1
        assert math.log2(coarse[name] / error) == pytest.approx(order, abs=0.25), name


@pytest.mark.parametrize("order", [2, 4, 6, 8])
def test_upwinding_takes_one_order_and_hyperdiffusion_has_two(order: int) -> None:
    """In one dimension: advection by a speed that changes sign, and the sixth derivative."""
    found = []
    for n in (32, 64):
        grid = hc.Grid(n, 2 * math.pi, periodic=True)
        f, u, advected, smoothed = (grid.field(name) for name in ("f", "u", "advected", "smoothed"))

        def program(f: Any = f, u: Any = u, advected: Any = advected, smoothed: Any = smoothed) -> None:
            with hc.order(order):
                advected.set(u * hc.derivative(f, 0) - hc.upwinding(f, (u,)))
            smoothed.set(hc.hyperdiffusion(f))

        sim = hc.Simulation(grid, hc.program(program), threads=1)
        x = (np.arange(n) + 0.5) * 2 * math.pi / n
        sim[f], sim[u] = np.sin(x), 1 + 2 * np.cos(x)
        sim.run()
        errors = np.abs(sim[advected] - (1 + 2 * np.cos(x)) * np.cos(x)).max()
        found.append((errors, np.abs(sim[smoothed] + np.sin(x)).max()))
    upwind, hyper = (math.log2(coarse / fine) for coarse, fine in zip(*found, strict=True))
    assert upwind == pytest.approx(order - 1, abs=0.25)
    assert hyper == pytest.approx(2, abs=0.1)


def test_vector_calculus_obeys_its_identities_exactly_where_differences_commute() -> None:
    """div curl = 0 and curl grad = 0 to rounding, for any field: differences along two axes commute."""
    grid = hc.Grid((8, 9, 10), periodic=True)
    f, v = grid.field("f"), grid.vector("v")
    a, b = grid.field("a"), grid.vector("b")

    def program() -> None:
        rotation = hc.Vector(hc.stage(c, storage="patch") for c in hc.curl(v))
        slope = hc.Vector(hc.stage(c, storage="inline") for c in hc.grad(f))
        a.set(hc.div(rotation))
        b.set(hc.curl(slope))

    sim = hc.Simulation(grid, hc.program(program))
    random = np.random.default_rng(2)
    for field in (f, *v):
        sim[field] = random.uniform(-1, 1, grid.shape)
    sim.run()
    for field in (a, *b):
        assert 0 < np.abs(sim[field]).max() < 1e-11


def test_vectors_have_their_arithmetic() -> None:
    grid = hc.Grid((4, 4), periodic=True)
    v, w = grid.vector("v"), grid.vector("w")
    assert [e is f.expr for e, f in zip(v + hc.Vector((0.0, 0.0)), v, strict=True)] == [True, True]
    assert (2.0 * v - v / 4.0)[0] is 2.0 * v[0] - v[0] / 4.0
    assert (np.float64(2.0) * v)[1] is 2.0 * v[1]
    assert hc.dot(v, w) is v[0] * w[0] + v[1] * w[1]
    assert hc.cross(v, w)[2] is v[0] * w[1] - v[1] * w[0]
    assert len(hc.cross(v, w)) == 3
    with pytest.raises(InputError, match=r"the product of two vectors is ambiguous: use hc.dot or hc.cross"):
        v * w
    with pytest.raises(InputError, match=r"vector 'v' has 2 components; got"):
        hc.program(lambda: v.set([1.0])).trace()


def test_a_run_and_a_solve_tell_their_share_of_the_speed_of_memory() -> None:
    grid, u, _ = square()
    sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-6)
    assert sim.share_of_bound() is None
    sim[u] = 1.0
    sim.run(steps=100)
    share = sim.share_of_bound()
    assert share is not None
    assert 0 < share < 2
    solution = hc.solve(lambda u: u - 1e-3 * hc.laplacian(u), u, 1.0)
    assert solution.bandwidth_share is not None
    assert 0 < solution.bandwidth_share < 2


def test_equations_that_reduce_and_set_in_any_order() -> None:
    """A statement that must wait for a sum does not lose what others overwrite meanwhile."""
    grid, u, v = square()
    w = grid.field("w")

    def equations(u: Any, w: Any, v: Any) -> Any:
        return {u: hc.laplacian(u), w: hc.sum(u) * w, v: hc.laplacian(u)}

    sim = hc.Simulation(grid, equations, scheme=hc.Euler(), dt=1e-5)
    sim[u], sim[v], sim[w] = (lambda x, y: x * x * y), 0.0, 1.0
    total = sim.evaluate(hc.sum(u))
    sim.run(steps=1)
    np.testing.assert_allclose(sim[w], 1 + 1e-5 * total, rtol=1e-14)
    assert abs(sim[v]).max() > 0


def test_reductions_of_coordinates_alone() -> None:
    grid = hc.Grid((8, 4), extent=(1.0, 2.0))
    grid.field("u")
    sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=1.0)
    x = grid.x
    assert sim.evaluate(hc.count(x < 0.5), hc.sum(x), hc.first(x > 0.5)) == (16.0, 16.0, 16.0)


def test_the_first_point_where_a_condition_holds() -> None:
    grid = hc.Grid((4, 6))
    cells, faces = grid.field("cells"), grid.field("faces", location="face-y")

    @hc.program
    def step(cells: Any, faces: Any) -> None:
        cells.set(cells * 1.0)
        faces.set(faces * 1.0)

    sim = hc.Simulation(grid, step)
    for name, points in (("cells", (4, 6)), ("faces", (4, 7))):
        values = np.zeros(points)
        values[2, 5] = values[3, 0] = -1.0
        sim[name] = values
    first = sim.evaluate(hc.first(cells < 0), hc.first(faces < 0), hc.first(cells > 0))
    assert np.unravel_index(int(first[0]), (4, 6)) == (2, 5)
    assert np.unravel_index(int(first[1]), (4, 7)) == (2, 5)
    assert first[2] == np.inf


def test_a_stop_after_a_step_leaves_the_clock_with_the_fields() -> None:
    grid, u, _ = square()
    seen: list[float] = []
    sim = hc.Simulation(
        grid,
        lambda u: {u: 1.0 + 0.0 * u},
        scheme=hc.RK3(),
        dt=0.5,
        after_step=lambda u, t: hc.stop((hc.min(u) > 1.4) & (t > 1.4), "risen"),
    )
    sim[u] = 0.0
    outcome = sim.run(until=10.0, every=2.0, callback=lambda s: seen.append(s.time))
    assert (outcome.reason, sim.time, sim.steps, seen) == ("risen", 1.5, 3, [])
    assert sim.evaluate(hc.max(u)) == pytest.approx(1.5)


SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, -2.5)
FOLDED = {
    "0 * u": (0.0,) * 6,
    "u * -0.0": (0.0,) * 6,
    "0 / u": (0.0,) * 6,
    "u + 0": SPECIAL,
    "0.0 + u": SPECIAL,
    "u - 0": SPECIAL,
    "u - (-0.0)": SPECIAL,
    "0 - u": (math.nan, -math.inf, math.inf, -0.0, 0.0, 2.5),
    "1 * u": SPECIAL,
    "u / 1": SPECIAL,
    "-1 * u": (math.nan, -math.inf, math.inf, -0.0, 0.0, 2.5),
    "-(-u)": SPECIAL,
    "u / 4": (math.nan, math.inf, -math.inf, 0.0, -0.0, -0.625),
    "u**0": (1.0,) * 6,
    "u**0.5": (math.nan, math.inf, math.nan, 0.0, -0.0, math.nan),
    "hc.where(u > 0, u, u)": SPECIAL,
}
COMPUTED = {
    "off * u": (math.nan, math.nan, math.nan, 0.0, -0.0, -0.0),
    "u + off": (math.nan, math.inf, -math.inf, 0.0, 0.0, -2.5),
    "off / u": (math.nan, 0.0, -0.0, math.nan, math.nan, -0.0),
    "u - u": (math.nan, math.nan, math.nan, 0.0, 0.0, 0.0),
    "u / u": (math.nan, math.nan, math.nan, math.nan, math.nan, 1.0),
    "hc.where(u == u, 1.0, 0.0)": (0.0, 1.0, 1.0, 1.0, 1.0, 1.0),
}


def test_what_a_literal_zero_folds_and_a_parameter_does_not() -> None:
    """docs/reference/language.md, What is simplified."""
    grid = hc.Grid(len(SPECIAL), periodic=True)
    u = grid.field("u")
    results = {formula: grid.field(f"v{n}") for n, formula in enumerate({**FOLDED, **COMPUTED})}
    sim = hc.Simulation(grid, lambda u: {u: 0.0 * u}, scheme=hc.Euler(), dt=1.0, parameters={"off": 0.0})
    sim[u] = np.array(SPECIAL)
    names = {"u": u, "off": hc.parameter("off"), "hc": hc}
    for formula, field in results.items():
        sim[field] = eval(formula, names)
    for formula, field in results.items():
        want, found = np.array({**FOLDED, **COMPUTED}[formula]), sim[field]
        np.testing.assert_array_equal(found, want, err_msg=formula)
        signs = ~np.isnan(want)
        assert np.array_equal(np.signbit(found)[signs], np.signbit(want)[signs]), formula
