"""Strong scaling with stencils of several orders (Pekkilä et al. 2022, Fig. 14)."""

from __future__ import annotations

from collections.abc import Sequence

from halocline.ranges import ORDER
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.labels import size_label, whole_steps
from halocline.study.reporting.published import ASTAROTH, MHD_CASE
from halocline.study.reporting.report import (
    LAYOUTS,
    Axis,
    Block,
    Column,
    Contents,
    Figure,
    Group,
    Panel,
    Pivot,
)
from halocline.study.study import Study, Sweep


def _side(direction: Sequence[int]) -> bool:
    return sum(map(abs, direction)) == 1


def _order(measurement: Measurement) -> int:
    """Return the order of differences as a key; 0 for a program, which has its own."""
    return measurement["order"] or 0


def _halo(order: int | None, group: Group) -> str:
    """Return the bytes of a step and one cell of each side; "" if the exchange is unknown."""
    own = None if group.theory is None else group.theory.exchanged.get(order)
    return "" if own is None else f"{sum(weight for way, weight in own.traffic.weights if _side(way)):,}"


def _cell(measurement: Measurement, group: Group) -> str:
    base = group.those(lambda m: m["order"] == measurement["order"]).base
    return f"{q.nanoseconds(q.ns(measurement))}  {q.percent(q.efficiency(measurement, base)):>5}"


def _note(group: Group) -> str:
    said = ["ns a cell and step, and efficiency. Bytes of halo: of a step and one cell of each side."]
    if group.one["case"] == MHD_CASE:
        said.append(
            f"{ASTAROTH}, 256³: second order scales to 32 devices, eighth order is bound by the exchange "
            "from 8 on."
        )
    return q.wrapped(*said)


def _sentences(group: Group) -> list[str]:
    """Return a sentence for each size on the efficiency of the lowest and highest order."""
    said = []
    for found in group.by(q.grid):
        most = max(map(q.units, found.found))
        kept = []
        for own in found.by(_order):
            last = min((m for m in own.found if q.units(m) == most), key=q.ns, default=own.base)
            if last is not own.base:
                kept.append(f"{q.percent(q.efficiency(last, own.base))} at order {own.one['order']}")
        if len(kept) > 1:
            said.append(f"{q.size(found.one)} on {most}: efficiency {', '.join(kept)}.")
    return said


def of_several(group: Group) -> Group:
    """Return the whole steps if they are of more than one order, else an empty group."""
    own = whole_steps(group)
    return own if len({m["order"] for m in own.found}) > 1 else own.those(lambda m: False)


ORDERS = Contents(
    blocks=(
        Block(
            (
                Pivot(
                    "Orders",
                    _cell,
                    rows=Axis(_order, lambda m: f"{m['order']}"),
                    columns=LAYOUTS,
                    head="order",
                    lead=(
                        Column(
                            "operations a\ncell and step", lambda m, g: f"{m['flops_per_cell_step']:,.0f}"
                        ),
                        Column("bytes of\nhalo", lambda m, g: _halo(m["order"], g)),
                    ),
                    note=_note,
                ),
            ),
            by=q.grid,
            heading=lambda g: f"{q.size(g.one)}: orders of differences",
        ),
    ),
    figures=(
        Figure(
            "orders.png",
            (
                Panel(
                    lambda m, g: q.ns(m),
                    size_label,
                    "ns a cell and step",
                    line=_order,
                    label=lambda line, panel: f"order {line.one['order']}",
                    ideal=c.ideal,
                ),
            ),
            by=lambda m: (q.grid(m), m["threads"]),
            title="Orders of differences",
            columns=5,
        ),
    ),
    sentences=(_sentences,),
    of=whole_steps,
)
STUDY = Study(
    "orders",
    title="Orders of differences",
    about="Strong scaling with stencils of several orders.",
    help="Each order on each number of ranks and threads, as Fig. 14 of Pekkilä et al. 2022.",
    examples=("halocline study orders mhd-benchmark --n 64 --ranks 1,2 --orders 2,6",),
    contents=(ORDERS,),
    sweeps=(Sweep("order", "--orders O,O,...", "Orders of accuracy.", "2,4,6,8", ORDER),),
    formula=True,
)
