"""Arguments that users give: axes, values for each axis, functions, numbers and arrays.

Each kind has one rule, and every function that takes the kind is tested with it.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import os
import random
import re
import subprocess
import sys
import types
from collections.abc import Callable, Hashable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.errors import InputError
from halocline.io.section import cut
from halocline.lang import equations, trace
from halocline.lang.boundary import SIDES, Ghost
from halocline.lang.callables import arguments_taken
from halocline.lang.expression import IN_PLACE, bare, place_of
from halocline.lang.program import Assign, Program, bind
from halocline.lang.stepping import program_of
from halocline.lang.values import as_real, real_array
from halocline.plan.decompose import decompose
from halocline.plan.patches import _explicit
from halocline.plan.traffic import Traffic
from halocline.problems.problem import difference
from halocline.problems.record import asked
from halocline.run.domain.domain import Domain
from halocline.run.domain.execution import Execution
from halocline.run.fields.fields import Fields
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.mpi import communicator_of
from halocline.solvers.linear import check_limits
from loops import some

AXES = "xyz"


def memory(grid: hc.Grid, **parameters: Any) -> Fields:
    """Return the fields of a grid without a program."""
    return Fields(FieldStore(Domain(grid, communicator_of(None), Execution(threads=1))), parameters)


# -- axes ----------------------------------------------------------------------------------------------------

CUBE = hc.Grid((4, 5, 6), extent=(1.0, 2.0, 3.0))
U = CUBE.field("u")

# functions of a grid and an axis, whose results can be compared
AXIS_FUNCTIONS: dict[str, Callable[[hc.Grid, Any], Any]] = {
    "h": lambda grid, axis: grid.h(axis),
    "cells": lambda grid, axis: grid.cells(axis),
    "even_spacing": lambda grid, axis: grid.even_spacing(axis),
    "cell_number": lambda grid, axis: grid.cell_number(axes=[axis]),
    "coordinates": lambda grid, axis: grid.coordinates({axis: True}),
    "points": lambda grid, axis: grid.points({axis: True}),
    "extent": lambda grid, axis: hc.Grid(grid.shape, {axis: 3.0}).extent,
    "periodic": lambda grid, axis: hc.Grid(grid.shape, periodic={axis: True}).periodic,
    "stretch": lambda grid, axis: [m is None for m in hc.Grid(grid.shape, stretch={axis: lambda x: x}).maps],
}
OPERATORS: dict[str, Callable[[Any], Any]] = {
    "shift": lambda axis: hc.shift(U, axis),
    "shift of a vector": lambda axis: hc.shift((U, 2.0 * U), axis),
    "derivative": lambda axis: hc.derivative(U, axis),
    "derivative, second axis": lambda axis: hc.derivative(U, 1, axis),
    "second": lambda axis: hc.second(U, axis),
    "mixed": lambda axis: hc.mixed(U, axis, 2),
    "difference": lambda axis: hc.difference(U, axis, 4),
}
WRONG_AXES = st.one_of(
    st.integers().filter(lambda n: not 0 <= n < 3),
    st.booleans(),
    st.floats(),
    st.none(),
    st.text(max_size=3).filter(lambda text: text not in tuple(AXES)),
    st.sampled_from([np.bool_(True), np.float64(1.0), np.int64(-1), np.array([0]), (0,), b"x", 1j, {}]),
)


def spellings(number: int) -> Iterator[Any]:
    yield from (number, AXES[number], np.str_(AXES[number]))
    yield from (kind(number) for kind in (np.int8, np.uint8, np.int64))


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("name", AXIS_FUNCTIONS)
def test_axes_of_a_grid_have_a_number_and_a_name(name: str, ndim: int) -> None:
    grid, function = hc.Grid((4, 5, 6)[:ndim]), AXIS_FUNCTIONS[name]
    for number in range(ndim):
        results = [function(grid, axis) for axis in spellings(number)]
        same = operator.is_ if isinstance(results[0], hc.Expr) else operator.eq
        if isinstance(results[0], tuple) and isinstance(results[0][0], hc.Expr):
            same = lambda one, two: all(map(operator.is_, one, two))  # noqa: E731
        assert all(same(result, results[0]) for result in results[1:]), number
    missing = (*range(ndim, 4), *AXES[ndim:])
    for axis in (*missing, -1, True, 1.0, None, "w"):
        with pytest.raises(InputError, match=r"expected (0|some of x)") as caught:
            function(grid, axis)
        assert all(f"'{a}'" in str(caught.value) or f" {a}" in str(caught.value) for a in AXES[:ndim])


@pytest.mark.parametrize("name", OPERATORS)
def test_axes_of_operators_have_a_number_and_a_name(name: str) -> None:
    function = OPERATORS[name]
    for number in range(2 if name == "mixed" else 3):
        first, *others = (function(axis) for axis in spellings(number))
        pairs = zip(first, *others, strict=True) if isinstance(first, tuple) else [(first, *others)]
        assert all(each.digest == same[0].digest for same in pairs for each in same)


@settings(max_examples=80)
@given(st.sampled_from([*AXIS_FUNCTIONS, *OPERATORS]), WRONG_AXES)
def test_all_other_axes_are_rejected_with_a_list(name: str, axis: Any) -> None:
    if name in ("coordinates", "points", "extent", "periodic", "stretch"):
        assume(isinstance(axis, Hashable))  # the axis is the key of a mapping
    assume(axis is not None or name != "derivative, second axis")  # the second axis is optional
    with pytest.raises(InputError, match=r"expected (0, 1, 2 or 'x', 'y', 'z'|some of x, y, z)"):
        OPERATORS[name](axis) if name in OPERATORS else AXIS_FUNCTIONS[name](CUBE, axis)


def test_a_picture_rejects_unknown_axes() -> None:
    fields = memory(CUBE)
    for axis in (3, -1, True, 0.0, "w", "xy", ""):
        with pytest.raises(InputError, match=r"axis .* is unknown; expected 0, 1, 2 or 'x', 'y', 'z'"):
            hc.picture(fields, U, "never.png", axis=axis)
        with pytest.raises(InputError, match=r"axis .* is unknown; expected 0, 1, 2 or 'x', 'y', 'z'"):
            cut(fields, U, {axis: 0.5})


# -- values for each axis ------------------------------------------------------------------------------------


@st.composite
def flags(draw: st.DrawFn) -> tuple[tuple[bool, ...], Any]:
    """Draw flags of one to three axes, and one form to write them."""
    values = tuple(draw(st.lists(st.booleans(), min_size=1, max_size=3)))
    names = draw(st.permutations([AXES[axis] for axis, flag in enumerate(values) if flag]))
    ways: list[Any] = [values, list(values), np.array(values), [np.bool_(v) for v in values]]
    ways += [{AXES[axis]: flag for axis, flag in enumerate(values)}, dict.fromkeys(names, True)]
    ways += [{axis: np.bool_(flag) for axis, flag in enumerate(values)}]
    if len(set(values)) == 1:
        ways += [values[0], np.bool_(values[0])]
    if names:
        ways += ["".join(names), tuple(names), list(names), np.array(names)]
    return values, draw(st.sampled_from(ways))


@settings(max_examples=60)
@given(flags())
def test_flags_of_axes_may_be_written_in_all_ways(case: tuple[tuple[bool, ...], Any]) -> None:
    values, given_as = case
    shape = (4, 5, 6)[: len(values)]
    grid = hc.Grid(shape, periodic=given_as)
    assert grid.periodic == values
    assert {type(flag) for flag in grid.periodic} == {bool}
    assert decompose(shape, 1, periodic=given_as).periodic == values
    walled = hc.Grid(shape)
    assert walled.points(given_as) == tuple(map(sum, zip(shape, values, strict=True)))
    assert all(map(operator.is_, walled.coordinates(given_as), walled.coordinates(values)))


NO_FLAGS = st.one_of(
    st.integers(),
    st.floats(),
    st.none(),
    st.text(max_size=4).filter(lambda text: not text or set(text) - {*"xy"} or len(set(text)) < len(text)),
    st.lists(st.booleans(), max_size=4).filter(lambda flags: len(flags) != 2),
    st.lists(st.sampled_from([0, 1, None, "x", True, 0.0]), min_size=2, max_size=2).filter(
        lambda entries: not all(type(entry) is bool for entry in entries)
    ),
    st.dictionaries(st.sampled_from(["x", "q", 2, True]), st.sampled_from([1, None, "x"]), min_size=1),
    st.sampled_from(["none", "z", "X", np.array([1, 0]), np.array([[True, False]]), {"z": True}, b"x", len]),
)


@settings(max_examples=60)
@given(NO_FLAGS)
def test_all_other_flags_of_axes_are_rejected(value: Any) -> None:
    takers: list[Callable[[Any], Any]] = [
        lambda value: hc.Grid((4, 4), periodic=value),
        lambda value: decompose((4, 4), 1, periodic=value),
    ]
    for taker in takers:
        with pytest.raises(InputError, match=r"^periodic ") as caught:
            taker(value)
        words = str(caught.value)
        assert any(part in words for part in ("True or False", "0, 1 or 'x', 'y'", "entries", "twice")), words


@pytest.mark.parametrize("value", ["none", 2, 0.5, None, "", "xz", "xx", (1, 0), {"x": "yes"}, {"z": True}])
def test_periodic_rejects_other_true_values(value: Any) -> None:
    with pytest.raises(InputError, match=r"^periodic .*(True or False|names an axis twice|'x', 'y')"):
        hc.Grid((4, 4), periodic=value)


def written(values: tuple[Any, ...], default: Any) -> Iterator[Any]:
    """Yield all forms of one value for each axis."""
    yield from (values, list(values), np.array(values))
    yield {AXES[axis]: value for axis, value in enumerate(values)}
    yield {axis: value for axis, value in enumerate(values) if value != default}
    if len(set(values)) == 1:
        yield values[0]


# arguments with a value for each of two axes: function of the value, accepted values, default
PER_AXIS: dict[str, tuple[Callable[[Any], tuple[Any, ...]], tuple[Any, ...], Any]] = {
    "extent": (lambda v: hc.Grid((4, 4), v).extent, (0.5, 1.0, 2, np.float32(3.0)), 1.0),
    "origin": (lambda v: hc.Grid((4, 4), origin=v).origin, (-0.5, 0.0, 2, np.int64(3)), 0.0),
    "walls": (lambda v: hc.Grid((4, 4), walls=v).walls, ("face", "node"), "face"),
    "decomposition": (lambda v: decompose((4, 4), math.prod(parts(v)), strategy=v).parts, (1, 2, 4), 1),
    "radius": (lambda v: layers(v), (0, 1, np.int64(2)), None),
    "patch": (lambda v: _explicit(v, 2), (1, 2, np.int32(4)), None),
}


def parts(value: Any) -> list[int]:
    return [int(n) for n in (value.values() if isinstance(value, Mapping) else value)]


def layers(value: Any) -> tuple[Any, ...]:
    return tuple(lower for lower, upper in Traffic.of_radius(value, 2).layers if lower == upper)


@pytest.mark.parametrize("name", PER_AXIS)
def test_values_for_each_axis_may_be_written_in_all_ways(name: str) -> None:
    taker, values, default = PER_AXIS[name]
    tried = 0
    for pair in itertools.product(values, repeat=2):
        for value in written(pair, default):
            if name == "decomposition" and not isinstance(value, (Mapping, tuple, list, np.ndarray)):
                continue  # a single number is a number of ranks
            if default is None and isinstance(value, Mapping) and len(value) < 2:
                continue
            if isinstance(value, Mapping) and not value:
                continue
            assert taker(value) == pair, value
            tried += 1
    assert tried > 3 * len(values) ** 2


@pytest.mark.parametrize("name", ["extent", "origin", "walls", "radius", "patch"])
@settings(max_examples=25)
@given(
    value=st.one_of(
        st.none(),
        st.booleans(),
        st.text(max_size=3),
        st.sampled_from(
            [(1.0,), (1, 2, 3), {"z": 1}, {"x": None}, [1, None], 1j, b"1", {1.5: 1}, [[1, 2], 3j]]
        ),
        st.sampled_from(
            [np.ma.masked, np.array(1j), (True, 1), np.array(["a", "b"]), len, {"x": True, "y": 1}]
        ),
    )
)
def test_all_other_values_for_each_axis_are_rejected(name: str, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        PER_AXIS[name][0](value)
    assert name in str(caught.value)


def test_a_record_has_the_parts_along_all_axes() -> None:
    how = Execution(decomposition={"y": 2}, patch={"x": 4, "z": 8})
    assert asked(how, 3)["decomposition"] == "1x2x1"
    assert asked(how, 3)["patch"] == "4,1,8"
    assert asked(Execution(decomposition=(2, 1), patch=8), 2)["decomposition"] == "2x1"


def test_a_shape_may_be_an_array() -> None:
    assert hc.Grid(np.array([3, 4])).shape == (3, 4)
    assert hc.Grid(np.int64(3)).shape == (3,)
    for shape in (np.array([3.0, 4.0]), "34", {"x": 3}, None, np.array([[3, 4]])):
        with pytest.raises(InputError, match=r"^shape "):
            hc.Grid(shape)
    with pytest.raises(InputError, match=r"^active has masked values; expected True or False"):
        hc.Grid(8, active=np.ma.array([True, False], mask=[True, False]))


# -- boundary conditions and periodic axes -------------------------------------------------------------------


def test_a_mapping_of_walls_names_no_periodic_axis() -> None:
    periodic = (True, False)
    for walls in ("node", ("node", "node"), {"y": "node"}):
        assert not hc.Grid((4, 4), periodic=periodic, walls=walls).periodic[1]
    with pytest.raises(InputError, match="axis x is periodic, so it has no walls; leave it out"):
        hc.Grid((4, 4), periodic=periodic, walls={"x": "node"})


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_condition_on_a_periodic_axis_is_an_error(ndim: int) -> None:
    tried = 0
    for periodic in itertools.product((False, True), repeat=ndim):
        grid, names = hc.Grid((4,) * ndim, periodic=periodic), iter(f"u{n}" for n in range(1000))
        walls = {side for side in SIDES[: 2 * ndim] if not periodic[AXES.index(side[0])]}
        for kind in (hc.Value(0.0), hc.Derivative(), hc.Extrapolate(2), hc.BoundaryKernel(lambda u: u[0])):
            for side in SIDES[: 2 * ndim]:
                if side in walls:
                    assert set(grid.field(next(names), boundary={side: kind}).boundary) == {side}
                else:
                    with pytest.raises(InputError, match=f"side '{re.escape(side)}' lies on a periodic axis"):
                        grid.field(next(names), boundary={side: kind})
                tried += 1
            for general in (kind, {"other": kind}):
                if walls:
                    assert set(grid.field(next(names), boundary=general).boundary) == walls
                    continue
                with pytest.raises(InputError, match=r"all axes are periodic, and their sides take no"):
                    grid.field(next(names), boundary=general)
                with pytest.raises(InputError, match=r"all axes are periodic, and their sides take no"):
                    grid.vector(next(names), boundary=general)
        for general in (hc.Periodic(), {"other": hc.Periodic()}):
            if walls:
                with pytest.raises(InputError, match=r"is periodic but its axis is not"):
                    grid.field(next(names), boundary=general)
            else:
                assert grid.field(next(names), boundary=general).boundary == {}
    assert tried == 4 * 2 * ndim * 2**ndim


def test_a_stage_in_an_array_needs_no_walls() -> None:
    grid = hc.Grid(4, periodic=True)
    u = grid.field("u")

    @hc.program
    def step(u: Any) -> None:
        u.set(hc.stage(2.0 * u, storage="array")[1])

    assert len(step.trace(u).statements) == 2


# -- functions -----------------------------------------------------------------------------------------------


class Called:
    """Callable object."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


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


LINE, PLANE = hc.Grid((4,)), hc.Grid((4, 4))
ENDS = [Ghost(grid.field("u"), 0, -1, 1) for grid in (LINE, PLANE)]  # ghosts beyond x-


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
    tried = 0
    for count, function in wrong.items():
        if least <= count <= most:
            continue
        words = rf"takes {count} arguments? without a default; expected "
        with pytest.raises(InputError, match=words):
            give(function)
        tried += 1
    assert tried >= 2
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
            continue  # this function lies in cells
        u = grid.field(f"u_{location.replace('-', '_')}", location=location)
        found = memory(grid).traced(u, function)
        assert isinstance(found, hc.Expr)
        wanted = function(*u.coordinates)
        assert (bare(found), place_of(found)) == (bare(wanted), place_of(wanted))
        if not periodic and "derivative" not in name and "field" not in name:
            assert Ghost(u, 0, -1, 0).at_wall(function).digest == Ghost(u, 0, -1, 0).at_wall(wanted).digest


def test_a_function_of_a_grid_may_be_a_right_hand_side() -> None:
    grid = hc.Grid(7, walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    problem = hc.LinearProblem(lambda u: -hc.laplacian(u), u, lambda x: grid.x + 0.0 * x)
    assert problem.unknown is u


def test_arguments_of_functions_without_signature_are_counted() -> None:
    def counted(function: Any, *counts: int) -> int:
        return arguments_taken(function, "f", counts, "so many")

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


class Heat:
    """Equations in a class."""

    def __call__(self, T: Any, kappa: Any) -> Any:
        return {T: kappa * hc.laplacian(T)}

    def method(self, T: Any, kappa: Any, other: Any = None) -> Any:
        assert other is None
        return self(T, kappa)

    @hc.program
    def step(self, T: Any, kappa: Any) -> None:
        T.set(T + kappa * hc.laplacian(T))


def line() -> hc.Grid:
    grid = hc.Grid(8, periodic=True)
    grid.field("T")
    return grid


@functools.wraps(heat)
def decorated(*arguments: Any, **named: Any) -> Any:
    return heat(*arguments, **named)


def test_equations_may_be_any_callable() -> None:
    def text(function: Any, **more: Any) -> str:
        program = program_of(line(), function, **{"scheme": hc.RK3(), "dt": 0.1, **more})
        return equations.equations(program)

    given = {"parameters": {"kappa": 0.1}}
    expected = text(lambda T, kappa: {T: kappa * hc.laplacian(T)}, **given)
    for function in (
        heat,
        Heat(),
        Heat().method,
        decorated,
        partial(heat, scale=2.0),
        partial(Heat().method),
    ):
        assert text(function, **given) == expected
    fixed = text(lambda T: {T: 0.1 * hc.laplacian(T)})
    for function in (
        partial(heat, kappa=0.1),
        partial(Heat(), kappa=0.1),
        partial(Heat.method, Heat(), kappa=0.1),
    ):
        assert text(function) == fixed
        assert text(function, **given) == fixed  # partial fixes this value
    # the name and the line of the function are known
    program = program_of(line(), partial(heat, kappa=0.1), scheme=hc.Euler(), dt=0.1)
    assert program.name == "heat"
    assert program_of(line(), Heat(), scheme=hc.Euler(), dt=0.1, **given).name == "Heat"
    with pytest.raises(InputError, match=r"function 'heat' gives time derivatives, so a scheme is needed"):
        program_of(line(), partial(heat, kappa=0.1), dt=0.1)
    with pytest.raises(InputError, match=r"^heat: argument 'kappa' is unknown"):
        program_of(line(), partial(heat, scale=2.0), scheme=hc.Euler(), dt=0.1)


def test_programs_time_steps_and_after_step_may_be_any_callable() -> None:
    def text(function: Any, **more: Any) -> str:
        return equations.equations(program_of(line(), function, **more))

    @hc.program
    def step(T: Any, kappa: Any) -> None:
        T.set(T + kappa * hc.laplacian(T))

    given = {"parameters": {"kappa": 0.1}}
    expected = text(step, **given)
    assert text(Heat().step, **given) == expected
    assert text(hc.program(partial(Heat.step.function, Heat())), **given) == expected
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
    T = grid.named("T")
    kappa = hc.Scalar("kappa")
    found = bind(lambda T, kappa=1.0, k=2.0: None, grid, {"kappa": kappa})
    assert list(found) == ["T", "kappa"]
    assert found["T"] is T
    assert found["kappa"] is kappa
    assert list(bind(partial(lambda T, kappa=1.0: None, kappa=3.0), grid, {"kappa": kappa})) == ["T"]
    for function, words in (
        (lambda T, /: None, "argument 'T' is positional only"),
        (lambda *T: None, r"\*T cannot be bound"),
        (max, "the arguments of max have no names that are known"),
        (3, "3 is no function; expected a function of fields"),
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
    fields, exact = problem.fields, {}
    fields[u] = lambda x, k=0.0: x + k
    for values in (lambda x, k=0.0: x + k, partial(lambda k, x: x + k, 0.0), Called(lambda x: x)):
        exact["exact"] = lambda t, values=values: {u: values}
        assert difference(fields, 0.0, exact) == 0.0
    exact["exact"] = lambda t: {u: lambda x, y: x}
    with pytest.raises(InputError, match=r"^exact\(0\) of field 'u' takes 2 arguments"):
        difference(fields, 0.0, exact)


def test_a_simulation_runs_equations_and_callbacks_of_any_kind(caplog: pytest.LogCaptureFixture) -> None:
    grid = hc.Grid(8, periodic=True)
    T = grid.field("T")
    seen: list[int] = []

    def note(seen: list[int], sim: Any, extra: int = 0) -> None:
        assert extra == 0
        seen.append(sim.steps)

    sim = hc.Simulation(grid, partial(heat, kappa=0.1), scheme=hc.Euler(), dt=1e-3, threads=1)
    assert sim.title == "heat"
    sim[T] = lambda x, a=2.0: np.sin(a * np.pi * x)
    sim.run(steps=2, every=hc.steps(1), callback=partial(note, seen))
    assert seen == [1, 2]
    for function in (lambda sim=None: seen.append(sim.steps), lambda sim=None, *, k=0: seen.append(k)):
        sim.run(steps=1, every=hc.steps(1), callback=function, on_progress=lambda steps=0: None)
    assert seen == [1, 2, 3, 0]
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
    sim[T] = np.ma.masked_greater(np.arange(8.0), 99.0)  # nothing is masked
    assert sim[T].tolist() == list(range(8))
    sim.run(steps=1)


# -- assignments that assign nothing -------------------------------------------------------------------------

APPLY = {sign: getattr(operator, name) for name, sign in IN_PLACE.items()}


def test_operators_in_place_are_rejected_where_they_would_assign() -> None:
    grid = hc.Grid((4, 4), periodic=True)
    u, v = grid.field("u"), grid.vector("v")
    assert len(APPLY) == 13
    for name, sign in IN_PLACE.items():
        apply = getattr(operator, name)
        targets = {"u": u, "v": v, "v_x": v[0], "w": v.like("w")}
        targets[r"hc\.Vector\(\(u, v_y,\)\)"] = hc.Vector((u, v[1]))
        for target, thing in targets.items():
            words = rf"^{target} {re.escape(sign)}= ... assigns nothing: write {target}\.set\({target} "
            with pytest.raises(InputError, match=words):
                apply(thing, 2.0)
    for thing in (u, hc.Scalar("u")):
        with pytest.raises(InputError, match=r"^u\[...\] = ... assigns nothing: write u.set"):
            thing[0, 0] = 1.0
        with pytest.raises(InputError, match=r"^u\[...\] = ... assigns nothing: write u.set"):
            u[1, 0] += 1.0
    with pytest.raises(InputError, match=r"^v\[0\] = ... assigns nothing: write v\[0\].set"):
        v[0] = u
    # a name that the user binds to a value may be reused
    s = hc.derivative(u, "x")
    s += hc.derivative(u, "y")
    assert s is hc.derivative(u, "x") + hc.derivative(u, "y")
    s *= 2.0
    s -= u
    s /= 3.0
    s **= 2
    t = hc.parameter("k")
    t += 1.0
    assert t is hc.parameter("k") + 1.0
    w = 1.0 * v
    w += v
    assert all(map(operator.is_, w, 1.0 * v + v))
    k = hc.Scalar("k")
    k *= 2.0  # outside of a program
    assert k is 2.0 * hc.Scalar("k")
    with trace.tracing(Program("p")):
        q = hc.stage(2.0 * u)
        q += 1.0
        assert isinstance(q, hc.Expr)


def test_a_program_that_assigns_nothing_names_the_likely_cause() -> None:
    grid = hc.Grid(4, periodic=True)
    u, _ = grid.field("u"), grid.vector("v")

    def adds(u: Any) -> None:
        u = u + hc.laplacian(u)

    def in_place(u: Any) -> None:
        u += hc.laplacian(u)

    def returns(u: Any) -> Any:
        return u + 1.0

    def vector(v: Any) -> None:
        v = v * 2.0

    def number(u: Any, k: Any) -> None:
        k = k * 2.0

    def stops(u: Any) -> None:
        u = u + 1.0
        hc.stop(hc.max(u) > 2.0, "full")

    line = adds.__code__.co_firstlineno + 1
    for function, words in (
        (
            adds,
            rf"'adds' assigns no field or scalar: u = ... in line {line} gives a new meaning to the Python",
        ),
        (in_place, r"^u \+= ... assigns nothing: write u.set\(u \+ ...\)"),
        (returns, r"'returns' assigns no field or scalar; write u.set\(...\)$"),
        (number, r"'number' assigns no field or scalar; write u.set\(...\)$"),
        (vector, r"v = ... in line \d+ gives a new meaning to the Python name; write v.set"),
        (stops, r"'stops' assigns no field"),
        (lambda: None, r"'<lambda>' assigns no field or scalar"),
    ):
        with pytest.raises(InputError, match=words):
            program_of(grid, hc.program(function), parameters={"k": 1.0})
    for setting in (lambda u: [u.set(2.0 * u), {u: u}][1], lambda u, v: (u.set(v[0]), v)):
        with pytest.raises(InputError, match=r"'<lambda>' returns a value of type \w+, which sets nothing"):
            program_of(grid, hc.program(setting))
    program_of(grid, hc.program(lambda u, v: (u.set(v[0]), v[0].set(u))))
    for function in (lambda u: u * 2.0, lambda u: None):
        with pytest.raises(InputError, match=r"'<lambda>' assigns no field or scalar"):
            program_of(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.1, after_step=function)
    program_of(
        grid,
        lambda u: {u: -u},
        scheme=hc.Euler(),
        dt=0.1,
        after_step=lambda u: hc.stop(hc.max(u) > 1.0, "full"),
    )
    assert u.name == "u"


def test_a_name_that_a_program_gives_a_new_meaning_is_reported_where_nothing_assigns_it() -> None:
    grid = hc.Grid(4, periodic=True)
    grid.field("u"), grid.field("v")

    def half(u: Any, v: Any) -> None:
        u = u + 1.0
        v.set(u)

    def whole(u: Any, v: Any) -> None:
        u.set(u + 1.0)
        u = 2.0 * u
        v.set(u)

    (notice,) = program_of(grid, hc.program(half)).notices
    assert re.search(r"^program half: u = ... in line \d+ gives a new meaning .* write u.set", notice)
    assert program_of(grid, hc.program(whole)).notices == []

    def clock(u: Any, t: Any) -> None:
        t = t + 0.1
        u.set(u * t)

    (notice,) = program_of(grid, hc.program(clock)).notices
    assert re.search(r"^program clock: t = ... in line \d+ gives a new meaning .* write t.set", notice)


def test_names_of_numbers_may_be_given_other_values() -> None:
    grid = hc.Grid(4, periodic=True)
    grid.field("u")

    def program(u: Any, kappa: Any) -> None:
        kappa = kappa / 2.0
        u.set(u * kappa)

    def in_place(u: Any, kappa: Any) -> None:
        kappa /= 2.0
        u.set(u * kappa)

    expected, found = (
        program_of(grid, hc.program(f), parameters={"kappa": 1.0}) for f in (program, in_place)
    )
    assert expected.notices == found.notices == []
    assert [s.values for s in found.flat() if isinstance(s, Assign)] == [
        s.values for s in expected.flat() if isinstance(s, Assign)
    ]

    def rates(u: Any, kappa: Any, t: Any) -> Any:
        kappa *= 2.0
        t += 1.0
        return {u: kappa * t * u}

    plain = lambda u, kappa, t: {u: (2.0 * kappa) * (t + 1.0) * u}  # noqa: E731
    made, wanted = (
        equations.equations(program_of(grid, f, parameters={"kappa": 1.0}, scheme=hc.RK3(), dt=0.5))
        for f in (rates, plain)
    )
    assert made == wanted

    def lost(u: Any, t: Any) -> None:
        t += 0.1
        u.set(u * t)

    def own(u: Any) -> None:
        s = hc.scalar("s")
        s.set(0.0)
        s += 1.0
        u.set(u * s)

    for function, name in ((lost, "t"), (own, "s")):
        with pytest.raises(InputError, match=rf"^{name} \+= ... assigns nothing: write {name}.set"):
            program_of(grid, hc.program(function))


# -- numbers and arrays --------------------------------------------------------------------------------------

NO_NUMBERS: list[Any] = [
    None, "1", "x", b"1", 1j, np.complex128(1.0), np.array(1j), np.str_("1"), np.ma.masked, [1.0], np.ones(1),
    np.datetime64("2020-01-01"), 10**400, object(), len, {},
]  # fmt: skip
NUMBERS: list[Any] = [
    0, -1, 2.5, True, np.float32(0.5), np.int8(3), np.uint64(7), np.bool_(True), np.array(2.0),
    Fraction(1, 4), np.ma.array(1.5), np.longdouble(0.25), math.pi,
]  # fmt: skip


def test_real_numbers_of_all_types_are_accepted_and_others_rejected() -> None:
    for value in NUMBERS:
        assert as_real(value) == float(value)
    grid = hc.Grid(4)
    u = grid.field("u")
    for value in NO_NUMBERS:
        assert as_real(value) is None, value
        takers: dict[str, Callable[[Any], Any]] = {
            "parameter": lambda value: memory(grid, k=value),
            "boundary value": lambda value: Ghost(u, 0, -1, 0).at_wall(value),
            "dt": lambda value: program_of(
                line(), Heat(), scheme=hc.Euler(), dt=value, parameters={"kappa": 1}
            ),
            "extent": lambda value: hc.Grid(4, value),
            "origin": lambda value: hc.Grid(4, origin=value),
            "lookup": lambda value: hc.lookup([value], u),
            "right-hand side": lambda value: trace.as_expr(value, "right-hand side"),
        }
        for name, taker in takers.items():
            if name in ("extent", "origin") and not isinstance(value, str) and np.shape(value) == (1,):
                continue  # a value for each axis
            if (name, callable(value)) in (("dt", True), ("boundary value", True)) or (
                name == "dt" and value is None
            ):
                continue  # functions, and a missing step
            if name in ("extent", "origin") and value == {}:
                continue  # None is the default for all axes
            with pytest.raises(InputError, match=name):
                taker(value)
    for value in (np.complex128(1j), np.array(1j), np.str_("1")):
        for combined in (
            lambda value: u * value,
            lambda value: value * u,
            lambda value: np.maximum(u, value),
        ):
            with pytest.raises((InputError, TypeError)):
                combined(value)


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    assert hc.shift(U, np.int64(0), np.int64(1)) is hc.shift(U, 0, 1)
    assert hc.difference(U, 0, np.int64(2)).digest == hc.difference(U, 0, 2).digest
    assert check_limits(np.float32(0.5), None) == 0.5
    for wrong in (lambda: U[True, 0, 0], lambda: hc.value(U, at=hc.sum(U)), lambda: hc.shift(U, 0, True)):
        with pytest.raises(InputError):
            wrong()


generator = np.random.default_rng(7)
own = random.Random(7)


def noise() -> float:
    return generator.normal()


class Drawing:
    """Model that owns random number generators."""

    shared = np.random.default_rng(8)
    __slots__ = ("__dict__", "slot")

    def __init__(self) -> None:
        self.rng = self.slot = np.random.default_rng(9)
        self.table = {"r": [self.rng]}

    @property
    def number(self) -> float:
        return self.rng.random()

    def attribute(self, x: Any) -> Any:
        return self.rng.normal() * x

    def in_slot(self, x: Any) -> Any:
        return self.slot.normal() * x

    def of_class(self, x: Any) -> Any:
        return type(self).shared.normal() * x

    def by_property(self, x: Any) -> Any:
        return self.number * x

    def by_method(self, x: Any) -> Any:
        return self.attribute(x)

    def in_container(self, x: Any) -> Any:
        return self.table["r"][0].normal() * x

    def inside(self, x: Any) -> Any:
        draw = lambda: generator.random()  # noqa: E731
        return draw() * x


drawing = Drawing()
held = {"r": np.random.default_rng(10)}
module = types.ModuleType("own_generators")
vars(module)["rng"] = np.random.default_rng(11)
HOLDERS: dict[str, Callable[[Any], Any]] = {
    "attribute": drawing.attribute,
    "slot": drawing.in_slot,
    "class": drawing.of_class,
    "property": drawing.by_property,
    "method": drawing.by_method,
    "container of an object": drawing.in_container,
    "function inside": drawing.inside,
    "object": lambda x: drawing.rng.random() * x,
    "class by name": lambda x: Drawing.shared.random() * x,
    "dictionary": lambda x: held["r"].random() * x,
    "module": lambda x: module.rng.random() * x,
    "compiled method": (lambda draw: lambda x: draw() * x)(random.Random(3).random),
    "cached": functools.lru_cache(lambda x: drawing.rng.random() * x),
}


DRAWS = r"draws random numbers while it is traced, which would stay constant; use hc\.random"
OTHERS = r"gives other values when it is called again; .* For random numbers use hc\.random"

WRONG_ARRAYS: dict[str, tuple[Any, str]] = {
    "masked": (
        np.ma.masked_less(np.arange(8.0), 3.0),
        r"is given a masked array with 3 masked values; .*filled\(",
    ),
    "one masked": ([*range(7), np.ma.masked], r"is given a masked array with 1 masked values"),
    "complex": (np.exp(1j * np.arange(8)), r"array of dtype complex128; expected real numbers: take .real"),
    "one complex": (2j, r"array of dtype complex128; expected real numbers"),
    "text": (np.full(8, "1.0"), r"is given an array of dtype <U3; expected real numbers"),
    "objects": (np.array([None] * 8), r"is given an array of dtype object; expected real numbers"),
    "None": (None, r"is given None; expected real numbers"),
    "times": (np.arange("2020-01-01", "2020-01-09", dtype="datetime64[D]"), r"array of dtype datetime64"),
    "ragged": ([[1.0], [1.0, 2.0]], r"is given no array \(.*\); expected real numbers"),
}
WRONG_FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "NumPy draws": (lambda x: np.random.rand(), DRAWS),  # noqa: NPY002
    "NumPy draws many": (lambda x: np.random.rand(*x.shape), DRAWS),  # noqa: NPY002
    "NumPy draws as many": (lambda x: 0.1 * x + np.random.normal(size=np.shape(x)), DRAWS),  # noqa: NPY002
    "Python draws": (lambda x: random.random() * x, DRAWS),
    "a generator": (lambda x: x + generator.random(), DRAWS),
    "a generator of Python": (lambda x: x + own.gauss(0.0, 1.0), DRAWS),
    "a captured generator": ((lambda rng: lambda x: x * rng.normal())(np.random.default_rng(1)), DRAWS),
    "a generator by default": (lambda x, rng=np.random.default_rng(1): rng.random(), DRAWS),  # noqa: B008
    "a generator by partial": (partial(lambda rng, x: rng.random(), np.random.default_rng(1)), DRAWS),
    "a generator of an object": (Called(lambda x: generator.random(np.shape(x))), DRAWS),
    "a helper": (lambda x: x * noise(), DRAWS),
    "the system": (lambda x: x + int.from_bytes(os.urandom(6)), OTHERS),
    "a counter": (lambda x, n=itertools.count(): x * next(n), OTHERS),  # noqa: B008
    "nothing": (lambda x: None, "returns None; expected a value: does it lack a return statement"),
    "nothing by rows": (lambda x: print(np.shape(x), end=""), "returns None; expected real numbers"),
    "complex": (lambda x: np.exp(1j * x), "returns an array of dtype complex128; expected real numbers"),
    "masked": (lambda x: np.ma.masked_less(x, 0.5), "returns a masked array with 4 masked values"),
    "text": (lambda x: "warm", "returns an array of dtype <U4; expected real numbers"),
    "another shape": (lambda x: np.zeros(3), r"returns an array of shape \(3,\) for 8 points; expected one"),
}


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_arrays_that_hold_no_real_numbers_are_rejected(name: str) -> None:
    value, words = WRONG_ARRAYS[name]
    with pytest.raises(InputError, match=words):
        real_array(value, "it is given")
    fields = memory(hc.Grid(8))
    u = fields.grid.field("u")
    with pytest.raises(InputError, match=words):
        fields[u] = value
    assert "u" not in fields.store.storages  # no memory was allocated


@pytest.mark.parametrize("name", WRONG_FUNCTIONS)
def test_functions_without_values_at_points_are_rejected(name: str) -> None:
    function, words = WRONG_FUNCTIONS[name]
    grid = hc.Grid(8)
    u, fields = grid.field("u"), memory(grid)
    with pytest.raises(InputError, match=words):
        fields[u] = function
    assert "u" not in fields.store.storages
    if name in ("another shape", "masked", "NumPy draws many"):
        return  # these functions need arrays
    with pytest.raises(InputError):
        Ghost(u, 0, -1, 0).at_wall(function)


FIRST_USES = """
import halocline as hc
from halocline.lang.stepping import program_of
grid = hc.Grid(8, periodic=True)
grid.field("u")
assert "numpy.random" not in __import__("sys").modules
def table(u):
    import numpy as np
    return {u: float(np.random.default_rng(5).random(3)[0]) * u}
def loads(u):
    from scipy.special import erf
    return {u: float(erf(0.5)) * u}
def draws(u):
    return {u: np.random.rand() * u}
"""


@pytest.mark.parametrize(
    ("loaded", "function", "words"),
    [
        ("", "table", ""),
        ("", "loads", ""),
        ("numpy", "table", ""),
        ("numpy", "draws", "draws random numbers"),
    ],
)
def test_loading_a_generator_draws_no_number(loaded: str, function: str, words: str) -> None:
    text = f"{FIRST_USES}\n{'import numpy as np' if loaded else ''}\n"
    text += f"program_of(grid, {function}, scheme=hc.Euler(), dt=0.1)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (words in done.stderr) if words else done.returncode == 0, done.stderr


def test_random_numbers_are_detected_in_all_traced_functions() -> None:
    def drawn() -> float:
        return np.random.rand()  # noqa: NPY002

    grid = line()
    T = grid.named("T")
    scheme = {"scheme": hc.Euler(), "dt": 0.1}
    tracers: dict[str, Callable[[], Any]] = {
        "equations": lambda: program_of(grid, lambda T: {T: drawn() * T}, **scheme),
        "generator": lambda: program_of(grid, lambda T: {T: generator.random() * T}, **scheme),
        "helper": lambda: program_of(grid, lambda T: {T: noise() * T}, **scheme),
        "program": lambda: program_of(grid, hc.program(lambda T: T.set(drawn() * T))),
        "dt": lambda: program_of(grid, lambda T: {T: T}, scheme=hc.Euler(), dt=lambda T: drawn()),
        "after_step": lambda: program_of(
            grid, lambda T: {T: T}, after_step=lambda T: T.set(drawn()), **scheme
        ),
        "kernel": lambda: hc.BoundaryKernel(lambda u: u[0] + drawn()).ghost(ENDS[0]),
        "map": lambda: hc.Grid(8, stretch={"x": lambda x: x + 1e-12 * generator.random()}),
    }
    for name, tracer in tracers.items():
        with pytest.raises(InputError, match=f"{DRAWS}|{OTHERS}"):
            tracer()
        assert name
    for name, function in HOLDERS.items():
        rates, size = (lambda T, f=function: {T: f(T)}), (lambda T, f=function: f(hc.max(T)))
        kernel = hc.BoundaryKernel(lambda u, f=function: f(u[0]))
        for tracer in (
            lambda rates=rates: program_of(grid, rates, **scheme),
            lambda size=size: program_of(grid, lambda T: {T: T}, scheme=hc.Euler(), dt=size),
            lambda kernel=kernel: kernel.ghost(ENDS[0]),
        ):
            with pytest.raises(InputError, match=DRAWS):
                tracer()
            assert name
    # numbers drawn before, or by a generator with a fixed seed, are the same in each call
    phases = generator.random(3)
    one = program_of(grid, lambda T: {T: float(phases[0]) * T}, **scheme)
    two = program_of(grid, lambda T: {T: np.random.default_rng(3).random() * T}, **scheme)
    assert one.statements
    assert two.statements
    assert T is not None
    with pytest.raises(InputError, match=r"boundary kernel of field 'u' returns None; expected a value"):
        hc.BoundaryKernel(lambda u: None).ghost(ENDS[0])
