"""Figures of several panels, as data that a case describes, and how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from halocline.errors import InputError
from halocline.io.contours import LEAST_BAR, Contours, Planes, draw_contours, frame
from halocline.io.style import SETTINGS

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from numpy.typing import NDArray

    from halocline.io.section import Section

    Panel: TypeAlias = "Map | Contours | Planes | Lines"

# inches, of what is drawn alone
LINES, ALONE = (3.2, 2.2), (5.6, 3.4)  # a panel of curves: among others, and one by itself
MAP, MAP_ALONE = 3.2, 4.4  # the longer side of a map or of contours; of contours by themselves
SPACE, SPACE_ALONE = 3.6, 4.8  # both sides of axes in space
# inches, of what stands around that
MAP_SIDES, CONTOURS_SIDES, SPACE_SIDES, LINES_SIDES = 0.95, 1.8, 2.3, 0.5
ROW, NAMES = 0.55, 0.25  # title and ticks of a row; names of the lowest axes
SPACE_BELOW = 0.35  # less than that is below axes in space
TITLE, LEGEND, BEFORE_TITLE = 0.4, 0.35, 0.7
TITLE_SIZE = 12.0  # points


@dataclass(frozen=True)
class Map:
    """A panel of colours over a plane.

    Parameters
    ----------
    section : Section
        The values, of two axes.
    title : str
        What they are.
    limits : (float, float), optional
        The values at both ends of the colours. Maps in one row with the same limits share a colour bar.
    """

    section: Section
    title: str
    limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class Curve:
    """Numbers over a coordinate, in a panel of them.

    Parameters
    ----------
    x, y : array
    label : str
        For the legend, in which each label is shown once.
    points : bool
        A mark for each number, instead of a line.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    label: str
    points: bool = False


@dataclass(frozen=True)
class Lines:
    """A panel of curves.

    Parameters
    ----------
    curves : sequence of Curve
    title : str
        What they are.
    coordinate : str
        The name of the horizontal axis.
    span : (float, float)
        Where it begins and ends.
    least_range : float
        The vertical axis covers at least this much, so that rounding is not magnified.
    """

    curves: Sequence[Curve]
    title: str
    coordinate: str
    span: tuple[float, float]
    least_range: float = 0.0


@dataclass(frozen=True)
class Figure:
    """Panels in rows.

    Parameters
    ----------
    panels : sequence of Map, Contours, Planes or Lines
        Row by row.
    columns : int
        Panels in a row, at most.
    """

    panels: Sequence[Panel]
    columns: int

    def __post_init__(self) -> None:
        if not self.panels:
            raise InputError("a figure without panels")
        if self.columns < 1:
            raise InputError(f"columns is {self.columns}; expected a whole number from 1")
        for panel in self.panels:
            if isinstance(panel, Map) and len(panel.section.axes) != 2:
                axes = len(panel.section.axes)
                raise InputError(f"map {panel.title!r}: expected a section of two axes; this one has {axes}")

    @property
    def rows(self) -> list[Sequence[Panel]]:
        """The panels of each row."""
        wide = min(self.columns, len(self.panels))
        return [self.panels[at : at + wide] for at in range(0, len(self.panels), wide)]


def draw(figure: Figure, path: str | Path, *, title: str = "") -> None:
    """Draw a figure into a file whose name ends in .png, .pdf or .svg; the rank that has the figure calls
    this.

    Raises
    ------
    InputError
        A name with another end, or a folder that cannot be made.
    """
    from halocline.io.picture import DPI, picture_file
    from halocline.io.style import save, styled

    target = picture_file(path)
    with styled():
        save(_canvas(figure, title), target, dpi=DPI)


def _canvas(figure: Figure, title: str) -> Canvas:
    from matplotlib.figure import Figure as Canvas
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from halocline.io.picture import place

    rows = figure.rows
    places = {place(panel.section) for panel in figure.panels if isinstance(panel, (Map, Contours))}
    common = places.pop() if title and len(places) == 1 else None  # said once, above all maps
    alone = len(figure.panels) == 1
    sizes = [[_size(panel, alone) for panel in row] for row in rows]
    heights = [max(height for _, height in row) for row in sizes]
    widths = [max(row[column][0] for row in sizes if column < len(row)) for column in range(len(rows[0]))]
    named = len({curve.label for panel in figure.panels for curve in _curves(panel)}) > 1
    room = len(rows[-1]) < len(rows[0])  # for the legend, in the last row
    height = sum(heights) + ROW * len(rows) + NAMES + TITLE * bool(title) + LEGEND * (named and not room)
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    canvas = Canvas(figsize=(sum(widths), height), layout=layout)
    axes = canvas.subplots(len(rows), len(rows[0]), squeeze=False, width_ratios=widths, height_ratios=heights)
    for r, row in enumerate(rows):
        below = rows[r + 1] if r + 1 < len(rows) else ()
        for c, panel in enumerate(row):
            ax = axes[r][c]
            where = place(panel.section) if common is None and isinstance(panel, (Map, Contours)) else ""
            if isinstance(panel, (Contours, Planes)):
                draw_contours(canvas, ax, panel, panel.title + where, _frame(panel, alone))
            elif isinstance(panel, Map):
                bar = not (c + 1 < len(row) and _same_colours(panel, row[c + 1]))
                _draw_map(canvas, ax, panel, panel.title + where, bar=bar)
            else:
                _draw_lines(ax, panel)
            if c < len(below) and _horizontal(panel) == _horizontal(below[c]):
                ax.set_xlabel("")
                ax.tick_params(labelbottom=False)
            if c and not isinstance(panel, Lines) and _vertical(panel) == _vertical(row[c - 1]):
                ax.set_ylabel("")
                ax.tick_params(labelleft=False)
    for ax in axes[-1][len(rows[-1]) :]:
        ax.set_axis_off()
    if named:
        _legend(canvas, axes, axes[-1][len(rows[-1])] if room else None)
    titles = [(ax.get_title("left"), width) for row in axes for ax, width in zip(row, widths, strict=True)]
    needed = [_width(text, SETTINGS["axes.titlesize"]) / width for text, width in titles]
    if title:
        canvas.suptitle(title + (common or ""), x=0.02, ha="left", fontsize=TITLE_SIZE)
        needed.append(_width(title + (common or ""), TITLE_SIZE) / sum(widths))
    canvas.set_figwidth(sum(widths) * max(1.0, *needed))
    return canvas


def _width(text: str, points: float) -> float:
    """Of a title with what stands before it, in inches; nothing of none."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    if not text.strip():
        return 0.0
    drawn = TextPath((0.0, 0.0), text, size=points, prop=FontProperties()).get_extents()
    return float(drawn.width) / 72.0 + BEFORE_TITLE


def _size(panel: Panel, alone: bool) -> tuple[float, float]:
    """Width with what stands beside it, and height, in inches."""
    if isinstance(panel, Lines):
        width, height = ALONE if alone else LINES
        return width + LINES_SIDES, height
    if isinstance(panel, (Contours, Planes)):
        width, height = _frame(panel, alone)
        if isinstance(panel, Planes):
            return width + SPACE_SIDES, max(height, LEAST_BAR) - SPACE_BELOW
        return width + CONTOURS_SIDES, max(height, LEAST_BAR)
    across, up = (high - low for low, high in panel.section.span)
    longer = max(across, up)
    return MAP * max(across / longer, 0.4) + MAP_SIDES, MAP * max(up / longer, 0.4)


def _frame(panel: Contours | Planes, alone: bool) -> tuple[float, float]:
    """Width and height of what is drawn without what stands beside it, in inches."""
    space, plane = (SPACE_ALONE, MAP_ALONE) if alone else (SPACE, MAP)
    return frame(panel, space if isinstance(panel, Planes) else plane)


def _curves(panel: Panel) -> Sequence[Curve]:
    return panel.curves if isinstance(panel, Lines) else ()


def _same_colours(one: Map, other: Panel) -> bool:
    return isinstance(other, Map) and one.limits is not None and one.limits == other.limits


def _horizontal(panel: Panel) -> tuple[Any, ...] | None:
    """What a panel has along its horizontal axis, for a panel below that has the same."""
    if isinstance(panel, Planes):
        return None
    if isinstance(panel, Lines):
        return Lines, panel.coordinate, panel.span
    return Map, panel.section.axes[0], panel.section.span[0]


def _vertical(panel: Panel) -> tuple[Any, ...] | None:
    if isinstance(panel, Planes):
        return None
    return (Lines,) if isinstance(panel, Lines) else (Map, panel.section.axes[1], panel.section.span[1])


def _draw_map(canvas: Canvas, ax: Axes, panel: Map, title: str, *, bar: bool) -> None:
    from halocline.io.picture import colour_bar, draw_plane

    image = draw_plane(ax, panel.section, limits=panel.limits)
    if bar:
        colour_bar(canvas, ax, image)
    ax.set_title(title)
    ax.locator_params(nbins=5)


def _draw_lines(ax: Axes, panel: Lines) -> None:
    from halocline.io.style import COLOURS, INK, gridded

    for curve in panel.curves:
        inside = (panel.span[0] <= curve.x) & (curve.x <= panel.span[1])  # the rest must not set the range
        x, y = curve.x[inside], curve.y[inside]
        if curve.points:
            size = 4.0 if len(x) <= 64 else 3.0 if len(x) <= 200 else 2.0
            ax.plot(x, y, "o", color=COLOURS[0], markersize=size, mew=0, label=curve.label)
        else:
            ax.plot(x, y, "-", color=INK, linewidth=1.0, label=curve.label, zorder=1.5)
    ax.set_xlim(*panel.span)
    low, high = ax.get_ylim()
    short = panel.least_range - (high - low)
    if short > 0:
        ax.set_ylim(low - short / 2, high + short / 2)
    ax.set_xlabel(panel.coordinate)
    ax.set_title(panel.title)
    ax.locator_params(nbins=5)
    gridded(ax)


def _legend(canvas: Canvas, axes: Any, empty: Axes | None) -> None:
    """Each label once: in the place that no panel takes, or below all of them."""
    found: dict[str, Any] = {}
    for ax in axes.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    handles, labels = list(found.values()), list(found)
    if empty is not None:
        empty.legend(handles, labels, loc="center", fontsize=10.0, markerscale=1.5)
    else:
        canvas.legend(handles, labels, loc="outside lower center", ncols=len(found), markerscale=1.5)
