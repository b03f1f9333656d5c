"""Hybrid runs: the same cores shared out among ranks and threads (UMBC HPCF-2018-10, Tables 7.1 and 7.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from halocline.io.table import Table
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.plots import Panel, draw
from halocline.study.reporting.report import Contents, Group, in_order, row_table
from halocline.study.study import Asked, Study
from halocline.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def hybrid_table(group: Group, heading: str = "") -> Table:
    """Return the table of runs on equal numbers of cores or devices."""
    columns = c.LAYOUT, c.units(group), c.CLOCK, c.SECONDS, c.SLOWER
    rows = [row for equals in group.by(q.units) for row in in_order(equals)]
    return row_table(f"Hybrid runs: equal {q.unit(group.first)}s", columns, rows, heading=heading)


def _tables(group: Group) -> Iterator[Table]:
    for size in group.by(q.grid):
        yield hybrid_table(size, q.heading(size.first))


def _figure(group: Group) -> Figure | None:
    panel = Panel(
        group,
        lambda m, g: q.pace(m) / q.pace(g.best),
        "Hybrid runs",
        "time over the fastest on as many cores",
        line=lambda m: (q.grid(m), q.units(m)),
        label=lambda line: f"{c.size_label(line, line)}, {q.units(line.first)} cores",
        x=lambda m: int(m["ranks"]),
        xlabel="ranks",
        log=False,
    )
    return draw([panel])


def _sentences(group: Group) -> Iterator[str]:
    for equals in group.by(lambda m: (q.grid(m), q.units(m))):
        slowest = max(equals.members, key=q.pace)
        if slowest is not equals.best:
            times = f"{q.pace(slowest) / q.pace(equals.best):.2f} times as long"
            where = f"{q.size(slowest)} on {counted(q.units(slowest), q.unit(equals.first))}"
            yield f"{where}: fastest with {q.layout(equals.best)}; with {q.layout(slowest)} {times}."


def factors(ranks: Sequence[int], threads: Sequence[int]) -> list[tuple[int, int]]:
    """Return all pairs of ranks and threads whose product is one of `ranks` times the most threads."""
    pairs = {
        (count // t, t)
        for r in ranks
        for count in [r * max(threads)]
        for t in range(1, count + 1)
        if not count % t
    }
    return sorted(pairs, key=lambda pair: (pair[0] * pair[1], pair[0]))


class Hybrid(Study):
    """Study on all ways to share out the cores."""

    def layouts(self, asked: Asked) -> list[tuple[int, int]]:
        return factors(asked.ranks, asked.threads)


STUDY = Hybrid(
    "hybrid",
    title="Hybrid runs",
    about="The same cores shared out among ranks and threads in every way.",
    help="Each divisor of ranks times threads is a number of ranks, the rest are threads, as in Tables 7.1 "
    "and 7.2 of UMBC HPCF-2018-10.",
    examples=("halocline study hybrid poisson --n 1024 --ranks 2 --threads 2",),
    contents=(Contents(_tables, _sentences, {"hybrid.png": _figure}),),
    ranks="2",
)
