"""Hybrid runs: the same cores shared out among ranks and threads (UMBC HPCF-2018-10, Tables 7.1 and 7.2)."""

from __future__ import annotations

from collections.abc import Sequence

from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.labels import size_label
from halocline.study.reporting.report import Block, Column, Contents, Figure, Group, Panel, Rows
from halocline.study.study import Study
from halocline.words import counted


def equals(measurement: Measurement, group: Group) -> Group:
    """Those on as many cores or devices."""
    return group.those(lambda m: q.units(m) == q.units(measurement))


def has_equals(measurement: Measurement, group: Group) -> bool:
    """Return whether another run used as many cores or devices."""
    return len(equals(measurement, group).found) > 1


HYBRID = Rows(
    lambda group: f"Hybrid runs: equal {q.unit(group.one)}s",
    (
        c.LAYOUT,
        c.UNITS,
        c.CLOCK,
        c.SECONDS,
        Column("over the\nfastest", lambda m, g: f"{q.pace(m) / q.pace(equals(m, g).best):.2f}"),
    ),
)


def _sentences(group: Group) -> list[str]:
    said = []
    for own in group.by(lambda m: (q.grid(m), q.units(m))):
        slowest = max(own.found, key=q.pace)
        if slowest is own.best:
            continue
        times = f"{q.pace(slowest) / q.pace(own.best):.2f} times as long"
        where = f"{q.size(own.one)} on {counted(q.units(own.one), q.unit(own.one))}"
        said.append(f"{where}: fastest with {q.layout(own.best)}; with {q.layout(slowest)} {times}.")
    return said


def factors(ranks: Sequence[int], threads: Sequence[int]) -> list[tuple[int, int]]:
    """Each way to share out each number of cores: ranks times threads are one of `ranks` times the most
    threads."""
    found = {
        (count // t, t)
        for r in ranks
        for count in [r * max(threads)]
        for t in range(1, count + 1)
        if not count % t
    }
    return sorted(found, key=lambda pair: (pair[0] * pair[1], pair[0]))


STUDY = Study(
    "hybrid",
    title="Hybrid runs",
    about="The same cores shared out among ranks and threads in every way.",
    help="Each divisor of ranks times threads is a number of ranks, the rest are threads, as in Tables 7.1 "
    "and 7.2 of UMBC HPCF-2018-10.",
    examples=("halocline study hybrid poisson --n 1024 --ranks 2 --threads 2",),
    contents=(
        Contents(
            blocks=(
                Block(
                    (HYBRID,),
                    by=q.grid,
                    heading=lambda g: f"{q.size(g.one)}: {g.one['cells']:,} cells, {q.named(g.one)}",
                ),
            ),
            figures=(
                Figure(
                    "hybrid.png",
                    (
                        Panel(
                            lambda m, g: q.pace(m) / q.pace(equals(m, g).best),
                            "Hybrid runs",
                            "time over the fastest on as many cores",
                            line=lambda m: (q.grid(m), q.units(m)),
                            label=lambda line, panel: f"{size_label(line, line)}, {q.units(line.one)} cores",
                            x=lambda m: int(m["ranks"]),
                            xlabel="ranks",
                            log=False,
                        ),
                    ),
                ),
            ),
            sentences=(_sentences,),
        ),
    ),
    layouts=factors,
    ranks="2",
)
