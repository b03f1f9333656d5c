"""A trace as a picture, as Fig. 9 of Pearson et al. (2020): a bar for each event of threads and devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from halocline.plan.trace import MESSAGES, TRACE_EVENTS, Lane, TraceEvent

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from halocline.run.domain.domain import Domain

MIDDLE = 60  # events of the picture of a run


def _colours() -> dict[str, str]:
    """Return the colour of each kind of event."""
    from halocline.io.style import COLOURS, FAINT, INK

    *bright, grey = COLOURS  # for messages, of which many lie behind all else
    of_devices = ("#f0e442", "#8c510a", "#01665e", FAINT, "#b2abd2")
    return dict(zip(TRACE_EVENTS, (*bright, INK, grey, *of_devices), strict=True))


def _middle(events: Sequence[TraceEvent]) -> tuple[float, float]:
    """Return the time of some events of the first thread, in the middle of its run."""
    own = [event for event in events if (event.rank, event.lane) == (0, 0)]
    if not own:
        return 0.0, 1.0
    first = max(0, (len(own) - MIDDLE) // 2)
    return own[first].begin, own[min(first + MIDDLE, len(own)) - 1].end


def _share(events: Sequence[TraceEvent], share: float) -> tuple[float, float]:
    """Return the interval in the middle of all events that covers this share of their time."""
    begin, end = min(event.begin for event in events), max(event.end for event in events)
    middle, half = (begin + end) / 2, share * (end - begin) / 2
    return middle - half, middle + half


def draw_timeline(domain: Domain, path: Path, *, share: float | None = None) -> None:
    """Draw the middle of a traced run; the first rank does.

    Parameters
    ----------
    domain : Domain
    path : Path
    share : float, optional
        Share of the time that is shown; that of some events by default.
    """
    from halocline.io.style import save, styled

    kept = domain.timeline
    if kept is None or domain.comm.rank != 0:
        return
    with styled():
        first, last = _middle(kept.all) if share is None else _share(kept.all, share)
        save(plot(kept.all, kept.lanes, first=first, last=last), path)


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
        Of each rank.
    first, last : float
        The seconds that are shown; to the end by default.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    last = max((event.end for event in events), default=1.0) if last is None else last
    rows = list(dict.fromkeys((rank, lane.row) for rank, own in lanes.items() for lane in own))
    queues = Counter((rank, lane.row) for rank, own in lanes.items() for lane in own)
    shared = {row for row in rows if row[1] == MESSAGES or queues[row] > 1}
    colours = _colours()
    unit, name = (1e3, "milliseconds") if last - first > 1e-3 else (1e6, "microseconds")
    figure = Figure(figsize=(9.6, 1.3 + 0.34 * len(rows)), layout="constrained")
    axes = figure.subplots()
    shown = [event for event in events if event.end > first and event.begin < last]
    spans: dict[tuple[str, tuple[int, str]], list[tuple[float, float]]] = {}
    for event in shown:
        begin, end = max(event.begin, first), min(event.end, last)
        row = event.rank, lanes[event.rank][event.lane].row
        spans.setdefault((event.kind, row), []).append((unit * (begin - first), unit * (end - begin)))
    for kind in TRACE_EVENTS:
        for place, row in enumerate(rows):
            # where events overlap: the more of them, the darker
            seen = 0.4 if row in shared else 1.0
            if (kind, row) not in spans:
                continue
            artist = axes.broken_barh(spans[kind, row], (place - 0.4, 0.8), color=colours[kind], alpha=seen)
            artist.set_linewidth(0.4)  # the shortest are visible too
    axes.set_yticks(range(len(rows)), [f"rank {rank}, {row}" for rank, row in rows])
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, unit * (last - first)), xlabel=name)
    kinds = [kind for kind in TRACE_EVENTS if any(event.kind == kind for event in shown)]
    handles = [Patch(color=colours[kind], label=kind) for kind in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(kinds), 8) or 1)
    return figure
