"""A step and its parts: whole, computing alone, the exchange alone, the exchange with corners too (Pekkilä et
al. 2022, Fig. 12)."""

from __future__ import annotations

from typing import Any

from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.labels import own_order, size_label
from halocline.study.reporting.published import ASTAROTH, MHD_CASE, published
from halocline.study.reporting.report import (
    Block,
    Column,
    Contents,
    Figure,
    Group,
    Panel,
    Rows,
    by_layout,
)
from halocline.study.study import Study

# what is timed, by --only and --halo
PARTS = {
    "whole step": (None, "read"),
    "compute alone": ("compute", "read"),
    "exchange alone": ("exchange", "read"),
    "exchange with corners": ("exchange", "uniform"),
}
WHOLE, COMPUTE, EXCHANGE, CORNERS = PARTS
KINDS = {kind: name for name, kind in PARTS.items()}
LAYOUT = (by_layout, lambda group: group.one)


def times(group: Group) -> dict[str, float]:
    """Nanoseconds of the parts of one layout, by the names of PARTS."""
    return {KINDS[m["only"], m["halo"]]: q.ns(m) for m in group.found}


def overhead(parts: dict[str, float]) -> float:
    """What a step takes beyond the longer of computing and exchange: nothing, were each hidden behind the
    other."""
    return parts[WHOLE] / max(parts[COMPUTE], parts[EXCHANGE]) - 1


def corners(parts: dict[str, float]) -> float:
    """What edges and corners add to the exchange, as a share of it."""
    return parts[CORNERS] / parts[EXCHANGE] - 1


def _paper(group: Group) -> list[tuple[str, ...]]:
    if group.one["case"] != MHD_CASE:
        return []
    shares = [published("astaroth-fig12").values("share", quantity=each) for each in ("overhead", "corners")]
    ranges = ["to ".join(f"{s:.2%} ".replace(".00%", "%") for s in each).strip() for each in shares]
    return [("paper, 256³", "1-64 V100", "", "", "", "", *ranges)]


def _note(group: Group) -> str:
    said = ["ns a cell and step. Beyond the longer: the whole step over the longer of compute and exchange."]
    if group.one["case"] == MHD_CASE:
        said.append(f"Paper: {ASTAROTH}; what corners add there is of the whole step.")
    return q.wrapped(*said)


def _sentences(group: Group) -> list[str]:
    """Return a sentence for each size on the longest part on the most devices."""
    said = []
    for found in group.by(q.grid):
        last = found.by(LAYOUT[0])[-1]
        parts = times(last)
        longer = max((COMPUTE, EXCHANGE), key=lambda name: parts[name])
        ratio, more = parts[EXCHANGE] / parts[COMPUTE], overhead(parts)
        step = f"{more:.0%} more than that" if more >= 0.005 else "no more than that"
        said.append(
            f"{q.size(last.one)} on {q.layout(last.one)}: {longer} takes longer (the exchange {ratio:.2f} "
            f"times as long as computing), and a step {step}."
        )
    return said


def _time(name: str, head: str) -> Column:
    return Column(head, lambda m, g: q.nanoseconds(times(g)[name]))


def _complete(group: Group) -> Group:
    """Return the measurements of the grids and layouts whose parts were all timed."""
    own = own_order(group)

    def place(m: Measurement) -> Any:
        return q.grid(m), by_layout(m)

    timed = {key: {(m["only"], m["halo"]) for m in found} for key, found in q.by(own.found, place)}
    return own.those(lambda m: timed[place(m)] >= KINDS.keys() and (m["only"], m["halo"]) in KINDS)


PARTS_OF_A_STEP = Contents(
    blocks=(
        Block(
            (
                Rows(
                    "A step and its parts",
                    (
                        *(c.LAYOUT, c.UNITS),
                        *(_time(WHOLE, "whole\nstep"), _time(COMPUTE, "compute\nalone")),
                        *(_time(EXCHANGE, "exchange\nalone"), _time(CORNERS, "with\ncorners")),
                        Column("beyond the\nlonger", lambda m, g: f"{overhead(times(g)):+.0%}"),
                        Column("corners\nadd", lambda m, g: f"{corners(times(g)):+.0%}"),
                    ),
                    of=LAYOUT,
                    beside=_paper,
                    note=_note,
                ),
            ),
            by=q.grid,
            heading=lambda g: f"{q.size(g.one)}: compute and exchange apart",
        ),
    ),
    figures=(
        Figure(
            "parts.png",
            (
                Panel(
                    lambda m, g: q.ns(m),
                    size_label,
                    "ns a cell and step",
                    line=lambda m: list(PARTS.values()).index((m["only"], m["halo"])),
                    label=lambda line, panel: KINDS[line.one["only"], line.one["halo"]],
                ),
            ),
            by=lambda m: (q.grid(m), m["threads"]),
            title="A step and its parts",
            columns=5,
        ),
    ),
    sentences=(_sentences,),
    of=_complete,
)


VARIANTS = tuple({"only": only, "halo": halo} for only, halo in PARTS.values())
STUDY = Study(
    "parts",
    title="A step and its parts",
    about="Whole steps, computing alone, the exchange alone, and the exchange with corners too.",
    help="On each number of ranks and threads, as Fig. 12 of Pekkilä et al. 2022.",
    examples=("halocline study parts mhd-benchmark --n 64 --ranks 1,2",),
    contents=(PARTS_OF_A_STEP,),
    variants=VARIANTS,
)
