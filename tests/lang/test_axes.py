"""Axes that users name, and values for each axis."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import halocline as hc
from arguments import AXES, CUBE, U, memory
from halocline.errors import InputError
from halocline.io.section import cut
from halocline.plan.decompose import decompose
from halocline.plan.patches import _explicit
from halocline.plan.traffic import Traffic
from halocline.problems.result import execution_options
from halocline.run.domain.execution import Execution

# -- axes ----------------------------------------------------------------------------------------------------


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
        first, *other_results = (function(axis) for axis in spellings(number))
        pairs = (
            zip(first, *other_results, strict=True) if isinstance(first, tuple) else [(first, *other_results)]
        )
        assert all(result.digest == same[0].digest for same in pairs for result in same)


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
    """Draw flags of one to three axes, and one form of writing them."""
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
def test_flags_of_axes_have_several_notations(case: tuple[tuple[bool, ...], Any]) -> None:
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
def test_values_for_each_axis_have_several_notations(name: str) -> None:
    taker, values, default = PER_AXIS[name]
    accepted_count = 0
    for pair in itertools.product(values, repeat=2):
        for value in written(pair, default):
            if name == "decomposition" and not isinstance(value, (Mapping, tuple, list, np.ndarray)):
                continue  # a single number is a number of ranks
            if default is None and isinstance(value, Mapping) and len(value) < 2:
                continue
            if isinstance(value, Mapping) and not value:
                continue
            assert taker(value) == pair, value
            accepted_count += 1
    assert accepted_count > 3 * len(values) ** 2


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


def test_a_record_contains_all_axes() -> None:
    execution = Execution(decomposition={"y": 2}, patch={"x": 4, "z": 8})
    assert execution_options(execution, 3)["decomposition"] == "1x2x1"
    assert execution_options(execution, 3)["patch"] == "4,1,8"
    assert execution_options(Execution(decomposition=(2, 1), patch=8), 2)["decomposition"] == "2x1"


def test_a_shape_may_be_an_array() -> None:
    assert hc.Grid(np.array([3, 4])).shape == (3, 4)
    assert hc.Grid(np.int64(3)).shape == (3,)
    for shape in (np.array([3.0, 4.0]), "34", {"x": 3}, None, np.array([[3, 4]])):
        with pytest.raises(InputError, match=r"^shape "):
            hc.Grid(shape)
    with pytest.raises(InputError, match=r"^active has masked values; expected True or False"):
        hc.Grid(8, active=np.ma.array([True, False], mask=[True, False]))
