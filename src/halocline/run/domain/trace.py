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

MOST = 20_000  # events of each lane that are kept: the first ones
RECEIVED = ("unpack", "message", "upload")  # kinds of which the rank at the other end is the sender


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
    lanes : dict of int to sequence of Lane
        The lanes of each rank, there.
    """

    def __init__(self, file: str | Path, threads: int) -> None:
        self.file = Path(file)
        self.lanes: dict[int, Sequence[Lane]] = {}
        self.own: list[TraceEvent] = []  # of this rank
        self.all: list[TraceEvent] = []
        self._own_lanes = list(lanes_of_host(threads))
        self._hosts = len(self._own_lanes)
        self._kept: dict[int, int] = {}
        self._passed = 0.0
        self._clock_error = 0.0  # of the times of devices, in seconds

    def add(self, rank: int, schedule: Schedule, report: dict[str, Any], places: Sequence[str] = ()) -> None:
        """Take the events of a run.

        Parameters
        ----------
        rank : int
        schedule : Schedule
            Of the program that ran.
        report : dict
            Of the native engine.
        places : sequence of str
            Name of each subdomain on a device.
        """
        names = [", ".join(sweep.names) or sweep.kernel for sweep in schedule.sweeps()]
        queues = (
            self._lane_of_queue(n, role, code, places, schedule.ndim) for n, role, code in report["lanes"]
        )
        numbers = [*range(self._hosts), *queues]
        for lane, rows in zip(numbers, report["events"], strict=True):
            room = MOST - self._kept.get(lane, 0)
            for event, sweep, what, tag, begin, end in rows[:room].tolist():
                kind = TRACE_EVENTS[int(event)]
                name = _name(kind, names[int(sweep)] if sweep >= 0 else "", int(what), int(tag))
                times = self._passed + begin, self._passed + end
                self.own.append(TraceEvent(rank, lane, kind, name, *times))
            self._kept[lane] = self._kept.get(lane, 0) + min(room, len(rows))
        self._passed += report["seconds"]
        self._clock_error = max(self._clock_error, report["clock_error"])

    def _lane_of_queue(self, subdomain: int, role: str, code: int, places: Sequence[str], ndim: int) -> int:
        """Return the number of the lane of a queue, and add the lane where it is new.

        All programs of a subdomain share it.
        """
        row = f"{places[subdomain]}, {role}"
        lane = Lane(row if code < 0 else f"{row} {towards(code, ndim)}".rstrip(), row)
        if lane not in self._own_lanes:
            self._own_lanes.append(lane)
        return self._own_lanes.index(lane)

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
        gathered = comm.gather((tuple(self._own_lanes), self.own, self._clock_error))
        with comm.agreement("write the trace"):
            if gathered is not None:
                self.all = [event for _, own, _ in gathered for event in own]
                self.lanes = {rank: lanes for rank, (lanes, *_) in enumerate(gathered)}
                error = max(error for *_, error in gathered)
                write_file(self.file, chrome_text(self.all, self.lanes, clock_error=error))


def towards(code: int, ndim: int) -> str:
    """Return the direction of messages by its code, such as "x+" or "x-z+"; see `Message.code`."""
    digits = (code // 3**axis % 3 for axis in range(ndim))
    return "".join(f"{axis}{'- +'[digit]}" for axis, digit in zip(AXES, digits, strict=False) if digit != 1)


def _name(kind: str, sweep: str, what: int, tag: int) -> str:
    said = kind
    if kind == "patch":
        said = f"patch {what}"
    elif kind in RECEIVED and what >= 0:
        said = f"from rank {what}"
    elif tag >= 0:
        said = f"to rank {what}"
    if tag >= 0:
        said += f", message {tag}"
    return f"{sweep}: {said}" if sweep else said


def chrome_text(
    events: Sequence[TraceEvent], lanes: Mapping[int, Sequence[Lane]], *, clock_error: float = 0.0
) -> str:
    """Return the text of a file in the Trace Event Format; see `chrome_events`.

    `clock_error` is the greatest error of the times of devices, in seconds; it is written in microseconds.
    """
    whole: dict[str, Any] = {"traceEvents": list(chrome_events(events, lanes)), "displayTimeUnit": "ms"}
    if clock_error > 0:
        whole["otherData"] = {"device_clock_error_us": round(1e6 * clock_error, 3)}
    return json.dumps(whole) + "\n"


def chrome_events(
    events: Sequence[TraceEvent], lanes: Mapping[int, Sequence[Lane]]
) -> Iterator[dict[str, Any]]:
    """Yield the events of the Trace Event Format.

    Processes are ranks, threads are their lanes; messages, which overlap, are asynchronous.
    """
    for rank, own in lanes.items():
        yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}}
        for number, lane in enumerate(own):
            yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": number, "args": {"name": lane.name}}
    for number, event in enumerate(events):
        common = {"name": event.name, "cat": event.kind, "pid": event.rank, "tid": event.lane}
        begin, end = round(event.begin * 1e6, 3), round(event.end * 1e6, 3)
        if event.kind in OVERLAPPING:
            yield {**common, "ph": "b", "id": number, "ts": begin}
            yield {**common, "ph": "e", "id": number, "ts": end}
        else:
            yield {**common, "ph": "X", "ts": begin, "dur": round(end - begin, 3)}
