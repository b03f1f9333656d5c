"""Study of hybrid runs, which divide the same cores into ranks and threads.

Reports follow UMBC HPCF-2018-10, Tables 7.1 and 7.2. A split is a division of cores into ranks and threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from halocline.io.table import Table
from halocline.study.layout import Layout
from halocline.study.measurement import Measurement, ranks_of_node
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.plots import Panel, draw
from halocline.study.reporting.report import (
    NODES,
    RANKS_AND_THREADS,
    Contents,
    Group,
    ordered_rows,
    pivot_table,
    row_table,
)
from halocline.study.study import Study, StudyRequest
from halocline.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def hybrid_table(group: Group, heading: str = "") -> Table:
    """Return the table of runs on equal numbers of cores or devices."""
    columns = c.LAYOUT, c.units(group), c.CLOCK, c.SECONDS, c.RELATIVE_TIME
    rows = [row for equal_units in group.split(q.units) for row in ordered_rows(equal_units)]
    title = f"Hybrid runs on equal numbers of {q.unit(group.first)}s"
    return row_table(title, columns, rows, heading=heading)


def comparison_key(measurement: Measurement) -> Any:
    """Return the numbers of nodes, hosts and cores as a key. Splits with equal keys are compared."""
    return q.nodes(measurement), measurement.get("hosts") or 1, q.units(measurement)


def over_nodes(group: Group, heading: str = "") -> Iterator[Table]:
    """Yield tables of times and of relative times, with splits in rows and nodes in columns."""
    fastest = {
        comparison_key(equal_units.first): equal_units.best for equal_units in group.split(comparison_key)
    }
    yield pivot_table(
        "Wall clock, HH:MM:SS and seconds",
        group,
        c.wall_clock,
        rows=RANKS_AND_THREADS,
        columns=NODES,
        heading=heading,
    )
    yield pivot_table(
        "Time relative to the fastest division of the same nodes and cores",
        group,
        lambda m, g: f"{q.pace(m) / q.pace(fastest[comparison_key(m)]):.2f}",
        rows=RANKS_AND_THREADS,
        columns=NODES,
    )


def _tables(group: Group) -> Iterator[Table]:
    for size in group.split(q.grid):
        if len(size.split(q.nodes)) > 1:
            yield from over_nodes(size, q.heading(size.first))
        else:
            yield hybrid_table(size, q.heading(size.first))


def _figure(group: Group) -> Figure | None:
    panel = Panel(
        group,
        lambda m, g: q.pace(m) / q.pace(g.best),
        "Hybrid runs",
        "time relative to the fastest run on the same cores",
        line=lambda m: (q.grid(m), q.nodes(m), q.units(m)),
        label=lambda line: f"{c.size_label(line, line)}, {q.units(line.first)} cores",
        x=ranks_of_node,
        xlabel="ranks per node",
        log=False,
    )
    return draw([panel])


def _sentences(group: Group) -> Iterator[str]:
    for equal_units in group.split(lambda m: (q.grid(m), q.units(m))):
        slowest = max(equal_units.members, key=q.pace)
        if slowest is not equal_units.best:
            ratio_text = f"{q.pace(slowest) / q.pace(equal_units.best):.2f} times as long"
            size_text = f"{q.size(slowest)} on {counted(q.units(slowest), q.unit(equal_units.first))}"
            best_text = f"{size_text}: fastest with {q.layout(equal_units.best)}"
            yield f"{best_text}; a run with {q.layout(slowest)} takes {ratio_text}."


def splits(layouts: Iterable[Layout]) -> list[Layout]:
    """Return, for each layout, all ways to divide the cores of a node into ranks and threads.

    The number of cores of a node is the number of its ranks, multiplied by the number of threads of a rank.
    """
    all_layouts = set()
    for layout in layouts:
        cores = (layout.per_node or layout.ranks) * layout.threads
        for threads in (t for t in range(1, cores + 1) if cores % t == 0):
            ranks = cores // threads
            all_layouts.add(Layout(layout.nodes * ranks, threads, layout.per_node and ranks))
    return sorted(all_layouts, key=lambda split: (split.nodes, split.ranks * split.threads, split.ranks))


class Hybrid(Study):
    """Study of all splits of the same cores."""

    def layouts(self, request: StudyRequest) -> list[Layout]:
        return splits(request.layouts)


STUDY = Hybrid(
    "hybrid",
    title="Hybrid runs",
    about="Compare all divisions of the same cores into ranks and threads.",
    help="The number of cores per node is the product of --ranks (or --per-node) and --threads. The study "
    "uses each divisor of this number as the number of ranks per node, as in Tables 7.1 and 7.2 of UMBC "
    "HPCF-2018-10.",
    examples=(
        "halocline study hybrid poisson --n 1024 --ranks 2 --threads 2",
        "halocline study hybrid poisson --n 4096 --nodes 1,2,4 --per-node 32 --submit slurm --exclusive",
    ),
    contents=(Contents(_tables, _sentences, {"hybrid.png": _figure}),),
    ranks="2",
)
