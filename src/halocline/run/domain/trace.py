"""Trace of threads, messages and devices, in the format of Perfetto and chrome://tracing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from halocline.compile.schedule import Schedule
from halocline.lang.axes import AXES
from halocline.plan.trace import OVERLAPPING, TRACE_EVENTS, Lane, TraceEvent, lanes_of_host
from halocline.run.host.files import write_file
from halocline.run.ranks.communicator import Communicator

MOST = 20_000  # maximum number of recorded events per lane
RECEIVED = ("unpack", "message", "upload")  # kinds of events whose remote rank is the sender


class Timeline:
    """Recorder of the events of a rank, and writer of the events of all ranks.

    Parameters
    ----------
    file : str or path
        Output file.
    threads : int
        Number of threads of this rank.

    Attributes
    ----------
    all : list of TraceEvent
        Events of all ranks, on the first rank after `write`.
    lanes : dict of int to sequence of Lane
        Lanes of each rank, on the first rank after `write`.
    """

    def __init__(self, file: str | Path, threads: int) -> None:
        self.file = Path(file)
        self.lanes: dict[int, Sequence[Lane]] = {}
        self.local_events: list[TraceEvent] = []  # events of this rank
        self.all: list[TraceEvent] = []
        self._local_lanes = list(lanes_of_host(threads))
        self._host_lanes = len(self._local_lanes)
        self._event_counts: dict[int, int] = {}
        self._elapsed = 0.0
        self._clock_error = 0.0  # maximum error of device times, in seconds

    def add(self, rank: int, schedule: Schedule, report: dict[str, Any], places: Sequence[str] = ()) -> None:
        """Add the events of a run to the events of this rank.

        Parameters
        ----------
        rank : int
            This rank.
        schedule : Schedule
            Schedule of the program.
        report : dict
            Report of the native engine.
        places : sequence of str
            Name of each subdomain on a device.
        """
        names = [", ".join(sweep.names) or sweep.kernel for sweep in schedule.sweeps()]
        queues = (
            self._lane_of_queue(n, role, code, places, schedule.ndim) for n, role, code in report["lanes"]
        )
        numbers = [*range(self._host_lanes), *queues]
        for lane, rows in zip(numbers, report["events"], strict=True):
            capacity = MOST - self._event_counts.get(lane, 0)
            for event, sweep, number, tag, begin, end in rows[:capacity].tolist():
                kind = TRACE_EVENTS[int(event)]
                name = _event_name(kind, names[int(sweep)] if sweep >= 0 else "", int(number), int(tag))
                times = self._elapsed + begin, self._elapsed + end
                self.local_events.append(TraceEvent(rank, lane, kind, name, *times))
            self._event_counts[lane] = self._event_counts.get(lane, 0) + min(capacity, len(rows))
        self._elapsed += report["seconds"]
        self._clock_error = max(self._clock_error, report["clock_error"])

    def _lane_of_queue(self, subdomain: int, role: str, code: int, places: Sequence[str], ndim: int) -> int:
        """Return the index of the lane for a device queue, and add the lane if it is new.

        All programs of a subdomain use the same lane.
        """
        row = f"{places[subdomain]}, {role}"
        lane = Lane(row if code < 0 else f"{row} {direction_text(code, ndim)}".rstrip(), row)
        if lane not in self._local_lanes:
            self._local_lanes.append(lane)
        return self._local_lanes.index(lane)

    @property
    def full(self) -> bool:
        """True if the lane of the first thread has reached its maximum number of events."""
        return self._event_counts.get(0, 0) >= MOST

    def write(self, comm: Communicator) -> None:
        """Write the events of all ranks; collective.

        Raises
        ------
        RunError
            The file cannot be written. All ranks raise this error.
        """
        gathered = comm.gather((tuple(self._local_lanes), self.local_events, self._clock_error))
        with comm.agreement("write the trace"):
            if gathered is not None:
                self.all = [event for _, rank_events, _ in gathered for event in rank_events]
                self.lanes = {rank: lanes for rank, (lanes, *_) in enumerate(gathered)}
                error = max(error for *_, error in gathered)
                write_file(self.file, chrome_text(self.all, self.lanes, clock_error=error))


def direction_text(code: int, ndim: int) -> str:
    """Return the direction of a message code as text, such as "x+" or "x-z+"; see `Message.code`."""
    digits = (code // 3**axis % 3 for axis in range(ndim))
    return "".join(f"{axis}{'- +'[digit]}" for axis, digit in zip(AXES, digits, strict=False) if digit != 1)


def _event_name(kind: str, sweep: str, number: int, tag: int) -> str:
    text = kind
    if kind == "patch":
        text = f"patch {number}"
    elif kind in RECEIVED and number >= 0:
        text = f"from rank {number}"
    elif tag >= 0:
        text = f"to rank {number}"
    if tag >= 0:
        text += f", message {tag}"
    return f"{sweep}: {text}" if sweep else text


def chrome_text(
    events: Sequence[TraceEvent], lanes: Mapping[int, Sequence[Lane]], *, clock_error: float = 0.0
) -> str:
    """Return the text of a file in the Trace Event Format; see `chrome_events`.

    `clock_error` is the maximum error of device times in seconds. The file contains this value in
    microseconds.
    """
    document: dict[str, Any] = {"traceEvents": list(chrome_events(events, lanes)), "displayTimeUnit": "ms"}
    if clock_error > 0:
        document["otherData"] = {"device_clock_error_us": round(1e6 * clock_error, 3)}
    return json.dumps(document) + "\n"


def chrome_events(
    events: Sequence[TraceEvent], lanes: Mapping[int, Sequence[Lane]]
) -> Iterator[dict[str, Any]]:
    """Yield the events of the Trace Event Format.

    In this format, ranks appear as processes and lanes as threads. Messages are asynchronous events, because
    they overlap.
    """
    for rank, rank_lanes in lanes.items():
        yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}}
        for number, lane in enumerate(rank_lanes):
            yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": number, "args": {"name": lane.name}}
    for number, event in enumerate(events):
        common = {"name": event.name, "cat": event.kind, "pid": event.rank, "tid": event.lane}
        begin, end = round(event.begin * 1e6, 3), round(event.end * 1e6, 3)
        if event.kind in OVERLAPPING:
            yield {**common, "ph": "b", "id": number, "ts": begin}
            yield {**common, "ph": "e", "id": number, "ts": end}
        else:
            yield {**common, "ph": "X", "ts": begin, "dur": round(end - begin, 3)}
