"""Events of a timeline, which a run records and a model predicts."""

from __future__ import annotations

from dataclasses import dataclass

TRACE_EVENTS = ("patch", "halo box", "boundary", "copy", "pack", "unpack", "reduction", "message")


@dataclass(frozen=True)
class TraceEvent:
    """Work of a thread, or the transfer of a message.

    Attributes
    ----------
    rank : int
    lane : int
        Number of the thread; the number after the last thread stands for messages.
    kind : str
        One of TRACE_EVENTS.
    name : str
    begin, end : float
        Seconds since all ranks began the first run that is traced.
    """

    rank: int
    lane: int
    kind: str
    name: str
    begin: float
    end: float
