"""Patch sizes and schedules (WOMBAT: Mendygral et al. 2017, Figs. 4, 5 and 9)."""

from __future__ import annotations

from halocline.run.domain.execution import SCHEDULES
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.comparison import comparison
from halocline.study.reporting.published import published
from halocline.study.reporting.report import Figure, Group, Panel, by_layout
from halocline.study.study import Study, Sweep


def edge(measurement: Measurement) -> int:
    """The last edge of a patch, along the axis that lies together in memory; 0 where it is chosen."""
    text = str(measurement.get("patch") or "").rpartition(",")[2]
    return int(text) if text.isdecimal() else 0


def label(measurement: Measurement) -> str:
    """The patch, and the schedule."""
    schedule = measurement.get("schedule") or "guided"
    return str(measurement.get("patch") or "by cache size") + (
        "" if schedule == "guided" else f", {schedule}"
    )


def _note(group: Group) -> str:
    best = published("wombat-fig5")
    edges = [
        f"{best.values('patch', machine=name)[0]}³ on {name}"
        for name in dict.fromkeys(best.values("machine"))
    ]
    return q.wrapped(f"Mendygral et al. 2017, Fig. 5: the best patches there are {', '.join(edges)}.")


PANEL = Panel(
    lambda m, g: q.ns(m),
    "Time of a cell and step",
    "ns a cell and step",
    line=lambda m: (q.grid(m), by_layout(m), m.get("schedule") or "guided"),
    label=lambda line, panel: f"{q.size(line.one)}, {q.layout(line.one)}",
    x=edge,
    xlabel="edge of a patch, in cells",
    log=False,
)
STUDY = Study(
    "patches",
    title="Patches",
    about="Edges of the patches that threads work on, and which thread takes which.",
    help="Each patch on each number of ranks and threads, as Figs. 4, 5 and 9 of Mendygral et al. 2017.",
    examples=("halocline study patches orszag-tang --n 192 --patches 16,32,64 --threads 1,2",),
    contents=(
        comparison(
            "patch",
            label,
            c.OF_BANDWIDTH,
            order=lambda m: (edge(m), label(m)),
            note=_note,
            figures=(Figure("patches.png", (PANEL,), where=edge),),
        ),
    ),
    sweeps=(
        Sweep("patch", "--patches B,B,...", "Edges of patches; with several along axes B,B;B,B.", "16,32,64"),
        Sweep("schedule", "--schedules S,S,...", "guided, static or dynamic.", "guided", words=SCHEDULES),
    ),
    ranks="1",
    threads="1,2",
)
