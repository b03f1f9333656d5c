"""Study of strong scaling with stencils of several orders (Pekkilä et al. 2022, Fig. 14)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from halocline.io.table import Table
from halocline.ranges import ORDER
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.plots import draw
from halocline.study.reporting.reference import with_notes
from halocline.study.reporting.report import LAYOUTS, Axis, Column, Contents, Group, pivot_table
from halocline.study.study import Study, VariedOption
from halocline.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE = (
    "Entries are the time in ns per cell and step, and the efficiency. The bytes of halo are those per step "
    "and per cell of a side, summed over all sides."
)


def _side(direction: Sequence[int]) -> bool:
    return sum(map(abs, direction)) == 1


def _order(measurement: Measurement) -> int:
    """Return the order of differences as a sort key; 0 for a program."""
    return measurement["order"] or 0


def _halo(order: int | None, group: Group) -> str:
    """Return the halo bytes per step and per cell of a side, summed over all sides, as text."""
    exchanged = None if group.theory is None else group.theory.exchanges.get(order)
    if exchanged is None:
        return ""
    return f"{sum(weight for direction, weight in exchanged.traffic.weights if _side(direction)):,}"


def _cell(measurement: Measurement, group: Group) -> str:
    base = group.select(lambda m: m["order"] == measurement["order"]).base
    return f"{q.nanoseconds(q.ns(measurement))}  {q.percent(q.efficiency(measurement, base)):>5}"


def _tables(group: Group) -> Iterator[Table]:
    lead = (
        Column("operations per\ncell and step", lambda m, g: f"{m['flops_per_cell_step']:,.0f}"),
        Column("bytes of\nhalo", lambda m, g: _halo(m["order"], g)),
    )
    for size in group.split(q.grid):
        yield pivot_table(
            "Orders",
            size,
            _cell,
            rows=Axis(_order, lambda m: f"{m['order']}"),
            columns=LAYOUTS,
            head="order",
            lead=lead,
            note=with_notes("orders", size, q.wrap_notes(NOTE)),
            heading=f"{q.size(size.first)}: orders of differences",
        )


def _figure(group: Group) -> Figure | None:
    panels = c.panels_of_sizes(group, _order, lambda line: f"order {line.first['order']}", c.ideal)
    return draw(panels, title="Orders of differences", legend_columns=5)


def _sentences(group: Group) -> Iterator[str]:
    """Yield a sentence for each size on the efficiency of each order on the most cores or devices."""
    for size in group.split(q.grid):
        max_units = max(map(q.units, size.members))
        efficiencies = []
        for order in size.split(_order):
            last = min((m for m in order.members if q.units(m) == max_units), key=q.ns, default=order.base)
            if last is not order.base:
                efficiency = q.percent(q.efficiency(last, order.base))
                efficiencies.append(f"{efficiency} at order {order.first['order']}")
        if len(efficiencies) > 1:
            units = counted(max_units, q.unit(size.first))
            yield f"{q.size(size.first)} on {units}: efficiency {', '.join(efficiencies)}."


def with_several_orders(group: Group) -> Group:
    """Return the runs of whole steps if they have more than one order, else an empty group."""
    steps = c.whole_steps(group)
    return steps if len(steps.values("order")) > 1 else Group(())


ORDERS = Contents(_tables, _sentences, {"orders.png": _figure}, c.whole_steps)
STUDY = Study(
    "orders",
    title="Orders of differences",
    about="Measure strong scaling with stencils of several orders.",
    help="The study runs each order with each combination of ranks and threads, as in Fig. 14 of Pekkilä et "
    "al. 2022.",
    examples=("halocline study orders mhd-benchmark --n 64 --ranks 1,2 --orders 2,6",),
    contents=(ORDERS,),
    varied_options=(
        VariedOption("order", "--orders O,O,...", "Orders of accuracy, one run for each.", "2,4,6,8", ORDER),
    ),
    has_formula=True,
)
