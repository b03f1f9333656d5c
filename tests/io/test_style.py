"""The style of figures: files, scales and marks."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure

from halocline.errors import InputError
from halocline.io import style


def test_the_style_is_limited_to_its_block() -> None:
    before = matplotlib.rcParams["axes.edgecolor"]
    with style.styled():
        assert matplotlib.rcParams["axes.edgecolor"] == style.MUTED
        assert matplotlib.rcParams["axes.prop_cycle"].by_key()["color"] == list(style.COLOURS)
    assert matplotlib.rcParams["axes.edgecolor"] == before


def test_a_figure_is_saved_in_the_format_of_its_name(tmp_path: Path) -> None:
    figure = Figure(figsize=(1, 1))
    style.save(figure, tmp_path / "new" / "a.png", dpi=20)
    assert (tmp_path / "new" / "a.png").read_bytes().startswith(b"\x89PNG")
    style.save(figure, tmp_path / "a.svg")
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    with pytest.raises(InputError, match=r"cannot write .*b\.png: "):
        style.save(figure, tmp_path / "a.svg" / "b.png")


def test_an_axis_of_doubling_numbers_has_only_their_ticks() -> None:
    ax = Figure().subplots()
    style.doubling(ax, [1, 2, 8])
    assert (ax.get_xscale(), [text.get_text() for text in ax.get_xticklabels()]) == ("log", ["1", "2", "8"])
    assert len(ax.xaxis.get_minorticklocs()) == 0
    assert ax.get_axisbelow() is True


def test_ticks_of_a_logarithmic_axis_are_labelled() -> None:
    ax = Figure().subplots()
    ax.set_ylim(1, 100)
    style.logarithmic(ax, lambda value: f"{value:g} ns")
    assert ax.get_yscale() == "log"
    marks = [value for value in ax.get_yticks() if 1 <= value <= 100]
    assert marks == [1, 2, 5, 10, 20, 50, 100]
    assert ax.yaxis.get_major_formatter()(5.0, 0) == "5 ns"
