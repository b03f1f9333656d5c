"""Weak scaling: as many cells for each rank (Pekkilä et al. 2022, Fig. 13; the cavity code's Tables 1 and 2)."""

from __future__ import annotations

from halocline.study.measuring.command import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.published import ASTAROTH, published
from halocline.study.reporting.report import Block, Column, Contents, Figure, Group, Panel, Rows
from halocline.study.reporting.table import counted
from halocline.study.studies.strong import of_the_paper


def efficiency(measurement: Measurement, group: Group) -> float:
    """The time of a step on the fewest ranks of as many threads over this."""
    return q.each(group.alike(measurement).base) / q.each(measurement)


def _note(group: Group) -> str:
    said = "Axes are doubled in turn. Efficiency is relative to the fewest ranks of as many threads."
    if of_the_paper(group):
        (ns,) = published("astaroth-fig10").values("ns_per_cell_step", devices=1)
        said += f"\n{ASTAROTH}: {ns:g} ns on one V100."
    return said


def _sentences(group: Group) -> list[str]:
    said = []
    for own in group.by(lambda m: (m["n"], m["threads"])):
        base, last = own.base, own.last
        if last is not base:
            kept = f"{q.percent(efficiency(last, own))} of the efficiency of {q.layout(base)}"
            said.append(f"{own.one['n']} a rank: {q.layout(last)} keep {kept}.")
    return said


def _label(line: Group, panel: Group) -> str:
    several = len({m["threads"] for m in panel.found}) > 1
    return f"{line.one['n']} a rank" + f", {counted(line.one['threads'], 'thread')} each" * several


WEAK = Contents(
    blocks=(
        Block(
            (
                Rows(
                    "Time of a step",
                    (
                        *(c.LAYOUT, c.SIZE, c.EACH, c.NS),
                        Column("\nefficiency", lambda m, g: q.percent(efficiency(m, g))),
                        *(c.OF_FORMULA, c.OF_BANDWIDTH, c.ENERGY),
                    ),
                    order=lambda m: (m["threads"], q.units(m)),
                    note=_note,
                    left=2,
                ),
            ),
            by=lambda m: m["n"],
            heading=lambda g: f"{g.one['n']} cells a rank along the first axis: {q.named(g.one)}",
        ),
    ),
    figures=(
        Figure(
            "weak.png",
            (
                Panel(
                    lambda m, g: q.each(m),
                    "Weak scaling",
                    "ns a step and cell of a rank",
                    line=lambda m: (m["n"], m["threads"]),
                    label=_label,
                    ideal=lambda x, line: q.each(line.base),
                    log=False,
                ),
            ),
        ),
    ),
    sentences=(_sentences,),
    where=lambda m: m["only"] is None and m["halo"] == "read",
)
