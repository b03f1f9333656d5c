"""Names at the top of a problem file."""

from __future__ import annotations

from halocline.problems.names import Extrapolated, Names

TOP = {"until": 2.0, "check": len, "exact": abs, "shown": ("u",), "other": 1}


def test_a_file_with_settings_has_all_names() -> None:
    names = Names.of(TOP, has_settings=True)
    assert (names.until, names.check, names.exact, names.shown) == (2.0, len, abs, ("u",))
    assert (names.steps, names.figures, names.events) == (None, {}, ())


def test_another_file_may_use_most_names_for_itself() -> None:
    names = Names.of(TOP, has_settings=False)
    assert (names.until, names.check, names.exact, names.shown) == (None, len, abs, ())


def test_numbers_are_extrapolated_where_there_is_no_error() -> None:
    extrapolated = Extrapolated(("Nu",))
    assert Names(extrapolated=extrapolated).is_extrapolated
    assert not Names(extrapolated=extrapolated, error=len).is_extrapolated
    assert not Names().is_extrapolated
    assert extrapolated.published((8, 8), {}) == {}
    assert extrapolated.noise({}) == 0.0
