"""Arguments of many forms, valid and invalid."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import halocline as hc
from halocline.lang.boundary import Ghost
from halocline.run.domain.domain import Domain
from halocline.run.domain.execution import Execution
from halocline.run.fields.fields import Fields
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.mpi import communicator_of

AXES = "xyz"


def memory(grid: hc.Grid, **parameters: Any) -> Fields:
    """Return the fields of a grid without a program."""
    return Fields(FieldStore(Domain(grid, communicator_of(None), Execution(threads=1))), parameters)


# -- axes ----------------------------------------------------------------------------------------------------


CUBE = hc.Grid((4, 5, 6), extent=(1.0, 2.0, 3.0))
U = CUBE.field("u")


# -- functions -----------------------------------------------------------------------------------------------


class Called:
    """Callable object."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


LINE, PLANE = hc.Grid((4,)), hc.Grid((4, 4))
ENDS = [Ghost(grid.field("u"), 0, -1, 1) for grid in (LINE, PLANE)]  # ghosts beyond x-


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
    """Return a grid of eight cells with a field T."""
    grid = hc.Grid(8, periodic=True)
    grid.field("T")
    return grid


# -- numbers and arrays --------------------------------------------------------------------------------------


generator = np.random.default_rng(7)
python_generator = random.Random(7)


def noise() -> float:
    """Return a random number, drawn inside a function of the user."""
    return generator.normal()


DRAWS = r"draws random numbers while it is traced, and these numbers stay constant. Use hc\.random"
OTHERS = r"returns other values in a second call; .* For random numbers use hc\.random"

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
    "a generator of Python": (lambda x: x + python_generator.gauss(0.0, 1.0), DRAWS),
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
