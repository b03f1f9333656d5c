"""Extrapolation of results of a steady state from several grids, for cases without an exact solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from halocline.errors import RunError
from halocline.io.style import INK, gridded, logarithmic
from halocline.io.table import Table
from halocline.lang.values import as_number
from halocline.problems.names import checked_mapping
from halocline.problems.problem import Problem
from halocline.study.measurement import Measurement
from halocline.study.reporting.errors import ORDER_TOLERANCE, by_line, cells
from halocline.study.reporting.plots import draw_ideal, figure_of, style
from halocline.study.reporting.quantities import size, text, wrap_notes
from halocline.study.richardson import MIN_GRIDS, SAFETY, SAFETY_UNKNOWN, Trend, limit
from halocline.words import joined

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MIN_SPACING_RATIO = 1.3  # minimum ratio of two spacings, as recommended by Celik et al. 2008
MARK = "*"  # mark of an index that uses the expected order
NO_ORDER_REASONS = {  # reasons for a missing order, as subject and verb
    Trend.OSCILLATES: "the number oscillates",
    Trend.DOES_NOT_FALL: "the differences do not decrease",
    Trend.WITHIN_NOISE: "the number changes only within the error of the iterations",
}
NumberResult = dict[str, Any]


def facts(problem: Problem) -> dict[str, Any]:
    """Return the data for the report of a steady state: the grid spacing, and facts about the numbers.

    The errors of numerical derivatives are expanded in powers of the spacing. On a stretched axis, the
    spacing is that of the mapped coordinate.
    """
    names, values = problem.known, problem.values
    extrapolation = names.extrapolated
    assert extrapolation is not None
    published = checked_mapping(
        extrapolation.published(problem.shape, values), "published(shape, values)", "{'Nu': 2.238}"
    )
    extrapolated = {
        "names": list(extrapolation.names),
        "published": {name: as_number(value, f"published {name}") for name, value in published.items()},
        "source": extrapolation.source,
        "noise": as_number(extrapolation.noise(values), "noise(values)"),
        "steps": names.steps,
    }
    return {"spacing": problem.grid.even_spacing(0), "extrapolated": extrapolated}


def numbers(measurement: Measurement) -> dict[str, float]:
    """Return the numbers of a run that the report extrapolates, by name.

    Raises
    ------
    RunError
        The final state of the run is not steady, or a number is not finite.
    """
    extrapolation = measurement["extrapolated"]
    if extrapolation["steps"] is not None and measurement["steps"] >= extrapolation["steps"]:
        raise RunError(
            f"{measurement['command']}:\nthe run is not steady after {measurement['steps']:,} steps, so its "
            "numbers cannot be extrapolated. Use --every to print the residuals of the run."
        )
    values = {name: measurement["diagnostics"][name] for name in extrapolation["names"]}
    missing_names = [name for name, value in values.items() if value is None]
    if missing_names:
        raise RunError(f"{measurement['command']}:\nthese numbers are not finite: {joined(*missing_names)}")
    return values


def numbers_text(values: Mapping[str, float]) -> str:
    """Return the extrapolated numbers of a run as one line of text."""
    return joined(*(f"{name} {value:.6g}" for name, value in values.items()))


def limits(measurements: Sequence[Measurement]) -> list[NumberResult]:
    """Return the order, limit and index of each number, for each group of three successive grids.

    A measurement contains the numbers, the result of `facts`, and the facts of its line. The results of
    coarse grids come first.
    """
    results = []
    for panel, label, line in by_line(measurements):
        for name, grids in product(_number_names(line), zip(line, line[1:], line[2:], strict=False)):
            spacings = [m["spacing"] for m in grids]
            if not spacings[0] > spacings[1] > spacings[2]:
                continue  # a grid was measured twice
            fine, values = grids[-1], [m[name] for m in grids]
            expected, extrapolation = fine["expected_order"], fine["extrapolated"]
            result = asdict(limit(values, spacings, expected, extrapolation["noise"]))
            extrapolated, published = result.pop("value"), extrapolation["published"].get(name)
            is_compared = published and extrapolated is not None
            results.append(
                {
                    "panel": panel,
                    "line": label,
                    "name": name,
                    "cells": [cells(m) for m in grids],
                    "spacings": spacings,
                    "values": values,
                    **result,
                    "expected_order": expected,
                    "extrapolated": extrapolated,
                    "published": published,
                    "difference": extrapolated / published - 1 if is_compared else None,
                }
            )
    return results


def _number_names(line: Sequence[Measurement]) -> list[str]:
    """Return the names of the extrapolated numbers of a line."""
    names: list[str] = line[-1]["extrapolated"]["names"]
    return names


def _line_results(results: Sequence[NumberResult], panel: str, label: str) -> list[NumberResult]:
    return [number for number in results if (number["panel"], number["line"]) == (panel, label)]


def _finest(results: Sequence[NumberResult]) -> dict[str, NumberResult]:
    """Return the results for the finest three grids, by the name of the number."""
    return {result["name"]: result for result in results}  # finer grids replace coarser grids


def tables(measurements: Sequence[Measurement], results: Sequence[NumberResult]) -> list[Table]:
    """Return two tables for each line: the numbers on each grid, and their extrapolation."""
    tables = []
    for panel, label, line in by_line(measurements):
        line_results = _line_results(results, panel, label)
        heading = f"{line[0]['case']}: {joined(panel, label)}"
        values = tuple((name, *(f"{m[name]:.6g}" for m in line)) for name in _number_names(line))
        heads = ("", *(f"{size(m)}\nh = {m['spacing']:.4g}" for m in line))
        tables.append(Table("Numbers on each grid", heads, values, heading=heading))
        if line_results:
            has_several, source = len(line) > MIN_GRIDS, line[-1]["extrapolated"]["source"]
            tables.append(
                _limits_table(line_results, f"{heading}, extrapolated", several=has_several, source=source)
            )
    return tables


def _limits_table(results: Sequence[NumberResult], heading: str, *, several: bool, source: str) -> Table:
    """Return the table of extrapolated numbers, with published numbers if there are any.

    If `several` is true, the results come from several groups of three successive grids.
    """
    has_published = any(number["published"] for number in results)
    columns: list[tuple[str, Callable[[NumberResult], str]]] = [
        *([("N", lambda number: ", ".join(map(str, number["cells"])))] if several else []),
        ("ratio", lambda number: text(number["ratio"])),
        ("order", lambda number: text(number["order"], ".2f") or number["trend"]),
        ("extrapolated", lambda number: text(number["extrapolated"], ".6g")),
        ("index %", lambda number: _percent(number["index"]) + MARK * (number["order"] is None)),
        ("range", lambda number: text(number["range_expected"], ".2f")),
    ]
    if has_published:
        columns.append(("published", lambda number: text(number["published"], ".6g")))
        columns.append(("difference %", lambda number: _percent(number["difference"], "+.2f")))
    names = ["", *(number["name"] for number in results)]
    names = ["" if name == before else name for before, name in pairwise(names)]
    rows = tuple(
        (name, *(cell(number) for _, cell in columns)) for name, number in zip(names, results, strict=True)
    )
    expected = results[0]["expected_order"]
    notes = [
        "ratio: difference between the coarser two grids, divided by the difference between the finer two.",
        f"order: observed order (Celik et al. 2008). The expected order is {expected}.",
        f"index: grid-convergence index of the finest grid, which is {SAFETY:g} times the estimated error of "
        "this grid (Roache 1994).",
        "range: index of the coarser two grids, divided by the index of the finer two grids and by "
        f"r^{expected}. It is 1 in the asymptotic range.",
    ]
    if any(number["order"] is None for number in results):
        notes.append(
            f"{MARK}: the order is unknown. The index uses order {expected} and a factor of "
            f"{SAFETY_UNKNOWN:g}."
        )
    if any(number["trend"] == Trend.WITHIN_NOISE for number in results):
        notes.append("within noise: the finer two grids differ only within the error of the iterations.")
    if has_published:
        notes.append(f"published: {source}. difference: extrapolated number / published number - 1.")
    title = "Extrapolated from three successive grids" if several else "Extrapolated from these grids"
    heads = ("", *(head for head, _ in columns))
    return Table(title, heads, rows, left=2 if several else 1, note=wrap_notes(*notes), heading=heading)


def _percent(share: float | None, form: str = ".2g") -> str:
    """Return a share in percent as text without a percent sign."""
    if share is None:
        return ""
    percent = 100.0 * share
    return f"{percent:.0f}" if form == ".2g" and percent >= 10 else f"{percent:{form}}"


def verdicts(measurements: Sequence[Measurement], results: Sequence[NumberResult]) -> list[str]:
    """Return sentences on the asymptotic range of each line, and on the extrapolation of each number."""
    sentences = []
    for panel, label, line in by_line(measurements):
        line_results = _finest(_line_results(results, panel, label))
        finest = size(line[-1])
        if not line_results:
            sentences.append(
                f"{joined(panel, label)}: no order, because there are no {MIN_GRIDS} successive grids with "
                "different spacings."
            )
            continue
        sentences += [f"{joined(panel, label)}: {_range_text(list(line_results.values()))}"]
        sentences += [f"{name}: {_result_text(number, finest)}" for name, number in line_results.items()]
        for coarse, fine in pairwise(line):
            if (ratio := coarse["spacing"] / fine["spacing"]) < MIN_SPACING_RATIO:
                sentences.append(
                    f"The spacings of {size(coarse)} and {size(fine)} differ only by a factor of "
                    f"{ratio:.2f}, so orders are uncertain. A factor of at least {MIN_SPACING_RATIO} is "
                    "recommended."
                )
    return sentences


def _range_text(results: Sequence[NumberResult]) -> str:
    """Return a sentence on the asymptotic range of a line, as text after a colon."""
    expected = results[0]["expected_order"]
    deviating_numbers = [
        f"{number['name']} ({number['trend'] if number['order'] is None else format(number['order'], '.2f')})"
        for number in results
        if number["trend"] != Trend.WITHIN_NOISE
        and (number["order"] is None or abs(number["order"] - expected) > ORDER_TOLERANCE)
    ]
    if all(number["trend"] == Trend.WITHIN_NOISE for number in results):
        return "no number changes from grid to grid by more than the error of the iterations."
    if not deviating_numbers:
        return f"the grids are in the asymptotic range, with orders within {ORDER_TOLERANCE:g} of {expected}."
    is_above = any(
        number["order"] is not None and number["order"] > expected + ORDER_TOLERANCE for number in results
    )
    return (
        f"the grids are not in the asymptotic range of order {expected}. Numbers with other orders: "
        f"{', '.join(deviating_numbers)}. The indices are only estimates."
        + (f" They are probably too small where the order is above {expected}." if is_above else "")
    )


def _result_text(result: NumberResult, finest: str) -> str:
    """Return a sentence on the extrapolation of a number, as text after a colon."""
    expected, index = result["expected_order"], _percent(result["index"])
    index_text = f"index {index} % on {finest}" if index else f"no index, because the number is 0 on {finest}"
    if result["order"] is None:
        order_text = f" (with order {expected} and a factor of {result['safety']:g})" if index else ""
        reason = NO_ORDER_REASONS[result["trend"]]
        return f"{reason}, so order and limit are unknown; {index_text}{order_text}."
    sentence = f"{result['extrapolated']:.6g} at spacing 0, order {result['order']:.2f}, {index_text}"
    if result["difference"] is not None:
        deviation = _percent(abs(result["difference"]), ".2f")
        sentence += f"; {deviation} % from the published {result['published']:g}"
    return f"{sentence}."


def plot(measurements: Sequence[Measurement], results: Sequence[NumberResult]) -> Figure:
    """Return a figure with two panels for each line of at least three grids.

    The first panel shows the differences of the numbers from their limits as a function of the squared
    spacing. The second panel shows the relative distances from the limits as a function of the spacing.
    """
    lines = [line for line in by_line(measurements) if _line_results(results, *line[:2])]
    figure, axes = figure_of(2 * len(lines), 2)
    for number_axes, distance_axes, (panel, label, line) in zip(axes[::2], axes[1::2], lines, strict=True):
        line_results = _finest(_line_results(results, panel, label))
        _draw_numbers(number_axes, line, line_results)
        _draw_distances(distance_axes, line, line_results)
        number_axes.set_title(joined(panel, label))
    return figure


def _draw_numbers(ax: Axes, line: Sequence[Measurement], results: Mapping[str, NumberResult]) -> None:
    """Draw the differences of the numbers from their limits, in percent.

    If a number has no limit, the reference is its value on the finest grid.
    """
    xs = [m["spacing"] ** 2 for m in line]
    for number, (name, result) in enumerate(results.items()):
        limit_ = result["extrapolated"]
        reference = result["values"][-1] if limit_ is None else limit_
        if not reference:
            continue
        ys = [100.0 * (m[name] / reference - 1.0) for m in line]
        trend_text = f" ({result['trend']}), relative to {size(line[-1])}"
        ax.plot(xs, ys, **style(number), label=name + ("" if limit_ is not None else trend_text))
        if limit_ is not None:
            ax.plot([xs[-1], 0.0], [ys[-1], 0.0], ":", color=style(number)["color"])
        if result["published"]:
            deviation = 100.0 * (result["published"] / reference - 1.0)
            ax.plot(0.0, deviation, **style(number), markerfacecolor="none", clip_on=False, zorder=3)
    if any(result["published"] for result in results.values()):
        ax.plot([], [], "o", color=INK, markerfacecolor="none", label="published")
    ax.set_xlim(left=0.0)
    ax.set(xlabel="h²", ylabel="difference from the extrapolated number, %")
    gridded(ax)
    ax.legend()


def _draw_distances(ax: Axes, line: Sequence[Measurement], results: Mapping[str, NumberResult]) -> None:
    """Draw the distances of the numbers from their limits, and the expected slope."""
    xs, highest = [m["spacing"] for m in line], 0.0
    for number, (name, result) in enumerate(results.items()):
        if result["extrapolated"]:
            ys = [abs(m[name] / result["extrapolated"] - 1.0) for m in line]
            ax.plot(xs, ys, **style(number), label=name)
            highest = max(highest, *ys)
    ax.set_xscale("log")
    if highest:
        order = line[0]["expected_order"]
        draw_ideal(ax, xs, [1.5 * highest * (x / xs[0]) ** order for x in xs], f"slope {order}")
        logarithmic(ax, lambda value: f"{value:.0e}")
        ax.legend()
    ax.set_xticks(xs, [f"{x:.3g}\n{size(m)}" for x, m in zip(xs, line, strict=True)])
    ax.minorticks_off()
    ax.set(xlabel="h", title="Relative distance from the extrapolated number")
    gridded(ax)
