"""Explanations of runs on devices: kernels, launches, methods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import halocline as hc
from device_commands import SIDES, Devices, explanation_on, halocline, heat
from halocline.run.host.streams import say_once

# -- changed requests ----------------------------------------------------------------------------------------


@pytest.fixture
def notices(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Return the log of a process that has not printed any notice."""
    say_once.cache_clear()
    return caplog


def test_explain_reports_methods_that_devices_lack(
    opencl: Devices, notices: pytest.LogCaptureFixture
) -> None:
    explanation_on("cuda:0,1", ranks=2, methods="rma")
    assert notices.messages == [
        "transfer method rma is not used between devices: its mailboxes are in host memory"
    ]
    notices.clear()
    explanation_on("opencl", ranks=2, methods="gpu_aware")
    assert notices.messages == [
        "transfer method gpu_aware is not used between devices: MPI libraries cannot read the memory of "
        "OpenCL devices"
    ]


# -- explain -------------------------------------------------------------------------------------------------


def test_explain_reports_devices_kernels_and_launches(opencl: Devices):
    explanation = explanation_on("opencl:0,1", ranks=4, rank=3)
    assert explanation.on is not None
    (device,) = explanation.on.devices
    assert (device["device"], device["name"], device["subdomains"], device["ranks"]) == (
        "opencl:1",
        opencl[1].name,
        (3,),
        2,
    )
    assert device["free_bytes"] == opencl[1].free_memory
    assert device["memory_bytes"] > explanation.plan.memory  # padded rows
    assert not device["literal_layouts"]
    kernels = {(kernel["sweep"], kernel["kernel"]): kernel for kernel in explanation.on.kernels}
    sweep = kernels[3, "sweep_2_0"]  # the start and the first residual are before the loop
    assert (sweep["over"], sweep["planes"], sweep["reductions"]) == ("cells", 16, 1)
    assert sweep["fields"] == ("r", "p", "p'")
    assert sweep["block_shape"] == (16, 1, 1)  # vectors of two cells, as wide as the rows of a subdomain
    assert sweep["blocks"] == 2  # 32 cells along x, 16 planes per thread
    assert explanation.on.launches["reductions"] == 2
    assert explanation.on.launches["scalars"] == 0  # several subdomains: the host computes them
    subdomain = explanation.plan.subdomains[0]
    packed = sum(len(sweep.sends) + len(sweep.receives) for sweep in subdomain.sweeps[2:])
    assert explanation.on.launches["copy"] == packed > 0
    text = str(explanation)
    assert "4 ranks with 1 device each" in text
    assert "(measured now: copies within opencl:1, which 2 ranks share)" in text
    for word in ("a += s * b", "cache", "predicted", "multiply-adds"):
        assert word not in text


def test_explain_distinguishes_unsupported_and_disabled_methods(opencl: Devices):
    explanation = str(explanation_on("opencl", ranks=2))
    assert "the same node, but OpenCL processes cannot share device memory" in explanation
    assert "the same node, but colocated is off" in str(explanation_on("cuda:0,1", ranks=2, methods="mpi"))


def test_explain_describes_one_rank_with_two_devices(opencl: Devices):
    explanation = explanation_on("opencl")
    assert explanation.on is not None
    assert [(d["device"], d["subdomains"]) for d in explanation.on.devices] == [
        ("opencl:0", (0,)),
        ("opencl:1", (1,)),
    ]
    assert explanation.on.launches["copy"] > 0
    alone = explanation_on("opencl:1")
    assert alone.on is not None
    assert alone.on.launches["copy"] == 0
    assert alone.on.launches["scalars"] > 0
    assert explanation_on("cpu").on is None


def test_launches_are_consistent_with_their_table(opencl: Devices):
    explanation = explanation_on("opencl")
    assert explanation.on is not None
    listed = [
        k for k in explanation.on.kernels if k["sweep"] > 2 and k["over"] != "boundary"
    ]  # sweeps 1 and 2 are before the loop
    text = str(explanation)
    inside = sum(k["launches"] for k in listed if k["over"] == "halo")
    assert inside > 0
    assert f"launches: {sum(k['launches'] for k in listed)} for sweeps, {inside} of these in the halo" in text
    assert "1 rank with 2 devices: 2 x 1 subdomains" in text


def test_explain_reports_missing_devices(tmp_path: Path, opencl: Devices):
    explanation = explanation_on("opencl:0,9", ranks=2, rank=1)
    assert explanation.on is not None
    assert [(d["device"], d["name"], d["free_bytes"]) for d in explanation.on.devices] == [
        ("opencl:9", None, None)
    ]
    assert explanation.bound() is None
    assert "Not on this machine: opencl:9." in str(explanation)
    assert "bound by memory: unknown, because this machine does not have the devices" in str(explanation)
    line = "explain poisson --n 64 --device cuda:0,1 --ranks 2 --json e.json"
    result = halocline(line, tmp_path, CUDA_VISIBLE_DEVICES="")
    assert result.returncode == 0, result.stderr
    record = json.loads((tmp_path / "e.json").read_text())
    assert record["devices_unknown"] == "not on this machine: cuda:0, cuda:1"
    assert record["bound"] is None
    assert [device["device"] for device in record["devices"]] == ["cuda:1"]
    assert record["kernels"][0]["over"] in ("boundary", "cells")


def test_the_explanation_of_a_run_matches_the_run(opencl: Devices):
    sim = heat(device="opencl")
    explanation = hc.explain(sim)
    assert explanation.on is not None
    assert [device["device"] for device in explanation.on.devices] == SIDES
    storages = [storage for field_storages in sim.store.storages.values() for storage in field_storages]
    assert explanation.memory == sum(storage.bytes for storage in storages)
    assert explanation.plan.subdomains[0].box == sim.domain.transfers.layout.decomposition.box(0)  # type: ignore[union-attr]
