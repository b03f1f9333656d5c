"""How the plots of studies look: times over devices or cores, both by doublings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from halocline.study.reporting.quantities import nanoseconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IDEAL = "ideal"


def figure_of(rows: int = 1, columns: int = 1, *, title: str = "") -> Figure:
    """A figure with room for so many panels, and a legend below them."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    width = {1: 6.8, 2: 9.6}.get(columns, 4.0 * columns)
    layout = ConstrainedLayoutEngine(h_pad=0.09, w_pad=0.07)
    figure = Figure(figsize=(width, 0.9 + 3.7 * rows), layout=layout)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    return figure


def style(number: int) -> dict[str, Any]:
    """Colour and marker of a line."""
    from halocline.io.style import COLOURS, MARKERS

    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


def draw_ideal(ax: Axes, xs: Sequence[float], ys: Sequence[float], name: str = IDEAL) -> None:
    """A line that others are held against; the first of a panel goes into the legend."""
    from halocline.io.style import MUTED

    named = any(line.get_label() == name for line in ax.lines)
    ax.plot(xs, ys, ":", color=MUTED, linewidth=1.1, zorder=1, label=None if named else name)


def legend(figure: Figure, ax: Axes, columns: int) -> None:
    """Below the panels, with what is ideal last."""
    handles, labels = ax.get_legend_handles_labels()
    pairs = sorted(zip(handles, labels, strict=True), key=lambda pair: pair[1] == IDEAL)
    if pairs:
        handles, labels = map(list, zip(*pairs, strict=True))
        figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)))


def legible_log(ax: Axes) -> None:
    """A logarithmic scale with numbers that one can read; call this when all is drawn."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    few = high / low < 30
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if few else (1.0, 2.0, 5.0)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: nanoseconds(value))
