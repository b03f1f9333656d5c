"""Earlier names of arguments, attributes and names of problem files work, with a DeprecationWarning."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import halocline as hc
from halocline.problems.names import names_in
from halocline.run.simulation.settings import Setting


def test_a_check_accepts_earlier_names() -> None:
    with pytest.warns(DeprecationWarning, match=r"^Check: most has been renamed to maximum") as warned:
        check = hc.Check("error", 0.5, most=1.0)  # type: ignore[call-arg]
    assert warned[0].filename == __file__
    assert check == hc.Check("error", 0.5, maximum=1.0)
    with pytest.warns(DeprecationWarning, match=r"^Check: least has been renamed to minimum"):
        assert hc.Check("error", 0.5, least=0.1).bound == "at least 0.1"  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match=r"^Check: most has been renamed to maximum"):
        assert check.most == 1.0  # type: ignore[attr-defined]


def test_a_setting_accepts_earlier_names() -> None:
    with pytest.warns(DeprecationWarning, match=r"^Setting: least has .* minimum") as warned:
        setting = Setting(1, "1", "", least=0, maximum=9, whole=True)  # type: ignore[call-arg]
    assert warned[0].filename == __file__
    assert setting == Setting(1, "1", "", minimum=0, maximum=9, whole=True)
    with pytest.warns(DeprecationWarning, match=r"^setting 'k': most has been renamed to maximum") as warned:
        assert hc.setting("k", 1.0, most=2.0) == 1.0
    assert warned[0].filename == __file__
    with (
        pytest.warns(DeprecationWarning, match="most has been renamed"),
        pytest.raises(hc.InputError, match="k is 3; expected a number to 2"),
    ):
        hc.setting("k", 3.0, most=2.0)


def test_functions_accept_earlier_names_of_arguments() -> None:
    expected = hc.Check.not_compared("error", "no reference")
    with pytest.warns(DeprecationWarning, match="not_compared: why has been renamed to reason") as warned:
        assert hc.Check.not_compared("error", why="no reference").about == expected.about  # type: ignore
    assert warned[0].filename == __file__
    with pytest.raises(hc.InputError, match="why and reason are the same; leave why out"):
        hc.Check.not_compared("error", reason="a", why="b")  # type: ignore[call-arg]


def test_gathers_and_pictures_accept_the_earlier_name_of_the_expression(tmp_path: Path) -> None:
    grid = hc.Grid((4,), periodic=True)
    u = grid.field("u")
    sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-5)
    sim[u] = [1.0, 2.0, 3.0, 4.0]
    with pytest.warns(DeprecationWarning, match="gather: what has been renamed to expression") as warned:
        values = sim.gather(what=2.0 * u)
    assert warned[0].filename == __file__
    assert values.tolist() == [2.0, 4.0, 6.0, 8.0]
    with pytest.warns(DeprecationWarning, match="picture: what has been renamed to expression"):
        hc.picture(sim, path=tmp_path / "u.png", what=u)
    assert (tmp_path / "u.png").stat().st_size > 0


def test_both_names_are_rejected() -> None:
    with pytest.raises(hc.InputError, match="Check: most and maximum are the same; leave most out"):
        hc.Check("error", 0.5, most=1.0, maximum=1.0)  # type: ignore[call-arg]
    with pytest.raises(hc.InputError, match="setting 'k': least and minimum are the same; leave least out"):
        hc.setting("k", 1.0, least=0.0, minimum=0.0)


def test_present_names_do_not_warn_and_json_keys_are_unchanged() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check = replace(hc.Check("error", 0.5, maximum=1.0), minimum=0.0)
        setting = Setting(1.0, minimum=0.0)
        assert hc.setting("k", 1.0, minimum=0.0) == 1.0
    assert list(check.facts()) == ["name", "value", "most", "least", "about", "compared"]
    assert (check.facts()["most"], check.facts()["least"]) == (1.0, 0.0)
    assert list(setting.facts())[3:7] == ["least", "above", "most", "below"]
    assert setting.facts()["least"] == 0.0


def test_a_problem_file_may_use_the_earlier_name_of_key_diagnostics() -> None:
    with pytest.warns(DeprecationWarning, match="heat.py: shown has been renamed to key_") as warned:
        names, complaints = names_in({"shown": ("u",)}, ["key_diagnostics"], "heat.py")
    assert (names.key_diagnostics, complaints, warned[0].filename) == (("u",), {}, "heat.py")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names, _ = names_in({"shown": 1, "key_diagnostics": ("v",)}, ["key_diagnostics"], "heat.py")
    assert names.key_diagnostics == ("v",)
