"""The default test suite (`make test`), which runs a part of the cases of the extended test suite."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

SUITE = "HALOCLINE_TEST_SUITE"  # set to "default" by conftest.py, also for workers and ranks


def cases(
    names: str, values: Iterable[Any], default: Collection[Any] | Callable[[Any], bool], ids: Any = None
) -> pytest.MarkDecorator:
    """Return `pytest.mark.parametrize` with the marker `long` on all values except the default ones.

    Parameters
    ----------
    names : str
        Names of the arguments, separated by commas.
    values : iterable
        Values of the arguments, as for `pytest.mark.parametrize`.
    default : collection or callable
        Values of the default test suite, or a function that returns True for these values.
    ids : optional
        As for `pytest.mark.parametrize`.

    Raises
    ------
    AssertionError
        A default value is not one of the values, or the default test suite has no case.
    """
    listed = list(values)
    is_default = default if callable(default) else lambda value: value in default
    assert callable(default) or all(value in listed for value in default), f"not all in {listed}"
    assert any(map(is_default, listed)), "the default test suite has no case"
    parameters = [
        value
        if is_default(value)
        else pytest.param(*(value if "," in names else (value,)), marks=pytest.mark.long)
        for value in listed
    ]
    return pytest.mark.parametrize(names, parameters, ids=ids)


def examples(default: int, extended: int) -> int:
    """Return the number of random examples in the suite that runs."""
    return default if os.environ.get(SUITE) == "default" else extended
