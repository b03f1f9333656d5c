"""Traces of runs on devices, as files, and the conditions that each trace fulfils."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

TOLERANCE = 500.0  # microseconds: accuracy of device clocks on a busy machine


@dataclass(frozen=True)
class Span:
    """Event of a trace, in microseconds."""

    rank: int
    lane: str
    kind: str
    name: str
    begin: float
    end: float


def read(file: Path) -> list[Span]:
    """Return the events of a file."""
    events = json.loads(file.read_text())["traceEvents"]
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "e"}
    return [
        Span(
            e["pid"],
            lanes[e["pid"], e["tid"]],
            e["cat"],
            e["name"],
            e["ts"],
            ends[e["id"]] if e["ph"] == "b" else e["ts"] + e["dur"],
        )
        for e in events
        if e["ph"] in "Xb"
    ]


def check(spans: list[Span]) -> None:
    """Check that no queue overlaps itself, and that messages are packed, sent and unpacked in order."""
    by_lane = defaultdict(list)
    for span in spans:
        assert span.begin <= span.end
        if span.kind not in ("message", "send"):
            by_lane[span.rank, span.lane].append(span)
    for group in by_lane.values():
        group.sort(key=lambda span: span.begin)
        for before, after in itertools.pairwise(group):
            assert before.end <= after.begin + 0.01, (before, after)
    stages = defaultdict(list)
    for span in spans:
        if ", message " in span.name:
            stages[span.rank, span.name, span.kind].append(span)
    for (rank, name, kind), group in stages.items():
        group.sort(key=lambda span: span.begin)
        previous = {"download": "pack", "copy": "pack", "send": "download", "unpack": "upload"}.get(kind, "")
        before = sorted(stages.get((rank, name, previous), ()), key=lambda span: span.begin)
        assert before or kind not in ("download", "copy")
        # MPI receives a message by the clock of the host; the queues of one device share one clock
        tolerance = TOLERANCE if kind == "send" else 0.01
        for one, other in zip(before, group, strict=bool(before)):
            assert one.end <= other.begin + tolerance, (one, other)
    for (rank, name, kind), group in stages.items():
        if kind != "message":
            continue
        for one, other in zip(group, stages.get((rank, name, "upload"), ()), strict=False):
            assert one.end <= other.begin + TOLERANCE, (one, other)


BENCH = "bench exchange --n 12 --repeat 1 --fields 2 --trace t.json --timeline t.png --json r.json"
