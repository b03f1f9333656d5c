"""Runs on CUDA devices have the CPU's bits: on the stand-in for the driver, by all methods, on all ranks."""

from __future__ import annotations

import pytest

from cuda_runs import QUICK, notices, run
from suites import cases

PEERS = [1, pytest.param(0, marks=pytest.mark.long)]


# -- bits --------------------------------------------------------------------------------------------


def test_one_rank_has_the_same_bits_on_one_and_two_devices():
    results, errors = run(1, ["one device", "default", "several", "mpi"])
    assert results["methods"] == ["mpi", "peer", "self"]
    assert errors == ""


def test_one_rank_has_the_same_bits_without_peer_access():
    """Without peer access the halos between two devices are copied through the host."""
    results, _ = run(1, ["default"], peers=0)
    assert "peer" in results["methods"]


@pytest.mark.parametrize("peers", PEERS)
def test_two_ranks_have_the_same_bits(peers: int):
    results, errors = run(2, ["default", "one device", "several", "mpi"], peers=peers)
    assert {"colocated", "mpi"} <= set(results["methods"])
    assert errors == ""


@pytest.mark.parametrize("peers", PEERS)
def test_delayed_streams_do_not_change_bits(peers: int):
    """Streams begin their work at random moments; a missing wait would change the bits."""
    results, _ = run(2, ["default"], ["heat", "gray_scott"], peers=peers, delay=20000)
    assert "colocated" in results["methods"]


# -- between processes -------------------------------------------------------------------------------


def test_processes_without_peer_access_use_mpi_with_a_notice():
    results, errors = run(2, ["default"], ["heat"], ipc=0)
    assert "colocated" not in results["methods"]
    assert "mpi" in results["methods"]
    (notice,) = notices(errors, "colocated")
    assert "access to an object that another process shares" in notice


def test_wrong_shared_memory_is_detected_and_not_used():
    results, errors = run(2, ["default"], ["heat"], fault="other memory")
    assert "colocated" not in results["methods"]
    (notice,) = notices(errors, "colocated")
    assert "reads other bytes than rank 1 has in its memory" in notice


# -- MPI with memory of devices ----------------------------------------------------------------------


AWARE = {"device": "cuda", "methods": "self,gpu_aware"}


def test_mpi_without_a_gpu_aware_flag_gets_no_device_addresses():
    results, errors = run(2, [AWARE], ["heat"])
    assert results["methods"] == ["mpi"]
    (notice,) = notices(errors, "gpu_aware")
    assert "does not report support for CUDA memory" in notice


def test_gpu_aware_mpi_gets_device_addresses():
    """The stand-in's memory is host memory, so that any MPI library can read it."""
    results, errors = run(2, [AWARE, {**AWARE, "subdomains_per_rank": 2}], QUICK, fault="claims", delay=5000)
    assert "gpu_aware" in results["methods"]
    assert "mpi" not in results["methods"]
    assert errors == ""


@cases(
    "fault, reason",
    [("wrong bytes", "the bytes received from rank 1 differ"), ("silent", "did not arrive within 0.3 s")],
    lambda case: case[0] == "wrong bytes",
)
def test_mpi_that_fails_the_gpu_aware_check_gets_no_device_addresses(fault: str, reason: str):
    results, errors = run(2, [AWARE], ["heat"], fault=fault)
    assert results["methods"] == ["mpi"]
    (notice,) = notices(errors, "gpu_aware")
    assert reason in notice
