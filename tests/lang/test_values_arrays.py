"""Numbers and arrays from users."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import halocline as hc
from arguments import WRONG_ARRAYS, WRONG_FUNCTIONS, Heat, U, line, memory
from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.boundary import Ghost
from halocline.lang.values import as_real, real_array
from halocline.solvers.linear import check_limits
from stepped_programs import program_of

NO_NUMBERS: list[Any] = [
    None, "1", "x", b"1", 1j, np.complex128(1.0), np.array(1j), np.str_("1"), np.ma.masked, [1.0], np.ones(1),
    np.datetime64("2020-01-01"), 10**400, object(), len, {},
]  # fmt: skip
NUMBERS: list[Any] = [
    0, -1, 2.5, True, np.float32(0.5), np.int8(3), np.uint64(7), np.bool_(True), np.array(2.0),
    Fraction(1, 4), np.ma.array(1.5), np.longdouble(0.25), math.pi,
]  # fmt: skip


def test_real_numbers_of_all_types_are_accepted_and_other_types_rejected() -> None:
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


def test_numpy_integers_are_integers() -> None:
    assert hc.shift(U, np.int64(0), np.int64(1)) is hc.shift(U, 0, 1)
    assert hc.difference(U, 0, np.int64(2)).digest == hc.difference(U, 0, 2).digest
    assert check_limits(np.float32(0.5), None) == 0.5
    for wrong in (lambda: U[True, 0, 0], lambda: hc.value(U, at=hc.sum(U)), lambda: hc.shift(U, 0, True)):
        with pytest.raises(InputError):
            wrong()


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
