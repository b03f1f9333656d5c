"""Events of a timeline that a run records or a model predicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# kinds of events, in the order of native/src/threads/trace.hpp; docs/reference/devices.md describes them
TRACE_EVENTS = (
    *("patch", "halo box", "boundary", "copy", "pack", "unpack", "reduction", "message", "send", "download"),
    *("upload", "scalars", "launch"),
)
OVERLAPPING = frozenset({"message", "send"})  # kinds with simultaneous events in one lane
MESSAGES = "messages"  # name of the lane of messages


@dataclass(frozen=True)
class Lane:
    """Row of a timeline: a thread, the messages of a rank, or a queue of a device.

    Attributes
    ----------
    name : str
    row : str
        Name of the row in a picture; several queues of a device share one row.
    """

    name: str
    row: str


@dataclass(frozen=True)
class TraceEvent:
    """Work of a thread or device, or transfer of a message.

    Attributes
    ----------
    rank : int
    lane : int
        Index among the lanes of the rank: threads, messages, and queues of devices.
    kind : str
        One of TRACE_EVENTS.
    name : str
    begin, end : float
        Seconds since all ranks began the first traced run.
    """

    rank: int
    lane: int
    kind: str
    name: str
    begin: float
    end: float


def lanes_of_host(threads: int) -> tuple[Lane, ...]:
    """Return the lanes of a rank without devices: one per thread, and one for all messages."""
    names = (*(f"thread {number}" for number in range(threads)), MESSAGES)
    return tuple(Lane(name, name) for name in names)


@dataclass(frozen=True)
class TraceShares:
    """Shares of the time of a traced run, on the rank with the maximum share of packing.

    Attributes
    ----------
    packing : float
        Share of the time in which the rank packs or unpacks messages.
    launching : float
        Share of the time in which the first thread queues work for devices; 0 on the CPU.
    at_once : float
        Mean number of threads and queues that work at the same time, while at least one works.
    """

    packing: float
    launching: float
    at_once: float

    @classmethod
    def of(cls, events: Sequence[TraceEvent]) -> TraceShares:
        """Return the shares of the events of all ranks."""
        ranks = {event.rank for event in events}
        rank_events = ([event for event in events if event.rank == rank] for rank in ranks)
        return max(
            (cls._of_rank(sequence) for sequence in rank_events),
            key=lambda shares: shares.packing,
            default=cls(0, 0, 0),
        )

    @classmethod
    def _of_rank(cls, events: Sequence[TraceEvent]) -> TraceShares:
        duration = max(event.end for event in events) - min(event.begin for event in events)
        work = [event for event in events if event.kind not in OVERLAPPING | {"launch"}]
        packing = covered(event for event in work if event.kind in ("pack", "unpack"))
        launching = covered(event for event in events if event.kind == "launch")
        total, busy = sum(event.end - event.begin for event in work), covered(work)
        return cls(packing / duration, launching / duration, total / busy if busy else 0.0)


def covered(events: Iterable[TraceEvent]) -> float:
    """Return the seconds in which at least one of the given events is in progress."""
    seconds, reached = 0.0, float("-inf")
    for event in sorted(events, key=lambda event: event.begin):
        seconds += max(0.0, event.end - max(event.begin, reached))
        reached = max(reached, event.end)
    return seconds
