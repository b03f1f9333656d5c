"""Picture of a trace with a bar for each event of threads and devices (Pearson et al. 2020, Fig. 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from halocline.plan.trace import MESSAGES, TRACE_EVENTS, Lane, TraceEvent

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from halocline.run.domain.domain import Domain

MIDDLE = 60  # number of events of the first thread in the picture of a run


def _colours() -> dict[str, str]:
    """Return the colour of each kind of event."""
    from halocline.io.style import COLOURS, FAINT, INK

    *bright, grey = COLOURS  # grey for messages, because other events cover many messages
    of_devices = ("#f0e442", "#8c510a", "#01665e", FAINT, "#b2abd2")
    return dict(zip(TRACE_EVENTS, (*bright, INK, grey, *of_devices), strict=True))


def _middle(events: Sequence[TraceEvent]) -> tuple[float, float]:
    """Return the time interval of `MIDDLE` events of the first thread, in the middle of the trace."""
    thread_events = [event for event in events if (event.rank, event.lane) == (0, 0)]
    if not thread_events:
        return 0.0, 1.0
    first = max(0, (len(thread_events) - MIDDLE) // 2)
    return thread_events[first].begin, thread_events[min(first + MIDDLE, len(thread_events)) - 1].end


def _share(events: Sequence[TraceEvent], share: float) -> tuple[float, float]:
    """Return the interval in the middle of all events that covers a given share of their time."""
    begin, end = min(event.begin for event in events), max(event.end for event in events)
    middle, half = (begin + end) / 2, share * (end - begin) / 2
    return middle - half, middle + half


def draw_timeline(domain: Domain, path: Path, *, share: float | None = None) -> None:
    """Draw the middle of a traced run, on the first rank.

    Parameters
    ----------
    domain : Domain
    path : Path
    share : float, optional
        Fraction of the traced time in the picture. By default, the picture shows a fixed number of events.
    """
    from halocline.io.style import save, styled

    timeline = domain.timeline
    if timeline is None or domain.comm.rank != 0:
        return
    with styled():
        first, last = _middle(timeline.all) if share is None else _share(timeline.all, share)
        save(plot(timeline.all, timeline.lanes, first=first, last=last), path)


def plot(
    events: Sequence[TraceEvent],
    lanes: Mapping[int, Sequence[Lane]],
    *,
    first: float = 0.0,
    last: float | None = None,
) -> Figure:
    """Draw threads, messages and the queues of devices, rank by rank.

    Parameters
    ----------
    events : sequence of TraceEvent
    lanes : mapping of int to sequence of Lane
        Lanes of each rank.
    first, last : float
        Start and end of the picture in seconds; by default, all events from time 0.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    last = max((event.end for event in events), default=1.0) if last is None else last
    rows = list(dict.fromkeys((rank, lane.row) for rank, rank_lanes in lanes.items() for lane in rank_lanes))
    queues = Counter((rank, lane.row) for rank, rank_lanes in lanes.items() for lane in rank_lanes)
    shared = {row for row in rows if row[1] == MESSAGES or queues[row] > 1}
    colours = _colours()
    unit, name = (1e3, "milliseconds") if last - first > 1e-3 else (1e6, "microseconds")
    figure = Figure(figsize=(9.6, 1.3 + 0.34 * len(rows)), layout="constrained")
    axes = figure.subplots()
    visible = [event for event in events if event.end > first and event.begin < last]
    spans: dict[tuple[str, tuple[int, str]], list[tuple[float, float]]] = {}
    for event in visible:
        begin, end = max(event.begin, first), min(event.end, last)
        row = event.rank, lanes[event.rank][event.lane].row
        spans.setdefault((event.kind, row), []).append((unit * (begin - first), unit * (end - begin)))
    for kind in TRACE_EVENTS:
        for position, row in enumerate(rows):
            # transparency makes overlapping events darker
            alpha = 0.4 if row in shared else 1.0
            if (kind, row) not in spans:
                continue
            artist = axes.broken_barh(
                spans[kind, row], (position - 0.4, 0.8), color=colours[kind], alpha=alpha
            )
            artist.set_linewidth(0.4)  # the line width makes the shortest events visible
    axes.set_yticks(range(len(rows)), [f"rank {rank}, {row}" for rank, row in rows])
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, unit * (last - first)), xlabel=name)
    kinds = [kind for kind in TRACE_EVENTS if any(event.kind == kind for event in visible)]
    handles = [Patch(color=colours[kind], label=kind) for kind in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(kinds), 8) or 1)
    return figure
