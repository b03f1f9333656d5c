"""Weak scaling of a case: as many cells for each rank (Pekkilä et al. 2022, Fig. 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from halocline.study.measuring.command import Measurement
from halocline.study.reporting.plots import draw_ideal, figure_of, legend, style, times_over_units
from halocline.study.reporting.published import ASTAROTH, MHD_CASE, MHD_NS, MHD_ORDER
from halocline.study.reporting.quantities import (
    baseline,
    by,
    layout,
    named,
    nanoseconds,
    ns,
    percent,
    size,
    subdomains,
    units,
    updates,
)
from halocline.study.reporting.table import Table, counted
from halocline.study.reporting.theory import Theory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def each(measurement: Measurement) -> float:
    """Nanoseconds of a step and a cell of one rank: what stays as it is where scaling is ideal."""
    return ns(measurement) * subdomains(measurement)


def efficiency(measurement: Measurement, base: Measurement) -> float:
    """The time of a step on the fewest ranks over this."""
    return each(base) / each(measurement)


def tables(measurements: Sequence[Measurement], theory: Theory) -> list[Table]:
    """One for each size of a rank's share."""
    made = []
    energy = any(m["joules_per_cell_step"] for m in measurements)
    for n, found in by(measurements, lambda m: m["n"]):
        one, rows = found[0], []
        for _, own in by(found, lambda m: m["threads"]):
            base = baseline(own)
            for m in sorted(own, key=units):
                told = theory.ns(m, own)
                share = None if told is None else told / ns(m)
                row = [
                    *(layout(m), size(m), nanoseconds(each(m)), nanoseconds(ns(m))),
                    *(percent(efficiency(m, base)), percent(share), percent(m["share_of_bound"])),
                ]
                rows.append((*row, updates(m)) if energy else tuple(row))
        heads = (
            *("", "cells", "ns a step and\ncell of a rank", "ns a cell\nand step", "\nefficiency"),
            *("of the\nformula", "of the\nbandwidth", *(["million cells\na joule"] if energy else [])),
        )
        note = "Axes are doubled in turn. Efficiency is relative to the fewest ranks of as many threads."
        if one["case"] == MHD_CASE and one["order"] == MHD_ORDER:
            note += f"\n{ASTAROTH}: {MHD_NS:g} ns on one V100."
        made.append(
            Table(
                "Time of a step",
                heads,
                tuple(rows),
                left=2,
                note=note,
                heading=f"{n} cells a rank along the first axis: {named(one)}",
            )
        )
    return made


def verdicts(measurements: Sequence[Measurement]) -> list[str]:
    """What the study shows, a sentence each."""
    said = []
    for (n, _), found in by(measurements, lambda m: (m["n"], m["threads"])):
        base, last = baseline(found), max(found, key=units)
        if last is not base:
            kept = f"{percent(efficiency(last, base))} of the efficiency of {layout(base)}"
            said.append(f"{n} a rank: {layout(last)} keep {kept}.")
    return said


def plot(measurements: Sequence[Measurement]) -> Figure:
    """A line for each size of a share and number of threads."""
    figure = figure_of()
    ax = figure.subplots()
    several = len({m["threads"] for m in measurements}) > 1
    for number, ((n, threads), found) in enumerate(by(measurements, lambda m: (m["n"], m["threads"]))):
        line, base = sorted(found, key=units), baseline(found)
        what = f"{n} a rank" + (f", {counted(threads, 'thread')} each" if several else "")
        xs = [units(m) for m in line]
        ax.plot(xs, [each(m) for m in line], **style(number), label=what)
        draw_ideal(ax, xs, [each(base)] * len(xs))
    times_over_units(ax, measurements, "ns a step and cell of a rank")
    ax.set_yscale("linear")
    ax.set_ylim(0, None)
    ax.set_title("Weak scaling")
    legend(figure, ax, 3)
    return figure
