"""Equations: invalid ones, names, parameters, and results of functions."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from small_programs import square

# --- equations ---


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        (lambda u, v: u.set(v + np.ones(3)), r"operand is an array of shape \(3,\); expected a field"),
        (lambda u, v: u.set(math.sin(v)), r"not Field: functions such as math.sin cannot be traced"),
        (lambda u, v: u.set(v[1]), r"offset 1 does not fit a grid of 2 axes; expected 2 whole numbers"),
        (lambda u, v: u.set(v[0, 0, 1]), r"offset \(0, 0, 1\) does not fit a grid of 2 axes"),
        (lambda u, v: u.set(v[0, 0.5]), r"offset \(0, 0.5\) does not fit"),
        (lambda u, v: u.set(u if u > v else v), r"has no truth value while equations are traced: use"),
        (lambda u, v: u.set(max(u, v)), r"has no truth value while equations are traced"),
        (lambda u, v: u.set(u > v), r"field 'u' is set to the condition .*use hc.where\(condition, 1.0,"),
        (lambda u, v: u.set((u > v) + 1.0), r"operator 'add' needs a number on both sides, got \(u > v\)"),
        (lambda u, v: u.set(hc.where(u, v, 0.0)), r"hc\.where\(\) needs a condition such as u > 0 as its"),
        (lambda u, v: u.set(hc.where((u > 0) & v, v, 0.0)), r"operator 'and' needs a condition on both"),
        (lambda u, v: u.set("text"), r"value of field 'u' is 'text' of type str; expected a field"),
        (lambda u, v: u.set([u, v]), r"value of field 'u' is .* of type list; expected a field"),
        (lambda u, v: u.set(np.sum(u)), r"NumPy's sum cannot be traced|NumPy's add cannot be traced"),
        (lambda u, v: u.set(np.arctan(u)), r"NumPy's arctan cannot be traced into a kernel; these can:"),
        (lambda u, v: u.set(hc.derivative(u, "w")), r"axis 'w' is unknown; expected 0, 1, 2 or 'x', 'y',"),
        (lambda u, v: u.set(hc.derivative(u, 0, order=3)), r"order 3 is not an order of central differences"),
        (lambda u, v: u.set(hc.div(u)), r"div needs a vector \(grid.vector or a tuple of expressions\), got"),
        (lambda u, v: u.set(hc.sum(3.0)), r"sum over the grid needs an expression that varies from cell to"),
        (lambda u, v: u.set(hc.count(u)), r"hc\.count\(\) needs a condition such as u > 0, got u"),
        (lambda u, v: u.set(hc.value(u, (8, 0))), r"value at \(8, 0\): this index lies outside the expr"),
        (lambda u, v: u.set(hc.value(u, (1,))), r"value at \(1,\): this index lies outside"),
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
        (lambda u, v: list(u), r"a field cannot be iterated over. Use \[offset\]"),
    ],
)  # fmt: skip
def test_invalid_equations_are_rejected(equation: Callable[..., Any], message: str) -> None:
    grid, _, _ = square()

    def program(u: Any, v: Any) -> None:
        equation(u, v)

    with pytest.raises((InputError, TypeError), match=message):
        hc.Simulation(grid, hc.program(program))


def test_an_unknown_argument_lists_known_and_similar_names() -> None:
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

    with pytest.raises(InputError, match=r"star: \*rest cannot be bound; list each field and parameter"):
        hc.Simulation(grid, hc.program(star))


def test_an_ambiguous_name_is_rejected() -> None:
    grid, _, _ = square()

    def program(u: Any, v: Any) -> None:
        u.set(v)

    with pytest.raises(InputError, match=r"argument 'v' names both a field and a scalar or parameter"):
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
        ({"kappa": "much"}, r"parameter 'kappa' is 'much'; expected a real number"),
        ({"kappa": math.nan}, r"parameter 'kappa' is nan; expected a finite number"),
        ({"dt": 0.1}, r"parameter name 'dt' cannot be used; expected an identifier other than t, dt, step"),
        ({"h_x": 0.1}, r"parameter name 'h_x' cannot be used"),
        ({"2k": 0.1}, r"parameter name '2k' cannot be used"),
    ],
)
def test_invalid_parameters_are_rejected(parameters: dict[str, Any], message: str) -> None:
    grid, _, _ = square()
    with pytest.raises(InputError, match=message):
        hc.Simulation(grid, hc.program(lambda u: u.set(1.0)), parameters=parameters)


def test_invalid_time_derivatives_are_rejected() -> None:
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
    with pytest.raises(
        InputError, match=r"returns time derivatives and needs a scheme, such as scheme=hc.RK3\(\)"
    ):
        hc.Simulation(grid, good, dt=0.1)
    with pytest.raises(InputError, match=r"returns time derivatives and needs a time step: dt=0.01"):
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
def test_different_programs_on_ranks_are_reported_before_a_run() -> None:
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


# --- operators ---


def test_reductions_in_equations_use_old_values_in_any_order() -> None:
    """A statement that waits for a sum keeps values that other statements overwrite in the meantime."""
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
