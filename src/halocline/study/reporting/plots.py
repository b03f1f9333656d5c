"""Figures of studies: lines over the number of cores or devices, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halocline.io.style import COLOURS, MARKERS, MUTED, doubling, logarithmic
from halocline.study.measurement import Measurement
from halocline.study.reporting.quantities import Key, nanoseconds, unit, units
from halocline.study.reporting.report import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IDEAL = "ideal"
COLUMNS = 2  # maximum number of panels in a row, for legible text on a page


@dataclass(frozen=True)
class Panel:
    """Panel of a figure: lines over the number of cores or devices, or over another property.

    Parameters
    ----------
    group : Group
    y : callable
        Function ``y(measurement, line)`` that returns the ordinate of a point; None for no point.
    title, ylabel : str
    line : callable
        Function that returns the key of a measurement. Measurements with equal keys form a line.
    label : callable
        Function that returns the name of a line. Its argument is the group of the measurements of the line.
    ideal : callable, optional
        Function ``ideal(x, line)`` that returns the ordinate of a dotted reference line.
    x : callable
        Function that returns the abscissa of a measurement.
    xlabel : str
        Label of the abscissa; "cores" or "devices" by default.
    log : bool
        True if the ordinate is logarithmic.
    """

    group: Group
    y: Callable[[Measurement, Group], float | None]
    title: str
    ylabel: str
    line: Key
    label: Callable[[Group], str]
    ideal: Callable[[float, Group], float] | None = None
    x: Callable[[Measurement], int] = units
    xlabel: str = ""
    log: bool = True

    def draw(self, ax: Axes) -> None:
        """Draw the lines, the scales and the labels of the axes."""
        for number, line in enumerate(self.group.split(self.line)):
            points = sorted((self.x(m), y) for m in line.members if (y := self.y(m, line)) is not None)
            if not points:
                continue
            ax.plot(*zip(*points, strict=True), **style(number), label=self.label(line))
            if self.ideal is not None:
                xs = sorted({self.x(m) for m in line.members})
                draw_ideal(ax, xs, [self.ideal(x, line) for x in xs])
        doubling(ax, sorted({self.x(m) for m in self.group.members}))
        xlabel = self.xlabel or f"{unit(self.group.first)}s"
        ax.set(xlabel=xlabel, ylabel=self.ylabel, title=self.title)
        if self.log:
            logarithmic(ax, nanoseconds)
        else:
            ax.set_ylim(0, None)


def draw(
    panels: Sequence[Panel], *, title: str = "", legend_columns: int = 3, share_y: bool = False
) -> Figure | None:
    """Return a figure with panels, and one legend below the panels; None without panels."""
    if not panels:
        return None
    figure, axes = figure_of(len(panels), COLUMNS, title=title, share_y=share_y)
    columns = min(COLUMNS, len(panels))
    for number, (ax, panel) in enumerate(zip(axes, panels, strict=True)):
        panel.draw(ax)
        if number % columns and panel.ylabel == panels[number - 1].ylabel:
            ax.set_ylabel("")
    # the reference lines are the last entries of the legend
    entries = sorted(zip(*axes[0].get_legend_handles_labels(), strict=True), key=lambda e: e[1] == IDEAL)
    if entries:
        handles, labels = map(list, zip(*entries, strict=True))
        columns = min(legend_columns, len(labels))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)
    return figure


def figure_of(
    count: int, columns: int, *, title: str = "", share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure and the axes of its `count` panels, with at most `columns` panels in a row."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = min(columns, count)
    rows = -(-count // columns)
    width = {1: 6.8, 2: 9.6}.get(columns, 4.0 * columns)
    layout = ConstrainedLayoutEngine(h_pad=0.09, w_pad=0.07)
    figure = Figure(figsize=(width, 0.9 + 3.7 * rows), layout=layout)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y).flatten()
    for ax in axes[count:]:
        ax.set_visible(False)
    return figure, list(axes[:count])


def style(number: int) -> dict[str, Any]:
    """Return the colour and the marker of a line by its number."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


def draw_ideal(ax: Axes, xs: Sequence[float], ys: Sequence[float], name: str = IDEAL) -> None:
    """Draw a dotted reference line. Only the first line with this name has an entry in the legend."""
    is_labelled = any(line.get_label() == name for line in ax.lines)
    ax.plot(xs, ys, ":", color=MUTED, linewidth=1.1, zorder=1, label=None if is_labelled else name)
