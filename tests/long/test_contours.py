"""Contours of a cavity in three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from cavity_panels import figure_of, standing
from halocline.io.figure import canvas_of
from halocline.io.style import styled


def test_axes_in_three_dimensions_have_names_and_ends() -> None:
    with styled():
        canvas = canvas_of(figure_of(standing((6, 7, 6)), "pressure-contours"), "a title")
        canvas.draw_without_rendering()
    ax: Any = canvas.axes[0]
    assert [ax.get_xlabel(), ax.get_ylabel(), ax.get_zlabel()] == ["x / L", "y / L", "z / L"]
    ends = [ax.get_xlim(), ax.get_ylim(), ax.get_zlim()]
    assert np.allclose(ends, [(0.0, 1.0), (0.0, 8.0 / 7.0), (0.0, 1.0)])
    assert len(canvas.axes) == 2  # with the colour bar
    assert canvas.axes[1].get_ylabel() == "pressure p"
