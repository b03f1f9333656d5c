"""Strong scaling with stencils of several orders (Pekkilä et al. 2022, Fig. 14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from halocline.study.measuring.command import Measurement
from halocline.study.reporting.plots import draw_ideal_scaling, panels, style
from halocline.study.reporting.published import ASTAROTH, MHD_CASE
from halocline.study.reporting.quantities import (
    baseline,
    by,
    layout,
    nanoseconds,
    ns,
    percent,
    size,
    units,
    wrapped,
)
from halocline.study.reporting.table import Table
from halocline.study.reporting.theory import Theory
from halocline.study.studies.strong import efficiency

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def tables(measurements: Sequence[Measurement], theory: Theory) -> list[Table]:
    """One for each size: orders in rows, layouts in columns."""
    made = []
    for _, found in by(measurements, lambda m: m["cells"]):
        one = found[0]
        layouts = list(dict.fromkeys(layout(m) for m in sorted(found, key=lambda m: (units(m), m["ranks"]))))
        rows = []
        for order, own in by(found, lambda m: m["order"]):
            base, cells = baseline(own), {layout(m): m for m in own}
            times = [
                f"{nanoseconds(ns(m))}  {percent(efficiency(m, base)):>5}" if (m := cells.get(each)) else ""
                for each in layouts
            ]
            moved = sum(
                weight for direction, weight in theory.travels[order].traffic.weights if _side(direction)
            )
            rows.append((f"{order}", f"{base['flops_per_cell_step']:,.0f}", f"{moved:,}", *times))
        heads = (
            "order",
            "operations a\ncell and step",
            "bytes of\nhalo",
            *(each.replace(" of ", "\nof ") for each in layouts),
        )
        notes = ["ns a cell and step, and efficiency. Bytes of halo: of a step and one cell of each side."]
        if one["case"] == MHD_CASE:
            notes.append(
                f"{ASTAROTH}, 256³: second order scales to 32 devices, eighth order is bound by the exchange "
                "from 8 on."
            )
        made.append(
            Table(
                "Orders",
                heads,
                tuple(rows),
                note=wrapped(*notes),
                heading=f"{size(one)}: orders of differences",
            )
        )
    return made


def verdicts(measurements: Sequence[Measurement]) -> list[str]:
    """For each size, what the lowest and highest order keep of their efficiency."""
    said = []
    for _, found in by(measurements, lambda m: m["cells"]):
        most = max(map(units, found))
        kept = []
        for order, own in by(found, lambda m: m["order"]):
            base = baseline(own)
            last = min((m for m in own if units(m) == most), key=ns)
            if last is not base:
                kept.append(f"{percent(efficiency(last, base))} at order {order}")
        if len(kept) > 1:
            said.append(f"{size(found[0])} on {most}: efficiency {', '.join(kept)}.")
    return said


def plot(measurements: Sequence[Measurement]) -> Figure:
    """A panel for each size and number of threads, a line for each order."""
    figure, each = panels(measurements, "Orders of differences")
    for ax, found in each:
        for number, (order, own) in enumerate(by(found, lambda m: m["order"])):
            line = sorted(own, key=units)
            ax.plot([units(m) for m in line], [ns(m) for m in line], **style(number), label=f"order {order}")
            draw_ideal_scaling(ax, own)
    return figure


def _side(direction: Sequence[int]) -> bool:
    return sum(map(abs, direction)) == 1
