"""Figures of several panels: a description as data, and functions that draw it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.io.panel import Panel, PlanePanel, check_plane
from halocline.io.plane import colour_bar, draw_plane, place
from halocline.io.style import COLOURS, DPI, INK, gridded, picture_file, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from halocline.io.section import Section

LINES, ALONE = (3.2, 2.2), (5.6, 3.4)  # size of a panel of curves in inches: among other panels, and alone.
ROW, TITLE = 0.8, 0.4  # height in inches of the title and ticks of a row, and of the title of a figure.
TITLE_SIZE = 12.0  # points
LINE: dict[str, Any] = {"color": INK, "linewidth": 1.0, "zorder": 1.5}
MARKS: dict[str, Any] = {"marker": "o", "linestyle": "", "color": COLOURS[0], "mew": 0}


@dataclass(frozen=True)
class Map(PlanePanel):
    """Panel with a colour map over a plane.

    Parameters
    ----------
    section : Section
        Values of two axes.
    title : str
        Name of the values.
    limits : (float, float), optional
        Values at both ends of the colour map. Maps in one row with the same limits share a colour bar.
    label : str
        Label of the colour bar.
    unit : str
        Unit of the coordinates.
    cmap : str, optional
        Colour map of matplotlib; by default, a sequential colour map for values of one sign, else a diverging
        colour map.
    """

    section: Section
    title: str
    limits: tuple[float, float] | None = None
    label: str = ""
    unit: str = ""
    cmap: str | None = None

    def __post_init__(self) -> None:
        check_plane(self.section, f"map {self.title!r}")

    @property
    def place(self) -> str:
        return place(self.section.at, self.unit)

    def draw(self, canvas: Canvas, ax: Axes, size: tuple[float, float], *, bar: bool) -> str:
        image = draw_plane(ax, self.section, unit=self.unit, cmap=self.cmap, limits=self.limits)
        if bar:
            colour_bar(canvas, ax, image, self.label)
        ax.locator_params(nbins=5)
        return ""


@dataclass(frozen=True)
class Curve:
    """Curve of a panel: values over a coordinate.

    Parameters
    ----------
    x, y : array
    label : str
        Label for the legend, which shows each label once.
    points : bool
        True for a mark at each value, instead of a line.
    style : mapping, optional
        Options of matplotlib that replace the default style.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    label: str
    points: bool = False
    style: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Lines(Panel):
    """Panel of curves.

    Parameters
    ----------
    curves : sequence of Curve
    title : str
        Name of the values.
    coordinate : str
        Name of the horizontal axis.
    span : (float, float)
        Ends of the horizontal axis.
    least_range : float
        Minimum length of the vertical axis, so that rounding errors are not magnified.
    ylabel : str
        Label of the vertical axis.
    """

    curves: Sequence[Curve]
    title: str
    coordinate: str
    span: tuple[float, float]
    least_range: float = 0.0
    ylabel: str = ""

    sides: ClassVar[float] = 0.5

    @property
    def axis_keys(self) -> tuple[Any, Any]:
        return (Lines, self.coordinate, self.span), None

    def size(self, *, alone: bool) -> tuple[float, float]:
        return ALONE if alone else LINES

    def draw(self, canvas: Canvas, ax: Axes, size: tuple[float, float], *, bar: bool) -> str:
        for curve in self.curves:
            inside = (self.span[0] <= curve.x) & (curve.x <= self.span[1])  # only these points set the range
            x, y = curve.x[inside], curve.y[inside]
            size_of_points = 4.0 if len(x) <= 64 else 3.0 if len(x) <= 200 else 2.0
            style = MARKS | {"markersize": size_of_points} if curve.points else LINE
            ax.plot(x, y, label=curve.label, **(curve.style or style))
        ax.set_xlim(*self.span)
        low, high = ax.get_ylim()
        short = self.least_range - (high - low)
        if short > 0:
            ax.set_ylim(low - short / 2, high + short / 2)
        ax.set(xlabel=self.coordinate, ylabel=self.ylabel)
        ax.locator_params(nbins=5)
        gridded(ax)
        return ""


@dataclass(frozen=True)
class Figure:
    """Panels in rows.

    Parameters
    ----------
    panels : sequence of Map, Contours, Planes or Lines
        Panels in row-major order.
    columns : int
        Maximum number of panels in a row.
    """

    panels: Sequence[Panel]
    columns: int

    def __post_init__(self) -> None:
        if not self.panels:
            raise InputError("the figure has no panels; expected at least one")
        if self.columns < 1:
            raise InputError(f"columns is {self.columns}; expected a whole number from 1")

    @property
    def rows(self) -> list[Sequence[Panel]]:
        """Panels of each row."""
        wide = min(self.columns, len(self.panels))
        return [self.panels[at : at + wide] for at in range(0, len(self.panels), wide)]


def draw(figure: Figure, path: str | Path, *, title: str = "") -> None:
    """Draw a figure to a file whose name ends in .png, .pdf or .svg.

    Only the rank that has the figure calls this function.

    Raises
    ------
    InputError
        The name has another suffix, or its folder cannot be created.
    """
    target = picture_file(path)
    with styled():
        save(canvas_of(figure, title), target, dpi=DPI, bbox_inches="tight")


def canvas_of(figure: Figure, title: str) -> Canvas:
    """Return the drawing of a figure, for a file or a notebook that crops it to its contents."""
    from halocline.io.inline import InlineFigure

    rows, alone = figure.rows, len(figure.panels) == 1
    places = {panel.place for panel in figure.panels} - {None}
    common_place = places.pop() if title and len(places) == 1 else None  # shown once, above all panels
    sizes = [[panel.size(alone=alone) for panel in row] for row in rows]
    heights = [max(height for _, height in row) for row in sizes]
    widths = [
        max(
            row[column][0] + panels[column].sides
            for row, panels in zip(sizes, rows, strict=True)
            if column < len(row)
        )
        for column in range(len(rows[0]))
    ]
    labels = {curve.label for panel in figure.panels if isinstance(panel, Lines) for curve in panel.curves}
    height = sum(heights) + ROW * len(rows) + TITLE * bool(title)
    canvas = InlineFigure(figsize=(sum(widths), height), layout="constrained")
    grid = canvas.add_gridspec(len(rows), len(rows[0]), width_ratios=widths, height_ratios=heights)
    for r, row in enumerate(rows):
        below = rows[r + 1] if r + 1 < len(rows) else ()
        for c, panel in enumerate(row):
            ax: Axes = canvas.add_subplot(grid[r, c], projection=panel.projection)
            following = row[c + 1] if c + 1 < len(row) else None
            note = panel.draw(canvas, ax, sizes[r][c], bar=not _share_colours(panel, following))
            ax.set_title(panel.title + (panel.place or "" if common_place is None else "") + note, loc="left")
            (across, up), left_panel = panel.axis_keys, row[c - 1] if c else None
            if across is not None and c < len(below) and across == below[c].axis_keys[0]:
                ax.set_xlabel("")
                ax.tick_params(labelbottom=False)
            if up is not None and left_panel is not None and up == left_panel.axis_keys[1]:
                ax.set_ylabel("")
                ax.tick_params(labelleft=False)
    if len(labels) > 1:
        has_room = len(rows[-1]) < len(rows[0])  # in the last row
        _legend(canvas, canvas.add_subplot(grid[-1, len(rows[-1])]) if has_room else None)
    if title:
        put_title(canvas, title + (common_place or ""))
    return canvas


def put_title(canvas: Canvas, title: str) -> None:
    """Set the title of a figure, or replace it."""
    canvas.suptitle(title, x=0.02, ha="left", fontsize=TITLE_SIZE)


def _share_colours(panel: Panel, other: Panel | None) -> bool:
    """Return True for maps with the same limits, which share a colour bar."""
    if not (isinstance(panel, Map) and isinstance(other, Map)):
        return False
    return panel.limits is not None and panel.limits == other.limits


def _legend(canvas: Canvas, empty: Axes | None) -> None:
    """Draw a legend with each label once: in the axes of an unused panel, or below all panels."""
    handles: dict[Any, Any] = {}
    for ax in canvas.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    entries = list(handles.values()), list(handles)
    if empty is not None:
        empty.set_axis_off()
        empty.legend(*entries, loc="center", fontsize=10.0, markerscale=1.5)
    else:
        canvas.legend(*entries, loc="outside lower center", ncols=len(handles), markerscale=1.5)
