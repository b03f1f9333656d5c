"""Traces of threads and messages: complete and in order."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import halocline as hc
from halocline.errors import RunError
from halocline.run.domain import trace
from halocline.run.ranks.mpi import world


def traced(file: Path, **options: Any) -> hc.Simulation:
    grid = hc.Grid((24, 24), periodic=True)
    u = grid.field("u")
    sim = hc.Simulation(
        grid,
        lambda u: {u: hc.laplacian(u)},
        scheme=hc.Euler(),
        dt=lambda u: 1e-4 / (1 + hc.max(abs(u))),
        trace=file,
        **options,
    )
    sim[u] = lambda x, y: hc.sin(6.28 * x)
    return sim


@pytest.mark.ranks(1, 2, long=(1,))
@pytest.mark.parametrize("methods", ["self,mpi", "self,colocated,rma"])
def test_a_trace_contains_all_events(tmp_path: Path, methods: str) -> None:
    comm = world()
    file = Path(comm.bcast(str(tmp_path))) / "trace.json"
    steps, threads = 5, 2
    sim = traced(file, threads=threads, methods=methods, patch=8)
    sim.run(steps=steps)
    plan = sim.plan.subdomains[0]
    patch_counts = comm.gather(steps * len(plan.sweeps) * len(plan.patches.table))
    if comm.rank != 0:
        return
    events = json.loads(file.read_text())["traceEvents"]
    names = {(e["pid"], e.get("tid")): e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names[comm.size - 1, 0] == "thread 0"
    assert names[0, threads] == "messages"
    spans = [e for e in events if e["ph"] == "X"]
    for rank in range(comm.size):
        rank_spans = [e for e in spans if e["pid"] == rank]
        patches = [e for e in rank_spans if e["cat"] == "patch"]
        assert len(patches) == patch_counts[rank]
        # a single rank does not wait for results
        assert sum(e["cat"] == "reduction" for e in rank_spans) == (steps if comm.size > 1 else 0)
        for lane in range(threads):  # the spans of a thread do not overlap
            lane_spans = sorted((e for e in rank_spans if e["tid"] == lane), key=lambda e: e["ts"])
            for before, after in itertools.pairwise(lane_spans):
                assert before["ts"] + before["dur"] <= after["ts"] + 0.01
    begins = [e for e in events if e["ph"] == "b"]
    assert len(begins) == sum(e["ph"] == "e" for e in events)
    if comm.size == 1:
        assert not begins
    else:
        messages = sum(len(sweep.receives) for sweep in plan.sweeps)
        assert len(begins) == comm.size * steps * messages
        assert sum(e["cat"] == "unpack" for e in spans) >= len(begins)


def test_a_trace_has_a_maximum_number_of_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MOST", 50)
    sim = traced(tmp_path / "trace.json", threads=1)
    sim.run(steps=30)
    sim.run(steps=30)
    assert sim.domain.timeline is not None
    assert len(sim.domain.timeline.all) == 50


def test_an_unwritable_trace_is_reported(tmp_path: Path) -> None:
    sim = traced(tmp_path / "none" / "trace.json", threads=1)
    with pytest.raises(RunError, match=r"cannot write .*none/trace.json: No such file"):
        sim.run(steps=1)
