"""Convergence of errors on successively finer grids (Mendygral et al. 2017, Figs. 13 and 23)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.io.table import Table
from halocline.problems.names import Family
from halocline.problems.problem import Problem
from halocline.study.measurement import Measurement, group_by
from halocline.study.reporting.plots import draw_ideal, figure_of, style
from halocline.study.reporting.quantities import size
from halocline.words import joined

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ORDER_TOLERANCE = 0.2  # tolerance of an observed order
SMALL_RANGE = 50.0  # ratio of the ends of an axis, below which powers of ten give too few marks
ERROR = "error"
COLUMNS = 3  # maximum number of panels in a row


def lines(
    problem: Problem,
    parameters: Mapping[str, float | str],
    dim: int | None = None,
    sizes: tuple[int, ...] | None = None,
) -> list[tuple[str, Family]]:
    """Return the lines of a case that match its parameters, as pairs of label and family.

    Each returned family has one line. If no line matches, the only family contains the default grid of the
    case and coarser grids.

    Parameters
    ----------
    problem : Problem
    parameters : mapping of str to float or str
        Parameters of the case.
    dim : int, optional
        Number of axes; by default that of each family.
    sizes : tuple of int, optional
        Numbers of cells along the first axis; by default those of each family.
    """
    families = [
        replace(family, sizes=sizes or family.sizes, lines=(line,))
        for family in problem.known.families
        if dim in (None, family.dim) and (sizes or family.sizes)
        for line in family.lines
        if all(parameters.get(name, value) == value for name, value in line.items())
    ]
    if not families:
        shape = problem.default_cells(dim)
        default_sizes = tuple(sorted({max(1, shape[0] // ratio) for ratio in (4, 2, 1)}))
        families = [Family(f"{len(shape)}D", len(shape), sizes or default_sizes)]
    default_label = "" if problem.known.is_extrapolated else ERROR
    return [(_label(family, families) or default_label, family) for family in families]


def _label(family: Family, families: Sequence[Family]) -> str:
    """Return the parameters of the line of a family, and the number of axes if it varies within the panel."""
    (line,) = family.lines
    values = (value if isinstance(value, str) else f"{name} {value:g}" for name, value in line.items())
    axes = {other.dim for other in families if other.title == family.title}
    return joined(*values, f"{family.dim}D" if len(axes) > 1 else None)


def cells(measurement: Measurement) -> int:
    """Return the number of cells along the shortest axis."""
    return int(min(measurement["shape"]))


def by_panel(measurements: Sequence[Measurement]) -> dict[str, dict[str, list[Measurement]]]:
    """Return the runs by panel and line, from the coarsest to the finest grid."""
    return {
        panel: {
            label: sorted(line, key=cells) for label, line in group_by(members, itemgetter("line")).items()
        }
        for panel, members in group_by(measurements, itemgetter("panel")).items()
    }


def by_line(measurements: Sequence[Measurement]) -> list[tuple[str, str, list[Measurement]]]:
    """Return the panel, the name and the runs of each line; see `by_panel`."""
    panels = by_panel(measurements).items()
    return [(panel, label, line) for panel, lines in panels for label, line in lines.items()]


def _has_several_axes(lines: Mapping[str, Sequence[Measurement]]) -> bool:
    """Return True if any grid of a panel has several axes."""
    return any(len(m["shape"]) > 1 for line in lines.values() for m in line)


def order(coarse: Measurement, fine: Measurement) -> float | None:
    """Return the power of the spacing with which the error decreases from one grid to another.

    The result is None if the grids have the same size, or if an error is 0 or unknown.
    """
    errors, sides = (coarse["error"], fine["error"]), (cells(coarse), cells(fine))
    if sides[0] == sides[1] or not all(error is not None and error > 0 for error in errors):
        return None
    return (math.log(errors[0]) - math.log(errors[1])) / math.log(sides[1] / sides[0])


def orders(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Return the orders of each line: over all grids, over the finest two grids, and the expected order."""
    return [
        {
            "panel": panel,
            "line": label,
            "cells": [cells(m) for m in line],
            "order": order(line[0], line[-1]),
            "last_order": order(line[-2], line[-1]),
            "expected_order": line[0]["expected_order"],
        }
        for panel, label, line in by_line(measurements)
        if len(line) > 1
    ]


def tables(measurements: Sequence[Measurement], error_name: str = ERROR) -> list[Table]:
    """Return a table of errors and orders for each panel."""
    title, tables = f"{error_name[0].upper()}{error_name[1:]}", []
    for panel, lines in by_panel(measurements).items():
        rows, has_several_axes = [], _has_several_axes(lines)
        for label, line in lines.items():
            names, between = [label, *[""] * len(line)], [None, *(order(*pair) for pair in pairwise(line))]
            for name, m, observed_order in zip(names, line, between, strict=False):
                error = "unknown" if m["error"] is None else f"{m['error']:.4e}"
                grid = [size(m)] if has_several_axes else []
                rows.append(
                    (
                        name,
                        *grid,
                        f"{cells(m)}",
                        error,
                        "" if observed_order is None else f"{observed_order:.2f}",
                    )
                )
        heads = ("", *(["cells"] if has_several_axes else []), "N", "error", "order")
        note = "N: cells along the shorter side. " if has_several_axes else "N: cells. "
        note += "Order: log(error ratio) / log(ratio of N), relative to the row above."
        heading = f"{measurements[0]['case']}: {panel}"
        tables.append(Table(title, heads, tuple(rows), left=len(heads) - 3, note=note, heading=heading))
    return tables


def verdicts(measurements: Sequence[Measurement]) -> list[str]:
    """Return one sentence on the order of each line."""
    sentences = [
        f"{joined(panel, label)}: no order, because there is only one grid."
        for panel, label, line in by_line(measurements)
        if len(line) == 1
    ]
    for line in orders(measurements):
        name, ns = joined(line["panel"], line["line"]), line["cells"]
        order_over_all, last_order, expected = line["order"], line["last_order"], line["expected_order"]
        if order_over_all is None or last_order is None:
            sentences.append(f"{name}: no order, because an error is 0 or unknown.")
            continue
        sentence = f"{name}: order {order_over_all:.2f} from N = {ns[0]} to {ns[-1]}"
        if len(ns) > 2:
            sentence += f", {last_order:.2f} from {ns[-2]} on"
        if expected is not None:
            sentence += f"; expected {expected}" + (
                " (not reached)" if last_order < expected - ORDER_TOLERANCE else ""
            )
        sentences.append(f"{sentence}.")
    return sentences


def plot(measurements: Sequence[Measurement], error_name: str = ERROR) -> Figure:
    """Return a figure of errors over N, with a panel for each title, and lines of the expected slopes."""
    panels = by_panel(measurements)
    figure, axes = figure_of(len(panels), COLUMNS)
    for number, (ax, (panel, lines)) in enumerate(zip(axes, panels.items(), strict=True)):
        _draw(ax, lines)
        xlabel = "N, cells along the shorter side" if _has_several_axes(lines) else "N, cells"
        ylabel = "" if number % min(COLUMNS, len(panels)) else error_name
        ax.set(xlabel=xlabel, ylabel=ylabel, title=panel)
    return figure


def _draw(ax: Axes, lines: Mapping[str, Sequence[Measurement]]) -> None:
    """Draw the lines of a panel."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator

    from halocline.io.style import doubling

    for number, (label, line) in enumerate(lines.items()):
        with_error = [m for m in line if m["error"]]
        xs, ys = [cells(m) for m in with_error], [m["error"] for m in with_error]
        # lines may coincide, so later lines have smaller markers
        ax.plot(xs, ys, **style(number), markersize=max(3.0, 8.0 - 1.5 * number), label=label)
    ax.set_yscale("log")
    runs = [m for line in lines.values() for m in line]
    for expected in sorted({line[0]["expected_order"] for line in lines.values()} - {None}):
        same_order = [m for m in runs if m["error"] and m["expected_order"] == expected]
        if same_order:
            xs = [function(map(cells, same_order)) for function in (min, max)]
            # the reference line is above all errors
            height = 1.5 * max(m["error"] * cells(m) ** expected for m in same_order)
            draw_ideal(ax, xs, [height / n**expected for n in xs], f"slope -{expected}")
    low, high = ax.get_ylim()
    if high / low < SMALL_RANGE:
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        no_thresholds = (math.inf, math.inf)  # every mark has a label
        ax.yaxis.set_major_formatter(
            LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=no_thresholds)
        )
    doubling(ax, sorted(set(map(cells, runs))))
    if any(ax.get_legend_handles_labels()[1]):
        ax.legend(loc="lower left")


def check_proportion(problem: Problem, dim: int, n: int) -> None:
    """Raise InputError if a grid with n cells along the first axis cannot have the proportions of the case.

    Errors on grids with different proportions are not comparable.
    """
    shape = problem.default_cells(dim)
    multiple = math.lcm(*(shape[0] // math.gcd(shape[0], cells) for cells in shape))
    if n % multiple:
        raise InputError(
            f"--n {n}: expected a multiple of {multiple} for {dim} axes, because all grids have the "
            f"proportions of {' x '.join(map(str, shape))} cells"
        )
