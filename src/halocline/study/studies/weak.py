"""Weak scaling: as many cells for each rank (Pekkilä et al. 2022, Fig. 13; the cavity code, Tables 1, 2)."""

from __future__ import annotations

from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.labels import SAME_BITS, of_the_paper, whole
from halocline.study.reporting.published import ASTAROTH, published
from halocline.study.reporting.report import Block, Column, Contents, Figure, Group, Panel, Rows
from halocline.study.study import Study
from halocline.words import counted


def efficiency(measurement: Measurement, group: Group) -> float:
    """The time of a step on the fewest ranks of as many threads over this."""
    return q.each(group.alike(measurement).base) / q.each(measurement)


def _note(group: Group) -> str:
    how = {1: "Axes are doubled in turn.", 2: "The axes that are cut are longer."}
    grows = how.get(group.one.get("growth") or 0, "All axes are longer.")
    said = f"{grows} Efficiency is relative to the fewest ranks of as many threads."
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
                        *(c.OF_FORMULA, c.OF_BANDWIDTH, c.OF_CAVITY, c.ENERGY),
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
    of=whole,
)
STUDY = Study(
    "weak",
    title="Weak scaling",
    about="As much work for each of more and more ranks.",
    help="N cells a rank along the first axis. With growth 1 the axes of the grid are doubled in turn, as in "
    "Fig. 13 of Pekkilä et al. 2022; with growth 2 it grows along the axes that it is cut along (the cavity "
    "code, Tables 1 and 2).",
    examples=(
        "halocline study weak mhd-benchmark --n 64 --ranks 1,2,4",
        "halocline study weak cavity --n 32 --ranks 1,2 --growth 2 --decomposition 1d-z",
    ),
    contents=(SAME_BITS, WEAK),
    options=(("--growth 1|2", "How the grid grows with the ranks.", 1),),
    grows=True,
    formula=True,
)
