"""Contours and streamlines: how they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cavity_panels import NAMES, Array, case_of, figure_of, standing
from halocline.errors import InputError
from halocline.io.contours import Contours, Isolines, Planes, Streamlines, _border, _onto, _Scale
from halocline.io.figure import Figure, Map, _canvas
from halocline.io.section import Section
from halocline.io.style import styled
from loops import some


def plane(
    values: Array, at: tuple[tuple[str, float], ...] = (), axes: tuple[str, str] = ("x", "y")
) -> Section:
    lines = tuple(np.linspace(0.0, 1.0, n) for n in values.shape)
    return Section("f", values, axes, lines, ((0.0, 1.0), (0.0, 1.0)), at)


MORE = ((12, 12), (5, 6, 20), (20, 5, 6), (4, 64), (64, 4))


@pytest.mark.parametrize(
    "shape", [(5, 40), (40, 5), (6, 7, 6), *(pytest.param(each, marks=pytest.mark.long) for each in MORE)]
)
def test_nothing_written_is_cut_off(shape: tuple[int, ...]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    done = standing(shape, given={"T_hot": 300.25, "T_cold": 290.125})
    sizes = " x ".join(map(str, shape))
    for name in some(NAMES):
        with styled():
            canvas = _canvas(figure_of(done, name), f"{case_of(len(shape))}, {sizes} cells, t = 0.7078")
            renderer = FigureCanvasAgg(canvas).get_renderer()
            canvas.draw(renderer)
            taken, whole = canvas.get_tightbbox(renderer), canvas.get_size_inches()
        assert min(taken.x0, taken.y0) > -0.01, name
        assert taken.x1 < whole[0] + 0.01, name
        assert taken.y1 < whole[1] + 0.01, name
        assert (taken.width * taken.height) > 0.5 * whole.prod(), name  # nor much left empty


def test_axes_in_space_have_ticks_and_names_outside_of_the_picture() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with styled():
        canvas = _canvas(figure_of(standing((6, 7, 6)), "pressure-contours"), "a title")
        renderer = FigureCanvasAgg(canvas).get_renderer()
        canvas.draw(renderer)
    (ax,) = canvas.axes
    found = {text: text.get_tightbbox(renderer) for text in ax.texts}
    assert all(box.width > 1.0 for box in found.values())
    names = [text.get_text() for text in found]
    assert [names.count(f"{a} / L") for a in "xyz"] == [1, 1, 1]
    assert len(names) > 10
    face = ax.get_window_extent(renderer)
    left = [text.get_text() for text, box in found.items() if box.x1 <= face.x0]
    for name in ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "z / L"):
        assert any(name in text for text in left), name


def test_contours_have_lines_a_bar_and_even_sides() -> None:
    done = standing((8, 8), {"T": 0.0})
    with styled():
        canvas = _canvas(figure_of(done, "temperature-contours"), "a title")
        canvas.draw_without_rendering()
    (ax,) = canvas.axes
    filled, lines = ax.collections
    assert np.allclose(filled.levels, np.linspace(-0.5, 0.5, 21))
    assert np.array_equal(filled.levels, lines.levels)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_aspect()) == ("x / L", "y / L", 1.0)
    assert (ax.get_xlim(), ax.get_ylim()) == ((0.0, 1.0), (0.0, 1.0))
    (bar,) = ax.child_axes
    assert bar.get_ylabel() == "temperature T"
    with styled():
        canvas = _canvas(figure_of(done, "streamlines"), "a title")
    filled, lines = canvas.axes[0].collections
    assert len(filled.levels) == 21
    assert len(lines.levels) == 18


def test_levels_and_their_ticks() -> None:
    values = np.array([[0.31, 1.94], [1.0, np.nan]])
    scale = _Scale.of(values, 8)
    assert np.allclose(scale.levels, np.arange(0.25, 2.1, 0.25))
    assert (scale.extend, scale.note) == ("neither", "")
    for levels, extend in (
        ([0.0, 1.0, 2.0], "neither"),
        ([0.5, 2.0], "min"),
        ([0.0, 1.5], "max"),
        ([0.5, 1.5], "both"),
    ):
        assert _Scale.of(values, levels).extend == extend
    assert _Scale.of(values, [0.31 + 1e-13, 1.94 - 1e-13]).extend == "neither"  # rounding
    twenty = _Scale.of(values, [k / 20 for k in range(-10, 11)])
    for most, ticks in ((20.0, 21), (12.0, 11), (9.0, 5), (2.0, 3)):
        found = twenty.few_ticks(most)
        assert len(found) == ticks
        assert 0.0 in found
    scale = _Scale.of(np.array([-0.15, 3.0]), 16)  # from -0.2 to 3 in steps of 0.2
    assert np.allclose(scale.few_ticks(10.0), np.arange(0.0, 3.0, 0.4))
    odd = _Scale.of(values, [0.13 + k / 20 for k in range(21)]).few_ticks(5.0)
    assert (odd[0], odd[-1]) == (0.13, pytest.approx(1.13))


def test_a_cut_plane_has_a_border_around_what_is_left() -> None:
    values = np.ones((5, 5))
    values[3:, 3:] = np.nan
    edges = _border(plane(values))
    lengths = np.abs(np.diff(edges, axis=2)).sum(axis=(0, 2))
    assert np.allclose(lengths, 0.25)
    assert len(lengths) == 16  # around the square with a corner cut out as around the whole one
    corner = (edges[0] >= 0.5) & (edges[1] >= 0.5)
    assert corner.all(axis=1).sum() == 4  # along the notch
    assert _border(plane(np.full((3, 3), np.nan))).shape == (2, 0, 2)


def test_streamlines_of_points_that_are_not_even() -> None:
    x, y = np.linspace(0.0, 1.0, 9) ** 2, np.linspace(0.0, 2.0, 6)
    values = 1.0 + 2.0 * x[:, None] - 3.0 * y
    even = (np.linspace(0.0, 1.0, 9), y)
    assert np.allclose(_onto(even, (x, y), values), 1.0 + 2.0 * even[0][:, None] - 3.0 * y)
    section = replace(plane(values), coordinates=(x, y), span=((0.0, 1.0), (0.0, 2.0)))
    panel = Contours(section, "one", over=Streamlines(section, section))
    with styled():
        _canvas(Figure([panel], columns=1), "").draw_without_rendering()


def test_values_that_are_not_finite_are_not_drawn() -> None:
    with styled():
        canvas = _canvas(Figure([Contours(plane(np.full((3, 3), np.nan)), "f")], columns=1), "")
        canvas.draw_without_rendering()
    assert canvas.axes[0].get_title("left") == "f: no value is finite"


def test_contours_beside_others_share_what_they_have_in_common() -> None:
    values = np.arange(12.0).reshape(4, 3)
    at = (("z", 0.25),)
    solid = Planes([plane(values, at)], ("x", "y", "z"), "in space")
    flat = plane(values, at)
    with styled():
        canvas = _canvas(Figure([Map(flat, "one"), Contours(flat, "two"), solid], columns=2), "all")
        canvas.draw_without_rendering()
    one, two, three = canvas.axes[:3]
    assert canvas.get_suptitle() == "all, z = 0.25"
    assert [ax.get_title("left") for ax in (one, two, three)] == ["one", "two", "in space"]
    assert (one.get_ylabel(), two.get_ylabel()) == ("y", "")
    assert solid.spans == ((0.0, 1.0), (0.0, 1.0), (0.25, 0.25))


def test_panels_that_cannot_be() -> None:
    flat = plane(np.ones((3, 3)))
    line = replace(flat, axes=("x",))
    makers: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: Contours(line, "f"), "contours 'f': expected a section of two axes; this one has 1"),
        (
            lambda: Contours(flat, "f", over=Isolines(line, [0.0])),
            "contours 'f': expected a section of two axes",
        ),
        (
            lambda: Contours(flat, "f", over=Streamlines(flat, line)),
            "contours 'f': expected a section of two",
        ),
        (lambda: Planes([], ("x", "y", "z"), "f"), "planes 'f': there are none"),
        (lambda: Planes([line], ("x", "y", "z"), "f"), "planes 'f': expected a section of two axes"),
        (lambda: Planes([flat], ("x", "y", "z"), "f"), "a section of the axes x, y; expected x, y, z"),
    )
    for make, words in makers:
        with pytest.raises(InputError, match=words):
            make()
