"""What each thread and message did in a run, in the format that Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from halocline.compile.schedule import Schedule
from halocline.plan.trace import TRACE_EVENTS, TraceEvent
from halocline.run.host.files import write_file
from halocline.run.ranks.communicator import Communicator

MOST = 20_000  # events of each thread that are kept: the first ones


class Timeline:
    """Collects what a rank does in its runs, and writes what all ranks did.

    Parameters
    ----------
    file : str or path
    threads : int
        Of this rank.

    Attributes
    ----------
    all : list of TraceEvent
        Of all ranks, on the first one.
    lanes : dict of int to int
        The threads of each rank, there.
    """

    def __init__(self, file: str | Path, threads: int) -> None:
        self.file, self.threads = Path(file), threads
        self.lanes: dict[int, int] = {}
        self.own: list[TraceEvent] = []  # of this rank
        self.all: list[TraceEvent] = []
        self._kept: dict[int, int] = {}
        self._passed = 0.0

    def add(self, rank: int, schedule: Schedule, report: dict[str, Any]) -> None:
        """Take the events of a run."""
        names = [", ".join(sweep.names) or sweep.kernel for sweep in schedule.sweeps()]
        for lane, rows in enumerate(report["events"]):
            room = MOST - self._kept.get(lane, 0)
            for event, sweep, what, begin, end in rows[:room].tolist():
                kind = TRACE_EVENTS[int(event)]
                name = _name(kind, names[int(sweep)] if sweep >= 0 else "", int(what))
                times = self._passed + begin, self._passed + end
                self.own.append(TraceEvent(rank, lane, kind, name, *times))
            self._kept[lane] = self._kept.get(lane, 0) + min(room, len(rows))
        self._passed += report["seconds"]

    @property
    def full(self) -> bool:
        """Whether the first thread's lane takes no more."""
        return self._kept.get(0, 0) >= MOST

    def write(self, comm: Communicator) -> None:
        """Write what all ranks did; all ranks call this.

        Raises
        ------
        RunError
            The file cannot be written; on all ranks.
        """
        gathered = comm.gather((self.threads, self.own))
        with comm.agreement("write the trace"):
            if gathered is not None:
                self.all = [event for _, own in gathered for event in own]
                self.lanes = {rank: threads for rank, (threads, _) in enumerate(gathered)}
                events = list(chrome_events(self.all, self.lanes))
                text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n"
                write_file(self.file, text)


def _name(kind: str, sweep: str, what: int) -> str:
    if kind == "patch":
        return f"{sweep}: patch {what}"
    if kind in ("unpack", "message"):
        return f"{sweep}: from rank {what}"
    return f"{sweep}: {kind}" if sweep else kind


def chrome_events(events: Sequence[TraceEvent], lanes: Mapping[int, int]) -> Iterator[dict[str, Any]]:
    """Events of the Trace Event Format: processes are ranks, of which `lanes` says how many threads each has;
    messages, which overlap, are asynchronous."""
    for rank, threads in lanes.items():
        yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}}
        for lane in range(threads + 1):
            name = f"thread {lane}" if lane < threads else "messages"
            yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": lane, "args": {"name": name}}
    for number, event in enumerate(events):
        common = {"name": event.name, "cat": event.kind, "pid": event.rank, "tid": event.lane}
        begin, end = round(event.begin * 1e6, 3), round(event.end * 1e6, 3)
        if event.kind == "message":
            yield {**common, "ph": "b", "id": number, "ts": begin}
            yield {**common, "ph": "e", "id": number, "ts": end}
        else:
            yield {**common, "ph": "X", "ts": begin, "dur": round(end - begin, 3)}
