"""A trace as a picture: a bar for each thing that a thread did, as in C. Pearson et al. (2020), Fig. 9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from halocline.plan.trace import TRACE_EVENTS, TraceEvent

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from halocline.run.domain.domain import Domain

MIDDLE = 60  # events of the picture of a run


def _middle(events: Sequence[TraceEvent]) -> tuple[float, float]:
    """Return the time of some events of the first thread, in the middle of its run."""
    own = [event for event in events if (event.rank, event.lane) == (0, 0)]
    if not own:
        return 0.0, 1.0
    first = max(0, (len(own) - MIDDLE) // 2)
    return own[first].begin, own[min(first + MIDDLE, len(own)) - 1].end


def draw_timeline(domain: Domain, path: Path) -> None:
    """Draw the middle of a traced run; the first rank does."""
    from halocline.io.style import save, styled

    kept = domain.timeline
    if kept is None or domain.comm.rank != 0:
        return
    with styled():
        first, last = _middle(kept.all)
        save(plot(kept.all, kept.lanes, first=first, last=last), path)


def plot(
    events: Sequence[TraceEvent], threads: Mapping[int, int], *, first: float = 0.0, last: float | None = None
) -> Figure:
    """Draw lanes of threads and messages, rank by rank.

    Parameters
    ----------
    events : sequence of TraceEvent
    threads : mapping of int to int
        Of each rank.
    first, last : float
        The seconds that are shown; to the end by default.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    from halocline.io.style import COLOURS, INK

    last = max((event.end for event in events), default=1.0) if last is None else last
    lanes = [(rank, lane) for rank, count in threads.items() for lane in range(count + 1)]
    places = {lane: place for place, lane in enumerate(lanes)}
    *bright, grey = COLOURS  # for messages, of which many lie behind all else
    colours = dict(zip(TRACE_EVENTS, (*bright, INK, grey), strict=True))
    unit, name = (1e3, "milliseconds") if last - first > 1e-3 else (1e6, "microseconds")
    figure = Figure(figsize=(9.6, 1.3 + 0.34 * len(lanes)), layout="constrained")
    axes = figure.subplots()
    shown = [event for event in events if event.end > first and event.begin < last]
    for kind in TRACE_EVENTS:
        for lane, place in places.items():
            spans = [
                (unit * (max(d.begin, first) - first), unit * (min(d.end, last) - max(d.begin, first)))
                for d in shown
                if d.kind == kind and (d.rank, d.lane) == lane
            ]
            # messages overlap: the more of them, the darker
            seen = 0.4 if kind == "message" else 1.0
            axes.broken_barh(spans, (place - 0.4, 0.8), facecolors=colours[kind], alpha=seen, linewidth=0)
    axes.set_yticks(
        range(len(lanes)),
        [f"rank {rank}, {'messages' if lane == threads[rank] else f'thread {lane}'}" for rank, lane in lanes],
    )
    axes.set(ylim=(len(lanes) - 0.5, -0.5), xlim=(0, unit * (last - first)), xlabel=name)
    kinds = [kind for kind in TRACE_EVENTS if any(d.kind == kind for d in shown)]
    handles = [Patch(color=colours[kind], label=kind) for kind in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(kinds) or 1)
    return figure
