"""Functions from users: their arguments, and callables of any kind."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import halocline as hc
from arguments import ENDS, WRONG_ARRAYS, WRONG_FUNCTIONS, Called, Heat, line, memory
from halocline.errors import InputError
from halocline.lang import equations
from halocline.lang.boundary import Ghost
from halocline.lang.callables import argument_count
from halocline.lang.expression import place_of, without_location
from halocline.lang.program import bind
from halocline.problems.error import difference
from loops import some
from stepped_programs import program_of


def forms(count: int, core: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Return functions of `count` arguments that return the result of `core`; each has other options."""

    def with_default(a: Any, b: Any, k: Any = "kept") -> Any:
        assert k == "kept"
        return core(a, b)

    def with_two_defaults(a: Any, k: Any = "kept", m: Any = "kept") -> Any:
        assert (k, m) == ("kept", "kept")
        return core(a)

    def by_keyword(*arguments: Any, k: Any = "kept") -> Any:
        assert k == "kept"
        return core(*arguments)

    def behind(k: Any, *arguments: Any) -> Any:
        assert k == "kept"
        return core(*arguments)

    @functools.wraps(with_default if count == 2 else with_two_defaults)
    def wrapped(*arguments: Any) -> Any:
        return (with_default if count == 2 else with_two_defaults)(*arguments)

    class Method:
        if count == 2:

            def of(self, a: Any, b: Any, k: Any = "kept") -> Any:
                assert k == "kept"
                return core(a, b)

        else:

            def of(self, a: Any, k: Any = "kept") -> Any:
                assert k == "kept"
                return core(a)

        __call__ = of

    return {
        "default": with_default if count == 2 else with_two_defaults,
        "keyword": by_keyword,
        "partial": partial(behind, "kept"),
        "partial of a keyword": partial(with_default if count == 2 else with_two_defaults, k="kept"),
        "partial of a partial": partial(partial(behind, "kept"), *()),
        "object": Called(core),
        "object with a default": Method(),
        "method": Method().of,
        "wrapped": wrapped,
        "cached": functools.lru_cache(with_default if count == 2 else with_two_defaults),
    }


def at_wall(function: Callable[..., Any], ndim: int) -> Any:
    return ENDS[ndim - 1].at_wall(function)


def ghost(function: Callable[..., Any]) -> Any:
    return hc.BoundaryKernel(function).ghost(ENDS[0])


def start(function: Callable[..., Any], ndim: int) -> Any:
    field = ENDS[ndim - 1].field
    return memory(field.grid).traced(field, function)


def stretched(function: Callable[..., Any]) -> Any:
    return hc.Grid(8, stretch={"x": function}).positions()[0].tobytes()


# by name: number of arguments, core, function that receives the form, and its result
PLACES: dict[str, tuple[int, Callable[..., Any], Callable[[Callable[..., Any]], Any]]] = {
    "boundary value in 1D": (1, lambda x: 2.0 * x, partial(at_wall, ndim=1)),
    "boundary value in 2D": (2, lambda x, y: x - y, partial(at_wall, ndim=2)),
    "boundary kernel": (1, lambda u, *layer: u[0] + u[2], ghost),
    "boundary kernel by layer": (2, lambda u, layer: u[layer] * (layer + 1.0), ghost),
    "initial value in 1D": (1, lambda x: np.sin(x), partial(start, ndim=1)),
    "initial value in 2D": (2, lambda x, y: np.sin(x) * y, partial(start, ndim=2)),
    "map of an axis": (1, lambda x: x - 0.1 * np.sin(2 * np.pi * x), stretched),
}


@pytest.mark.parametrize("place", PLACES)
def test_defaults_never_receive_positional_arguments(place: str) -> None:
    count, core, give = PLACES[place]
    expected = give(core)
    for name, function in some(forms(count, core).items()):
        if (place, name) == ("map of an axis", "cached"):
            continue  # arrays cannot be keys
        result = give(function)
        assert result is expected if isinstance(expected, hc.Expr) else result == expected, name


@pytest.mark.parametrize("place", PLACES)
def test_functions_with_wrong_numbers_of_arguments_are_rejected(place: str) -> None:
    _, _, give = PLACES[place]
    least, most = (1, 2) if "kernel" in place else (PLACES[place][0],) * 2
    wrong = {
        0: lambda: 1.0,
        1: lambda x, k=2.0: 1.0,
        2: lambda x, y, k=2.0: 1.0,
        3: lambda x, y, z, *more, k=2.0: 1.0,
    }
    rejected_count = 0
    for count, function in wrong.items():
        if least <= count <= most:
            continue
        words = rf"takes {count} arguments? without a default; expected "
        with pytest.raises(InputError, match=words):
            give(function)
        rejected_count += 1
    assert rejected_count >= 2
    with pytest.raises(InputError, match=r"needs the keyword argument 'k'"):
        give(lambda *arguments, k: 1.0)


# functions of the coordinates, and the expressions that they must return
OF_A_GRID: dict[str, Callable[[hc.Grid, Any], Callable[..., Any]]] = {
    "a coordinate of the grid": lambda grid, v: lambda x, y: hc.sin(grid.x) + y,
    "a coordinate and one of the grid": lambda grid, v: lambda x, y: hc.where(grid.y > 0.5, x, y),
    "numbers of cells": lambda grid, v: lambda x, y: 0.01 * grid.cell_number(axes="y"),
    "numbers of all cells": lambda grid, v: lambda x, y: x + 0.01 * grid.cell_number(),
    "random numbers": lambda grid, v: lambda x, y: 1e-3 * hc.random(7, index=grid.cell_number(axes="y")),
    "a derivative": lambda grid, v: lambda x, y: 2.0 * hc.derivative(v, 0),
    "a mixed derivative": lambda grid, v: lambda x, y: hc.derivative(v, 0, 1) * hc.derivative(v, 1),
    "another field": lambda grid, v: lambda x, y: v + x,
}


@pytest.mark.parametrize("name", OF_A_GRID)
@pytest.mark.parametrize("periodic", [False, True])
def test_functions_may_use_the_grid_and_its_fields(name: str, periodic: bool) -> None:
    grid = hc.Grid((4, 4), periodic=periodic)
    v = grid.field("v", boundary=None if periodic else hc.Value(0.0))
    function = OF_A_GRID[name](grid, v)
    for location in ("cell", "face-x", "node"):
        if location != "cell" and name == "another field":
            continue  # this function is located in cells
        u = grid.field(f"u_{location.replace('-', '_')}", location=location)
        traced = memory(grid).traced(u, function)
        assert isinstance(traced, hc.Expr)
        expected = function(*u.coordinates)
        assert (without_location(traced), place_of(traced)) == (
            without_location(expected),
            place_of(expected),
        )
        if not periodic and "derivative" not in name and "field" not in name:
            assert Ghost(u, 0, -1, 0).at_wall(function).digest == Ghost(u, 0, -1, 0).at_wall(expected).digest


def test_a_function_of_a_grid_may_be_a_right_hand_side() -> None:
    grid = hc.Grid(7, walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    problem = hc.LinearProblem(lambda u: -hc.laplacian(u), u, lambda x: grid.x + 0.0 * x)
    assert problem.unknown is u


def test_arguments_of_functions_without_signature_are_counted() -> None:
    def counted(function: Any, *counts: int) -> int:
        return argument_count(function, "f", counts, "so many")

    assert [counted(np.sin, 1), counted(np.hypot, 2), counted(math.sin, 1), counted(max, 3)] == [1, 2, 1, 3]
    assert counted(np.frompyfunc(lambda a, b: a, 2, 1), 1, 2) == 2
    for function, count in ((np.sin, 2), (np.hypot, 1), (math.sin, 2)):
        with pytest.raises(InputError, match=r"^f takes \d arguments? without a default; expected so many"):
            counted(function, count)
    with pytest.raises(InputError, match=r"^f is 3; expected a function$"):
        counted(3, 1)
    grid = hc.Grid((4, 4))
    u = grid.field("u")
    assert memory(grid).traced(u, np.maximum) is hc.maximum(*u.coordinates)


def heat(T: Any, kappa: Any, *, scale: float = 2.0) -> Any:
    assert scale == 2.0
    return {T: kappa * hc.laplacian(T)}


@functools.wraps(heat)
def decorated(*arguments: Any, **named: Any) -> Any:
    return heat(*arguments, **named)


def test_equations_may_be_any_callable() -> None:
    def text(function: Any, **more: Any) -> str:
        program = program_of(line(), function, **{"scheme": hc.RK3(), "dt": 0.1, **more})
        return equations.equations(program)

    options = {"parameters": {"kappa": 0.1}}
    expected = text(lambda T, kappa: {T: kappa * hc.laplacian(T)}, **options)
    for function in (
        heat,
        Heat(),
        Heat().method,
        decorated,
        partial(heat, scale=2.0),
        partial(Heat().method),
    ):
        assert text(function, **options) == expected
    fixed = text(lambda T: {T: 0.1 * hc.laplacian(T)})
    for function in (
        partial(heat, kappa=0.1),
        partial(Heat(), kappa=0.1),
        partial(Heat.method, Heat(), kappa=0.1),
    ):
        assert text(function) == fixed
        assert text(function, **options) == fixed  # partial fixes this value
    # the name and the line of the function are known
    program = program_of(line(), partial(heat, kappa=0.1), scheme=hc.Euler(), dt=0.1)
    assert program.name == "heat"
    assert program_of(line(), Heat(), scheme=hc.Euler(), dt=0.1, **options).name == "Heat"
    with pytest.raises(InputError, match=r"function 'heat' returns time derivatives and needs a scheme"):
        program_of(line(), partial(heat, kappa=0.1), dt=0.1)
    with pytest.raises(InputError, match=r"^heat: argument 'kappa' is unknown"):
        program_of(line(), partial(heat, scale=2.0), scheme=hc.Euler(), dt=0.1)


def test_programs_time_steps_and_after_step_may_be_any_callable() -> None:
    def text(function: Any, **more: Any) -> str:
        return equations.equations(program_of(line(), function, **more))

    @hc.program
    def step(T: Any, kappa: Any) -> None:
        T.set(T + kappa * hc.laplacian(T))

    parameters = {"parameters": {"kappa": 0.1}}
    expected = text(step, **parameters)
    assert text(Heat().step, **parameters) == expected
    assert text(hc.program(partial(Heat.step.function, Heat())), **parameters) == expected
    fixed = text(hc.program(lambda T: T.set(T + 0.1 * hc.laplacian(T))))
    assert text(partial(step, kappa=0.1)) == text(hc.program(partial(step, kappa=0.1))) == fixed

    def size(T: Any, part: float = 0.5) -> Any:
        assert part == 0.5
        return part * hc.min(abs(T))

    def after(T: Any, least: float = 0.25) -> None:
        T.set(hc.maximum(T, least))

    options = {"scheme": hc.Euler()}
    rates = lambda T: {T: -T}  # noqa: E731
    expected = text(
        rates, dt=lambda T: 0.5 * hc.min(abs(T)), after_step=lambda T: T.set(hc.maximum(T, 0.25)), **options
    )
    assert text(rates, dt=size, after_step=after, **options) == expected
    assert text(rates, dt=partial(size, part=0.5), after_step=hc.program(after), **options) == expected
    assert text(rates, dt=Called1(size), after_step=partial(after, least=0.25), **options) == expected


class Called1:
    """Callable object with one argument, a field."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, T: Any) -> Any:
        return self.function(T)


def test_a_default_binds_where_it_names_a_field_or_a_parameter() -> None:
    grid = line()
    T = grid.find("T")
    kappa = hc.Scalar("kappa")
    arguments = bind(lambda T, kappa=1.0, k=2.0: None, grid, {"kappa": kappa})
    assert list(arguments) == ["T", "kappa"]
    assert arguments["T"] is T
    assert arguments["kappa"] is kappa
    assert list(bind(partial(lambda T, kappa=1.0: None, kappa=3.0), grid, {"kappa": kappa})) == ["T"]
    for function, words in (
        (lambda T, /: None, "argument 'T' is positional only"),
        (lambda *T: None, r"\*T cannot be bound"),
        (max, "the arguments of max have no names"),
        (3, "3 is not a function; expected a function of fields"),
    ):
        with pytest.raises(InputError, match=words):
            bind(function, grid, {})  # type: ignore[arg-type]


def test_arguments_of_functions_are_counted_before_the_call() -> None:
    grid = hc.Grid(8, walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    for function in (lambda: 1.0, lambda u, v: u, lambda u, *, k: u):
        with pytest.raises(InputError, match=r"^the operator (takes \d arguments?|needs the keyword)"):
            hc.LinearProblem(function, u, 1.0)

    def negative(u: Any, k: Any = -1.0) -> Any:
        return k * hc.laplacian(u)

    problem = hc.LinearProblem(partial(negative, k=-1.0), u, 1.0)
    with pytest.raises(
        InputError, match=r"^on_progress takes 0 arguments without a default; expected the num"
    ):
        problem.solve(on_progress=lambda: None)
    fields = problem.fields
    fields[u] = lambda x, k=0.0: x + k
    for values in (lambda x, k=0.0: x + k, partial(lambda k, x: x + k, 0.0), Called(lambda x: x)):
        assert difference(fields, 0.0, lambda t, values=values: {u: values}) == 0.0
    with pytest.raises(InputError, match=r"^exact\(0\) of field 'u' takes 2 arguments"):
        difference(fields, 0.0, lambda t: {u: lambda x, y: x})


def test_a_simulation_runs_equations_and_callbacks_of_any_kind(caplog: pytest.LogCaptureFixture) -> None:
    grid = hc.Grid(8, periodic=True)
    T = grid.field("T")
    callback_steps: list[int] = []

    def note(callback_steps: list[int], sim: Any, extra: int = 0) -> None:
        assert extra == 0
        callback_steps.append(sim.steps)

    sim = hc.Simulation(grid, partial(heat, kappa=0.1), scheme=hc.Euler(), dt=1e-3, threads=1)
    assert sim.title == "heat"
    sim[T] = lambda x, a=2.0: np.sin(a * np.pi * x)
    sim.run(steps=2, every=hc.steps(1), callback=partial(note, callback_steps))
    assert callback_steps == [1, 2]
    for function in (
        lambda sim=None: callback_steps.append(sim.steps),
        lambda sim=None, *, k=0: callback_steps.append(k),
    ):
        sim.run(steps=1, every=hc.steps(1), callback=function, on_progress=lambda steps=0: None)
    assert callback_steps == [1, 2, 3, 0]
    for name, function in (("callback", lambda: None), ("on_progress", lambda a, b: None)):
        with pytest.raises(InputError, match=f"^{name} takes . arguments? without a default; expected the "):
            sim.run(steps=1, **{name: function})
    assert sim.steps == 4
    # a function that cannot be traced runs by rows, with the same number of arguments
    sim[T] = lambda x, k=2.0: k * np.zeros(x.shape)
    assert "its function cannot be traced" in caplog.text
    assert not sim[T].any()
    for function, words in WRONG_FUNCTIONS.values():
        with pytest.raises(InputError, match=words):
            sim[T] = function
    for value, words in WRONG_ARRAYS.values():
        with pytest.raises(InputError, match=words):
            sim[T] = value
    assert not sim[T].any()
    sim[T] = np.ma.masked_greater(np.arange(8.0), 99.0)  # no value is masked
    assert sim[T].tolist() == list(range(8))
    sim.run(steps=1)
