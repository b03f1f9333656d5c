"""A single device runs ahead of the host through nested loops, with the same bits as the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import cuda_standin
import halocline as hc
from halocline.run.memory.contents import checksum
from hang import HANG
from seldom_loops import check_random_programs, counting

PROGRAM = Path(__file__).parents[1] / "support" / "seldom_loops.py"


def on_standin(*arguments: str) -> str:
    """Return the output of seldom_loops.py on the stand-in for CUDA, whose streams start their work late."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        env=os.environ | cuda_standin.environment(1, delay=50),
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("examples", [1, pytest.param(200, marks=pytest.mark.long)])
def test_random_programs_have_the_bits_of_the_cpu_on_opencl(examples: int) -> None:
    check_random_programs("opencl:0", examples)


@pytest.mark.parametrize("examples", [2, pytest.param(300, marks=pytest.mark.long)])
def test_random_programs_have_the_bits_of_the_cpu_in_graphs(examples: int) -> None:
    on_standin("compare", "cuda:0", str(examples))


def test_the_host_waits_only_for_running_loops() -> None:
    """Passes whose inner loop ends at once are launched as graphs of two, and the host does not wait."""
    if cuda_standin.real_devices():
        pytest.skip("only the stand-in counts calls")
    counts: list[dict[str, Any]] = json.loads(on_standin("count"))
    of = {(entry["kind"], entry["passes"]): entry for entry in counts}  # the last of equal runs
    waits = {key: entry["cuStreamSynchronize"] + entry["cuEventSynchronize"] for key, entry in of.items()}

    assert of["when", 400]["sweeps"] == [400, 0]
    assert waits["when", 400] == waits["when", 40] <= 8
    assert of["when", 400]["cuLaunchKernel"] == of["when", 40]["cuLaunchKernel"]
    assert 200 <= of["when", 400]["cuGraphLaunch"] <= 204  # several graphs run concurrently

    assert of["every", 400]["sweeps"] == [400, 40]
    more = {name: of["every", 400][name] - of["every", 40][name] for name in of["every", 40]
            if name.startswith("cu")}  # fmt: skip
    assert waits["every", 400] - waits["every", 40] == 36  # one wait for each pass in which the loop runs

    # Nine of ten passes are in five graphs, whose last pass stops at the loop. The loop body is one more
    # graph, and one graph is empty.
    assert more["cuGraphLaunch"] == 36 * 7
    assert more["cuLaunchKernel"] % 36 == 0


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("every", [3, 1000])
def test_a_paused_run_completes_its_pass(every: int) -> None:
    on_device, field = counting(lambda step: hc.every(every), device="opencl:0")
    on_device.set_scalars({"limit": 1e9, "step": 0.0, "total": 0.0})
    threading.Timer(0.3, on_device.engine.request_pause).start()
    report = on_device.engine.run()
    assert report["reason"] == "interrupted"
    passes = on_device.scalars()["step"]
    assert passes > 0

    on_cpu, field_on_cpu = counting(lambda step: hc.every(every), threads=1)
    on_cpu.set_scalars({"limit": passes, "step": 0.0, "total": 0.0})
    expected = on_cpu.engine.run()
    assert report["sweep_counts"] == expected["sweep_counts"]
    assert on_device.scalars()["total"] == on_cpu.scalars()["total"]
    assert checksum(on_device.store, field) == checksum(on_cpu.store, field_on_cpu)
