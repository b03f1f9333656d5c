"""What each thread and message did in a run, in the format that Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halocline.compile.schedule import Schedule
from halocline.errors import RunError
from halocline.run.mpi import Communicator

MOST = 20_000  # events of each thread that are kept: the first ones
DOINGS = ("patch", "halo box", "boundary", "copy", "pack", "unpack", "reduction", "message")


@dataclass(frozen=True)
class Doing:
    """Something that a thread or a message did.

    Attributes
    ----------
    rank : int
    lane : int
        The thread; that after the last holds messages.
    kind : str
        One of DOINGS.
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


class Timeline:
    """Collects what a rank does in its runs, and writes what all ranks did.

    Parameters
    ----------
    file : str or path
    """

    def __init__(self, file: str | Path) -> None:
        self.file = Path(file)
        self.doings: list[Doing] = []  # of this rank
        self.all: list[Doing] = []  # of all ranks, on the first one
        self._kept: dict[int, int] = {}
        self._passed = 0.0

    def add(self, rank: int, schedule: Schedule, report: dict[str, Any]) -> None:
        """Take the events of a run."""
        names = [", ".join(sweep.names) or sweep.kernel for sweep in schedule.sweeps()]
        for lane, rows in enumerate(report["events"]):
            room = MOST - self._kept.get(lane, 0)
            for doing, sweep, what, begin, end in rows[:room].tolist():
                kind = DOINGS[int(doing)]
                self.doings.append(
                    Doing(
                        rank,
                        lane,
                        kind,
                        _name(kind, names[int(sweep)] if sweep >= 0 else "", int(what)),
                        self._passed + begin,
                        self._passed + end,
                    )
                )
            self._kept[lane] = self._kept.get(lane, 0) + min(room, len(rows))
        self._passed += report["seconds"]

    def write(self, comm: Communicator, threads: int) -> None:
        """Write what all ranks did; all ranks call this."""
        gathered = comm.gather(self.doings)
        if gathered is None:
            return
        self.all = [doing for own in gathered for doing in own]
        events = chrome_events(self.all, threads)
        try:
            self.file.write_text(json.dumps({"traceEvents": list(events), "displayTimeUnit": "ms"}) + "\n")
        except OSError as error:
            raise RunError(f"the trace cannot be written: {error}") from None


def _name(kind: str, sweep: str, what: int) -> str:
    if kind == "patch":
        return f"{sweep}: patch {what}"
    if kind in ("unpack", "message"):
        return f"{sweep}: from rank {what}"
    return f"{sweep}: {kind}" if sweep else kind


def chrome_events(doings: Sequence[Doing], threads: int) -> Iterator[dict[str, Any]]:
    """Events of the Trace Event Format: processes are ranks; messages, which overlap, are asynchronous."""
    for rank in sorted({doing.rank for doing in doings}):
        yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}}
        for lane in range(threads + 1):
            name = f"thread {lane}" if lane < threads else "messages"
            yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": lane, "args": {"name": name}}
    for number, doing in enumerate(doings):
        common = {"name": doing.name, "cat": doing.kind, "pid": doing.rank, "tid": doing.lane}
        begin, end = round(doing.begin * 1e6, 3), round(doing.end * 1e6, 3)
        if doing.kind == "message":
            yield {**common, "ph": "b", "id": number, "ts": begin}
            yield {**common, "ph": "e", "id": number, "ts": end}
        else:
            yield {**common, "ph": "X", "ts": begin, "dur": round(end - begin, 3)}
