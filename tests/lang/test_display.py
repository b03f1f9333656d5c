"""Tables of grids and fields, which notebooks show."""

from __future__ import annotations

import re

import numpy as np

import halocline as hc


def facts(html: str) -> dict[str, str]:
    """Return the rows of a table."""
    return dict(re.findall(r"<tr><th[^>]*>(.*?)</th><td[^>]*>(.*?)</td></tr>", html))


def test_a_grid_shows_its_sizes_and_ends() -> None:
    grid = hc.Grid((16, 20), extent=(2.0, 1.0), periodic="x", walls=("face", "node"), dtype="float32")
    grid.vector("u", location="face")
    assert facts(grid._repr_html_()) == {
        "cells": "16 × 20 = 320",
        "domain": "[0, 2] × [0, 1]",
        "spacing": "0.125 × 0.047619",
        "ends": "x periodic, y with walls on nodes",
        "precision": "float32",
        "fields": "u_x, u_y",
    }


def test_a_grid_shows_stretched_axes_and_active_cells() -> None:
    stretch = {"y": lambda y: y - 0.1 * np.sin(2 * np.pi * y)}
    grid = hc.Grid((8, 8), stretch=stretch, active=[[True, False], [True, True]])
    table = facts(grid._repr_html_())
    assert table["stretched axes"] == "y"
    assert table["active cells"] == "48 of 64"


def test_a_field_shows_its_points_and_boundaries() -> None:
    grid = hc.Grid((16, 20), periodic="x")
    field = grid.field("T", location="face-y", boundary={"y-": hc.Value(1.0), "y+": hc.Derivative(0.0)})
    table = facts(field._repr_html_())
    assert table["points"] == "16 × 21 = 336"
    assert table["memory without halos"] == "2.69 kB"
    assert table["boundary y-"].startswith("Value(value=1.0")
    assert table["boundary y+"].startswith("Derivative(")
    assert "<strong>Field T</strong>" in field._repr_html_()
