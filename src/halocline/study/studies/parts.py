"""Study of a step and its parts, which are timed separately (Pekkilä et al. 2022, Fig. 12)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from halocline.io.table import Table
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.plots import draw
from halocline.study.reporting.reference import published_rows, with_notes
from halocline.study.reporting.report import Column, Contents, Group, by_layout, row_table
from halocline.study.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# values of --only and --halo by the name of the timed part
PARTS = {
    "whole step": (None, "read"),
    "compute alone": ("compute", "read"),
    "exchange alone": ("exchange", "read"),
    "exchange of all edges": ("exchange", "edges"),
    "exchange with corners": ("exchange", "uniform"),
    "synchronisation": ("synchronisation", "read"),
}
WHOLE, COMPUTE, EXCHANGE, EDGES, CORNERS, SYNCHRONISATION = PARTS
KINDS = {kind: name for name, kind in PARTS.items()}
# records of earlier versions may lack all other parts
REQUIRED_PARTS = {PARTS[name] for name in (WHOLE, COMPUTE, EXCHANGE, CORNERS)}
NOTE = (
    "Times are in ns per cell and step.",
    "All edges: exchange of all sides and edges of all fields. All corners: exchange of corners as well.",
    "Synchronisation: barrier of all devices and ranks after each sweep. Whole steps have no such barrier.",
)


def _kind(measurement: Measurement) -> tuple[str | None, str]:
    return measurement["only"], measurement["halo"]


def times(group: Group) -> dict[str, float]:
    """Return the times of the parts on one layout, in nanoseconds, by the names in PARTS."""
    return {KINDS[_kind(m)]: q.ns(m) for m in group.members}


def overhead(parts: dict[str, float]) -> float:
    """Return the time of a step divided by the longer of computation and exchange, minus 1."""
    return parts[WHOLE] / max(parts[COMPUTE], parts[EXCHANGE]) - 1


def share(parts: dict[str, float], part: str, subtracted_part: str | None = None) -> float | None:
    """Return the time of a part, minus the time of another part, as a share of the whole step.

    Without another part, nothing is subtracted. The result is None if a part was not timed.
    """
    if part not in parts or (subtracted_part is not None and subtracted_part not in parts):
        return None
    return (parts[part] - (parts[subtracted_part] if subtracted_part else 0.0)) / parts[WHOLE]


def _tables(group: Group) -> Iterator[Table]:
    columns = (
        *(_time(WHOLE, "whole\nstep"), _time(COMPUTE, "compute\nalone")),
        *(_time(EXCHANGE, "exchange\nalone"), _time(EDGES, "all\nedges"), _time(CORNERS, "all\ncorners")),
        _time(SYNCHRONISATION, "synchro-\nnisation"),
    )
    shares = (
        Column("excess over\nlonger part", lambda m, g: f"{overhead(times(g)):+.0%}"),
        Column("synchro-\nnisation", lambda m, g: q.text(share(times(g), SYNCHRONISATION), ".2%")),
        Column("added by\nedges", lambda m, g: q.text(share(times(g), EDGES, EXCHANGE), "+.1%")),
        Column("added by\ncorners", lambda m, g: q.text(share(times(g), CORNERS, EDGES), "+.1%")),
    )
    for size in group.split(q.grid):
        layouts = [(layout.first, layout) for layout in size.split(by_layout)]
        yield row_table(
            "A step and its parts",
            (c.LAYOUT, c.units(size), *columns),
            layouts,
            note=q.wrap_notes(*NOTE),
            heading=f"{q.size(size.first)}: computation and exchange, timed separately",
        )
        yield row_table(
            "Shares of the whole step",
            (c.LAYOUT, c.units(size), *shares),
            layouts,
            published=published_rows("parts", size),
            note=with_notes(
                "parts",
                size,
                "Excess: time of a step divided by the longer of computation and exchange, minus 1.",
            ),
        )


def _figure(group: Group) -> Figure | None:
    number = list(KINDS).index
    panels = c.panels_of_sizes(group, lambda m: number(_kind(m)), lambda line: KINDS[_kind(line.first)])
    return draw(panels, title="A step and its parts", legend_columns=3)


def _sentences(group: Group) -> Iterator[str]:
    """Yield sentences for each size on the longer part of a step, on the most cores or devices."""
    for size in group.split(q.grid):
        last = size.split(by_layout)[-1]
        parts = times(last)
        longer = max((COMPUTE, EXCHANGE), key=lambda name: parts[name])
        ratio, excess = parts[EXCHANGE] / parts[COMPUTE], overhead(parts)
        excess_text = f"{excess:.0%} longer" if excess >= 0.005 else "no longer"
        yield (
            f"{q.size(last.first)} on {q.layout(last.first)}: the exchange takes {ratio:.2f} times as long "
            f"as computation. A step takes {excess_text} than {longer}."
        )


def _time(name: str, head: str) -> Column:
    return Column(head, lambda m, g: q.nanoseconds(times(g).get(name)))


def _complete_layouts(group: Group) -> Group:
    """Return the measurements on the grids and layouts for which all required parts were timed."""
    measurements = c.with_first_order(group)

    def key(m: Measurement) -> Any:
        return q.grid(m), by_layout(m)

    timed_parts = {key(layout.first): set(map(_kind, layout.members)) for layout in measurements.split(key)}
    return measurements.select(lambda m: timed_parts[key(m)] >= REQUIRED_PARTS and _kind(m) in KINDS)


PARTS_OF_A_STEP = Contents(_tables, _sentences, {"parts.png": _figure}, _complete_layouts)


VARIANTS = tuple({"only": only, "halo": halo} for only, halo in PARTS.values())
STUDY = Study(
    "parts",
    title="A step and its parts",
    about="Time whole steps and their parts: computation, exchange and synchronisation.",
    help="The study times the parts for each combination of ranks and threads, as in Fig. 12 of Pekkilä et "
    "al. 2022. It times the exchange with and without edges and corners.",
    examples=("halocline study parts mhd-benchmark --n 64 --ranks 1,2",),
    contents=(PARTS_OF_A_STEP,),
    variants=VARIANTS,
)
