"""How the plots of studies of cases look: times over devices or cores, both by doublings, panel by panel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from halocline.study.measuring.command import Measurement
from halocline.study.reporting.quantities import baseline, by, nanoseconds, ns, size, unit, units
from halocline.study.reporting.table import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 2  # of panels: more would make text small on a page
IDEAL = "ideal"
NS = "ns a cell and step"


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


def panels(
    measurements: Sequence[Measurement], title: str
) -> tuple[Figure, Iterator[tuple[Axes, list[Measurement]]]]:
    """A panel for each size and number of threads a rank, with its measurements; the axes are made when the
    next is taken."""
    groups = [own for _, own in by(measurements, lambda m: (m["cells"], m["threads"]))]
    columns = min(COLUMNS, len(groups))
    rows = -(-len(groups) // columns)
    figure = figure_of(rows, columns, title=title)
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    for ax in axes[len(groups) :]:
        ax.set_visible(False)

    def each() -> Iterator[tuple[Axes, list[Measurement]]]:
        for number, (ax, found) in enumerate(zip(axes, groups, strict=False)):
            yield ax, found
            times_over_units(ax, found, "" if number % columns else NS)
            ax.set_title(label(found[0], measurements))
        legend(figure, axes[0], 5)

    return figure, each()


def label(measurement: Measurement, among: Iterable[Measurement]) -> str:
    """The size of a grid, and the threads of a rank where that says something."""
    threads = f", {counted(measurement['threads'], 'thread')} a rank"
    return size(measurement) + (threads if len({m["threads"] for m in among}) > 1 else "")


def style(number: int) -> dict[str, Any]:
    """Colour and marker of a line."""
    from halocline.io.style import COLOURS, MARKERS

    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


def draw_ideal(ax: Axes, xs: Sequence[float], ys: Sequence[float], name: str = IDEAL) -> None:
    """A line that others are held against; the first of a panel goes into the legend."""
    from halocline.io.style import MUTED

    named = any(line.get_label() == name for line in ax.lines)
    ax.plot(xs, ys, ":", color=MUTED, linewidth=1.1, zorder=1, label=None if named else name)


def draw_ideal_scaling(ax: Axes, found: Sequence[Measurement]) -> None:
    """As many times as fast as there are more devices or cores."""
    base, xs = baseline(found), sorted({units(m) for m in found})
    draw_ideal(ax, xs, [units(base) * ns(base) / x for x in xs])


def legend(figure: Figure, ax: Axes, columns: int) -> None:
    """Below the panels, with what is ideal last."""
    pairs = sorted(zip(*ax.get_legend_handles_labels(), strict=True), key=lambda pair: pair[1] == IDEAL)
    handles, labels = zip(*pairs, strict=True)
    figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)))


def times_over_units(ax: Axes, measurements: Sequence[Measurement], ylabel: str) -> None:
    """Scales and names of axes; call this when all is drawn."""
    from matplotlib.ticker import LogLocator, NullLocator

    from halocline.io.style import doubling

    doubling(ax, sorted({units(m) for m in measurements}))
    ax.set_xlabel(f"{unit(measurements[0])}s")
    ax.set_ylabel(ylabel)
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    few = high / low < 30
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if few else (1.0, 2.0, 5.0)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: nanoseconds(value))
