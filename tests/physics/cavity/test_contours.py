"""Drawing of contours and streamlines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cavity_panels import NAMES, Array, case_of, figure_of, standing
from halocline.errors import InputError
from halocline.io.figure import Figure, Map, canvas_of, draw
from halocline.io.section import Section
from halocline.io.style import styled
from halocline.physics.cavity.contours import Contours, Isolines, Planes, Streamlines, _border, _Scale
from loops import some
from suites import cases


def plane(
    values: Array, at: tuple[tuple[str, float], ...] = (), axes: tuple[str, str] = ("x", "y")
) -> Section:
    lines = tuple(np.linspace(0.0, 1.0, n) for n in values.shape)
    return Section("f", values, axes, lines, ((0.0, 1.0), (0.0, 1.0)), at)


MORE = ((12, 12), (5, 6, 20), (20, 5, 6), (4, 64), (64, 4))


@cases("shape", [(5, 40), (40, 5), (6, 7, 6), *MORE], default=[(40, 5)])
def test_no_text_of_a_figure_is_clipped(shape: tuple[int, ...], tmp_path: Path) -> None:
    from matplotlib.image import imread

    done = standing(shape, settings={"T_hot": 300.25, "T_cold": 290.125})
    sizes = " x ".join(map(str, shape))
    for name in some(NAMES):
        path = tmp_path / f"{name}.png"
        draw(figure_of(done, name), path, title=f"{case_of(len(shape))}, {sizes} cells, t = 0.7078")
        inked = (imread(path)[..., :3] < 1.0).any(axis=2)
        edges = [inked[0], inked[-1], inked[:, 0], inked[:, -1]]
        assert not any(edge.any() for edge in edges), name
        # at most 40 % of the rows and columns are empty
        assert inked.any(axis=1).mean() > 0.6, name
        assert inked.any(axis=0).mean() > 0.6, name


def test_contours_have_lines_a_colour_bar_and_equal_aspect() -> None:
    done = standing((8, 8), {"T": 0.0})
    with styled():
        canvas = canvas_of(figure_of(done, "temperature-contours"), "a title")
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
        canvas = canvas_of(figure_of(done, "streamlines"), "a title")
    filled, lines = canvas.axes[0].collections
    assert len(filled.levels) == 21
    assert len(lines.levels) == 18


def test_levels_have_ticks() -> None:
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
    scale = _Scale.of(np.array([-0.15, 3.0]), 16)  # from -0.2 to 3 in steps of 0.2
    assert np.allclose(scale.levels, np.arange(-0.2, 3.1, 0.2))
    with styled():
        canvas = canvas_of(
            Figure([Contours(plane(np.linspace(-0.5, 0.5, 9).reshape(3, 3)), "f", levels=40)], 1), ""
        )
        canvas.draw_without_rendering()
    (bar,) = canvas.axes[0].child_axes
    ticks = bar.get_yticks()
    assert 5 < len(ticks) < 20
    assert np.abs(ticks).min() < 1e-12


def test_a_cut_plane_has_a_border_around_remaining_cells() -> None:
    values = np.ones((5, 5))
    values[3:, 3:] = np.nan
    edges = _border(plane(values))
    lengths = np.abs(np.diff(edges, axis=2)).sum(axis=(0, 2))
    assert np.allclose(lengths, 0.25)
    assert len(lengths) == 16  # around the square with a missing corner as around the whole square
    corner = (edges[0] >= 0.5) & (edges[1] >= 0.5)
    assert corner.all(axis=1).sum() == 4  # along the notch
    assert _border(plane(np.full((3, 3), np.nan))).shape == (2, 0, 2)


def test_streamlines_are_drawn_on_unequally_spaced_points() -> None:
    x, y = np.linspace(0.0, 1.0, 9) ** 2, np.linspace(0.0, 2.0, 6)
    values = 1.0 + 2.0 * x[:, None] - 3.0 * y
    section = replace(plane(values), coordinates=(x, y), span=((0.0, 1.0), (0.0, 2.0)))
    panel = Contours(section, "one", over=Streamlines(section, section))
    with styled():
        canvas = canvas_of(Figure([panel], columns=1), "")
        canvas.draw_without_rendering()
    lines = [c for c in canvas.axes[0].collections if hasattr(c, "get_segments")]
    ends = np.concatenate([np.concatenate(collection.get_segments()) for collection in lines])
    assert len(ends) > 100
    assert np.all((ends > -1e-9) & (ends < np.array([1.0, 2.0]) + 1e-9))


def test_nonfinite_values_are_not_drawn() -> None:
    with styled():
        canvas = canvas_of(Figure([Contours(plane(np.full((3, 3), np.nan)), "f")], columns=1), "")
        canvas.draw_without_rendering()
    assert canvas.axes[0].get_title("left") == "f: no value is finite"


def test_adjacent_contours_share_common_labels() -> None:
    values = np.arange(12.0).reshape(4, 3)
    at = (("z", 0.25),)
    solid = Planes([plane(values, at)], ("x", "y", "z"), "in space")
    flat = plane(values, at)
    with styled():
        canvas = canvas_of(Figure([Map(flat, "one"), Contours(flat, "two"), solid], columns=2), "all")
        canvas.draw_without_rendering()
    one, two, three = canvas.axes[:3]
    assert canvas.get_suptitle() == "all, z = 0.25"
    assert [ax.get_title("left") for ax in (one, two, three)] == ["one", "two", "in space"]
    assert (one.get_ylabel(), two.get_ylabel()) == ("y", "")
    assert solid.spans == ((0.0, 1.0), (0.0, 1.0), (0.25, 0.25))


def test_invalid_panels_are_rejected() -> None:
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
        (lambda: Planes([], ("x", "y", "z"), "f"), "planes 'f': the list is empty"),
        (lambda: Planes([line], ("x", "y", "z"), "f"), "planes 'f': expected a section of two axes"),
        (lambda: Planes([flat], ("x", "y", "z"), "f"), "a section has the axes x, y; expected x, y, z"),
    )
    for make, words in makers:
        with pytest.raises(InputError, match=words):
            make()
