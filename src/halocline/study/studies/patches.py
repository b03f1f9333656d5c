"""Study of patch sizes and schedules of threads (Mendygral et al. 2017, Figs. 5 and 9)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from halocline.run.domain.execution import SCHEDULES
from halocline.study.layout import Layout
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.comparison import comparison
from halocline.study.reporting.plots import Panel, draw
from halocline.study.reporting.reference import with_notes
from halocline.study.reporting.report import Group, by_layout
from halocline.study.studies.hybrid import splits
from halocline.study.study import Study, StudyRequest, VariedOption
from halocline.words import joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def edge(measurement: Measurement) -> int:
    """Return the edge length of a patch along the contiguous axis; 0 if Halocline chose the patch."""
    text = str(measurement.get("patch") or "").rpartition(",")[2]
    return int(text) if text.isdecimal() else 0


def label(measurement: Measurement) -> str:
    """Return the patch size, and a schedule other than the default, as text."""
    schedule = measurement.get("schedule") or "guided"
    return str(measurement.get("patch") or "by cache size") + (
        "" if schedule == "guided" else f", {schedule}"
    )


def _label_of_line(line: Group) -> str:
    schedule = line.first.get("schedule") or "guided"
    return joined(q.size(line.first), q.layout(line.first), None if schedule == "guided" else schedule)


def _figure(group: Group) -> Figure | None:
    with_edge = group.select(edge)
    panel = Panel(
        with_edge,
        lambda m, g: q.node_rate(m),
        "Throughput",
        "million cells per second and node",
        line=lambda m: (q.grid(m), by_layout(m), m.get("schedule") or "guided"),
        label=_label_of_line,
        x=edge,
        xlabel="edge length of a patch, in cells",
        log=False,
    )
    return draw([panel] if with_edge.members else [])


class Patches(Study):
    """Study of patches on the requested layouts, or on all divisions of the same cores."""

    def layouts(self, request: StudyRequest) -> list[Layout]:
        return splits(request.layouts) if request.study_options.get("all_splits") else request.layouts


STUDY = Patches(
    "patches",
    title="Patches",
    about="Compare patch sizes and schedules of threads.",
    help="The study runs each patch size with each combination of ranks and threads, as in Figs. 5 and 9 of "
    "Mendygral et al. 2017.",
    examples=(
        "halocline study patches orszag-tang --n 192 --patches 16,32,64 --threads 1,2",
        "halocline study patches blast --n 64 --patches 16,32 --threads 2 --all-splits",
    ),
    contents=(
        comparison(
            "patch",
            label,
            *(c.RATE, c.BANDWIDTH_SHARE),
            order=lambda m: (edge(m), label(m)),
            note=partial(with_notes, "patches"),
            figures={"patches.png": _figure},
        ),
    ),
    varied_options=(
        VariedOption(
            "patch", "--patches B,B,...", "Patch sizes in cells. For several axes: B,B;B,B.", "16,32,64"
        ),
        VariedOption(
            "schedule",
            "--schedules S,S,...",
            "Schedules of threads: guided, static or dynamic.",
            "guided",
            words=SCHEDULES,
        ),
    ),
    options=(
        (
            "--all-splits",
            "Run with each division of the same cores into ranks and threads. The number of cores is the "
            "product of ranks and threads.",
            False,
        ),
    ),
    ranks="1",
    threads="1,2",
)
