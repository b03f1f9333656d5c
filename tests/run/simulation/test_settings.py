"""Settings that a file declares."""

from __future__ import annotations

import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.problems.problem import Problem
from halocline.run.simulation.settings import Setting, Settings, active


def test_a_setting_has_its_default_or_the_specified_value() -> None:
    assert hc.setting("kappa", 1.0, "length²/time", above=0.0) == 1.0
    settings = Settings({"kappa": "2", "word": "b"})
    with active(settings):
        assert hc.setting("kappa", 1.0, "length²/time", above=0.0) == 2.0
        assert hc.setting("word", "a", words=("a", "b")) == "b"
        assert hc.setting("other", Setting(3.0, "1", "a number")) == 3.0
    assert settings.values == {"kappa": 2.0, "word": "b", "other": 3.0}
    with active(Settings({"kappa": "-2"})), pytest.raises(InputError, match="kappa is -2; expected a number"):
        hc.setting("kappa", 1.0, "length²/time", above=0.0)


def test_cells_are_proportional_or_as_specified() -> None:
    assert hc.cells(8, 4) == (8, 4)
    for n, dim, shape in (
        (None, None, (8, 4)), (None, 1, (6,)), ([16], None, (16, 8)), ([16], 1, (16,)),
        ([5, 3], None, (5, 3)),
    ):  # fmt: skip
        with active(Settings(n=n, dim=dim)):
            assert hc.cells(8, 4, also=[(6,)]) == shape
    for n, dim, words in (
        (None, 3, "dim is 3; expected 1 or 2, the numbers of axes that this problem supports"),
        ([4, 4], 1, "n is 4,4; expected one number, or as many numbers as axes: 1"),
        ([4] * 3, None, "n is 4,4,4; expected one number, or as many numbers as axes: 1 or 2"),
    ):
        with active(Settings(n=n, dim=dim)), pytest.raises(InputError, match=words):
            hc.cells(8, 4, also=[(6,)])


def test_a_setting_that_the_file_does_not_declare_is_an_error() -> None:
    with pytest.raises(InputError, match=r"parameter 'kapa' is unknown \(did you mean 'kappa'\?\)"):
        _ = Problem("heat", [8], {"kapa": 1.0}, dim=1).program
    with pytest.raises(InputError, match=r"parameter 'method' is unknown; known: kappa"):
        _ = Problem("heat", [8], {"method": "cg"}, dim=1).program
