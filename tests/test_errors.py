"""Errors with explanations."""

from __future__ import annotations

import pytest

from halocline.errors import HaloclineError, InputError, RunError


@pytest.mark.parametrize("kind", [InputError, RunError, HaloclineError])
def test_an_explained_error_has_one_additional_line(kind: type[HaloclineError]) -> None:
    error = kind("field u is nan")
    error.place = "u", (1, 2)
    longer = error.explained("floors: 3")
    assert type(longer) is kind
    assert str(longer) == "field u is nan\nfloors: 3"
    assert longer.place == ("u", (1, 2))
    assert error.explained("") is error
