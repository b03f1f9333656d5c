"""Traces of devices: kernels, packs, copies and unpacks, in addition to threads and messages."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cuda_standin
import halocline as hc
from device_commands import halocline
from halocline.run.ranks.mpi import world
from suites import cases
from traced_devices import BENCH, TOLERANCE, check, read

STEPS = 6


def heat(**execution: Any) -> hc.Simulation:
    """Return a run with walls along y and a step that depends on a reduction."""
    grid = hc.Grid((24, 24), periodic=(True, False))
    u = grid.field("u", boundary=hc.Value(1.0))
    sim = hc.Simulation(
        grid,
        lambda u: {u: hc.laplacian(u)},
        scheme=hc.Euler(),
        dt=lambda u: 1e-4 / (1 + hc.max(abs(u))),
        **execution,
    )
    sim[u] = lambda x, y: hc.sin(6.28 * x)
    return sim


@pytest.mark.ranks(1, 2)
@pytest.mark.usefixtures("opencl")
def test_a_trace_contains_all_device_commands(tmp_path: Path) -> None:
    comm = world()
    file = Path(comm.bcast(str(tmp_path))) / "trace.json"
    heat(device="opencl").run(steps=1)  # PoCL compiles kernels when they first run
    sim = heat(device="opencl", trace=file, subdomains_per_rank=2 // comm.size)
    outcome = sim.run(steps=STEPS)
    reference = heat(device="cpu")
    reference.run(steps=STEPS)
    assert sim.checksum("u") == reference.checksum("u")
    patches = comm.gather(
        sum(len(subdomain.patches.table) * len(subdomain.sweeps) for subdomain in sim.plan.subdomains)
    )
    if comm.rank != 0:
        return
    assert 0 < json.loads(file.read_text())["otherData"]["device_clock_error_us"] < 1e6
    spans = read(file)
    check(spans)
    kinds = Counter(span.kind for span in spans if span.lane.startswith("subdomain"))
    assert kinds["patch"] == STEPS * sum(patches)
    assert kinds["boundary"] >= STEPS
    assert kinds["reduction"] == STEPS * len(sim.devices)
    assert any(span.kind == "launch" and span.lane == "thread 0" for span in spans)
    messages = Counter(span.kind for span in spans if span.lane == "messages")
    if comm.size == 1:
        assert kinds["pack"] == kinds["unpack"] > 0  # from one device's memory to the other device's memory
        assert not messages
    else:
        assert messages["send"] == messages["message"] == kinds["pack"] == kinds["unpack"]
        assert messages["send"] == kinds["download"] - kinds["reduction"]
        assert kinds["upload"] > messages["send"]  # scalars too
    end = max(span.end for span in spans)
    assert outcome is not None
    assert 0.5e6 * outcome.seconds < end < 1e6 * outcome.seconds + TOLERANCE


@cases("ranks, methods", [(1, "mpi"), (2, "colocated,mpi")], default=[(2, "colocated,mpi")])
def test_the_exchange_of_cuda_devices_is_traced(tmp_path: Path, ranks: int, methods: str) -> None:
    environment = cuda_standin.environment(2, delay=50)
    line = f"{BENCH} --device cuda --ranks {ranks} --subdomains-per-rank 2 --methods {methods}"
    result = halocline(line, tmp_path, **environment)
    assert result.returncode == 0, result.stderr
    spans = read(tmp_path / "t.json")
    check(spans)
    kinds = Counter(span.kind for span in spans)
    assert kinds["pack"] > 0
    assert (kinds["send"] > 0) == (methods == "mpi" or "mpi" in result.stdout)
    if ranks == 2:
        assert any("outgoing" in span.lane and span.kind == "copy" for span in spans)
