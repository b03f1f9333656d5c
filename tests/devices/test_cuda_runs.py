"""Runs on CUDA devices have the CPU's bits: on the stand-in for the driver, by all methods, on all ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import bitwise_programs
import cuda_standin
from halocline.run.ranks import launch
from hang import HANG
from loops import some

SUPPORT = Path(__file__).resolve().parents[1] / "support"
ALL = [problem.__name__ for problem in bitwise_programs.PROBLEMS]
QUICK = ["heat", "gray_scott"]
PEERS = [1, pytest.param(0, marks=pytest.mark.long)]

# By default of all methods the first that applies.
WAYS: dict[str, dict[str, Any]] = {
    "default": {"device": "cuda"},
    "mpi": {"device": "cuda", "methods": "mpi"},
    "one device": {"device": "cuda:0"},
    "several": {"device": "cuda", "subdomains_per_rank": 2, "decomposition": "1d-x"},
    "no self": {"device": "cuda", "methods": "peer,colocated", "halo": "uniform", "patch": 4},
    "no peer": {"device": "cuda", "methods": "colocated", "subdomains_per_rank": 2, "overlap": False},
    "pretended nodes": {"device": "cuda", "ranks_per_node": 1},
}


def run(
    ranks: int,
    ways: Sequence[str | dict[str, Any]],
    problems: Sequence[str] = QUICK,
    dtypes: Sequence[str] = ("float64",),
    devices: int = 2,
    fault: str = "",
    own_device: bool = False,
    **settings: object,
) -> tuple[dict[str, Any], str]:
    """What came of problems in these ways on so many ranks, and what these said."""
    task = {
        "problems": problems,
        "dtypes": dtypes,
        "ways": [WAYS[way] if isinstance(way, str) else way for way in ways],
        "fault": fault,
        "own device": own_device,
    }
    environment = launch.environment() | cuda_standin.environment(devices, **settings)
    environment |= {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(SUPPORT), environment.get("PYTHONPATH", "")])
    command = [str(launch.mpiexec()), "-n", str(ranks), sys.executable, str(SUPPORT / "cuda_ranks.py")]
    done = subprocess.run(
        [*command, json.dumps(task)], env=environment, capture_output=True, text=True, timeout=HANG
    )
    assert done.returncode == 0, done.stdout + done.stderr
    came: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert came["tried"] >= len(problems) * len(dtypes)
    return came, done.stderr


# -- bits --------------------------------------------------------------------------------------------


def test_one_rank_on_one_device_and_on_two():
    came, said = run(1, ["one device", "default", "several", "mpi"])
    assert came["methods"] == ["mpi", "peer", "self"]
    assert said == ""


def test_one_rank_without_peer_access():
    """Halos go by way of a copy between devices then."""
    came, _ = run(1, ["default"], peers=0)
    assert "peer" in came["methods"]


@pytest.mark.parametrize("peers", PEERS)
def test_two_ranks(peers: int):
    came, said = run(2, ["default", "one device", "several", "mpi"], peers=peers)
    assert {"colocated", "mpi"} <= set(came["methods"])
    assert said == ""


def test_four_ranks_on_two_devices():
    came, _ = run(4, ["no self", "no peer"], ["heat"])
    assert "colocated" in came["methods"]


def test_stages_walls_and_reductions():
    came, _ = run(2, ["default"], ["fluxes"])
    assert "colocated" in came["methods"]


@pytest.mark.long
def test_ranks_of_different_nodes_do_not_share():
    came, said = run(2, ["pretended nodes"], ["heat"])
    assert "colocated" not in came["methods"]
    assert "mpi" in came["methods"]
    assert said == ""


@pytest.mark.parametrize("peers", PEERS)
def test_work_that_begins_late_finds_what_it_waits_for(peers: int):
    """Streams begin with their work at random moments: whoever does not wait sees other bits."""
    came, _ = run(2, ["default"], ["heat", "gray_scott"], peers=peers, delay=20000)
    assert "colocated" in came["methods"]


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("dtype", bitwise_programs.DTYPES)
@pytest.mark.parametrize("settings", [{}, {"peers": 0}, {"ipc": 0}, {"delay": 20000}], ids=str)
def test_every_problem_in_every_way(ranks: int, dtype: str, settings: dict[str, int]):
    for problem in ALL:
        if not (settings.get("delay") and problem.startswith("cg")):  # which wait for each reduction
            run(ranks, list(WAYS), [problem], [dtype], **settings)


# -- between processes -------------------------------------------------------------------------------


def notices(said: str, method: str) -> list[str]:
    return [line for line in said.splitlines() if f"transfer method {method} is not taken" in line]


def test_processes_that_are_out_of_reach_take_mpi_and_say_so():
    came, said = run(2, ["default"], ["heat"], ipc=0)
    assert "colocated" not in came["methods"]
    assert "mpi" in came["methods"]
    (notice,) = notices(said, "colocated")
    assert "opening what another process shares" in notice


def test_memory_that_is_not_what_it_should_be_is_not_used():
    came, said = run(2, ["default"], ["heat"], fault="other memory")
    assert "colocated" not in came["methods"]
    (notice,) = notices(said, "colocated")
    assert "sees other bytes than rank 1 has in its memory" in notice


def test_each_rank_sees_its_own_device_alone():
    """CUDA_VISIBLE_DEVICES: both call theirs cuda:0, and only peer access reaches the other one."""
    came, said = run(2, ["default"], ["heat"], own_device=True)
    assert "colocated" in came["methods"]
    assert said == ""
    came, said = run(2, ["default"], ["heat"], own_device=True, peers=0)
    assert "colocated" not in came["methods"]
    assert len(notices(said, "colocated")) == 1


@pytest.mark.long
def test_memory_is_given_back_once_the_other_process_has_let_go_of_it():
    came, _ = run(2, ["default"] * 24, ["heat"])
    # what the other one still had a moment ago stays until the next engine, or few
    for own in some(came["held"]):
        assert len(own) == 24
        # an engine has 6, of which any may stay for a while; one a run that stayed for good would come to 24
        assert max(own) <= 12, own


# -- MPI with memory of devices ----------------------------------------------------------------------

AWARE = {"device": "cuda", "methods": "self,gpu_aware"}


def test_mpi_that_says_nothing_is_given_no_address():
    came, said = run(2, [AWARE], ["heat"])
    assert came["methods"] == ["mpi"]
    (notice,) = notices(said, "gpu_aware")
    assert "does not say that it takes CUDA memory" in notice


def test_mpi_that_takes_addresses_is_given_them():
    """The stand-in's memory is the host's, so that any MPI does."""
    came, said = run(2, [AWARE, {**AWARE, "subdomains_per_rank": 2}], QUICK, fault="claims", delay=5000)
    assert "gpu_aware" in came["methods"]
    assert "mpi" not in came["methods"]
    assert said == ""


@pytest.mark.parametrize(
    ("fault", "why"), [("wrong bytes", "other bytes came from rank 1"), ("silent", "did not come in 0.3 s")]
)
def test_mpi_that_does_not_keep_its_word_is_given_no_address(fault: str, why: str):
    came, said = run(2, [AWARE], ["heat"], fault=fault)
    assert came["methods"] == ["mpi"]
    (notice,) = notices(said, "gpu_aware")
    assert why in notice
