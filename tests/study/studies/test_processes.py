"""One process of a node compared with several."""

from __future__ import annotations

import pytest

from halocline.errors import InputError
from halocline.study.engine import plan_runs
from halocline.study.measuring.command import Command
from halocline.study.study import StudyRequest, studies


def request(ranks: int, threads: int = 1, nodes: tuple[int, ...] = (), device: str = "cpu") -> StudyRequest:
    command = Command("run", "heat", {"steps": 4, "dim": 2}, (), device)
    return StudyRequest(studies()["processes"], command, (16,), (ranks,), (threads,), nodes=nodes)


def test_one_process_has_all_subdomains_and_threads() -> None:
    several, one = plan_runs(request(2, threads=3))
    assert (several.layout.ranks, several.layout.threads, several.command.methods) == (2, 3, "mpi")
    assert (one.layout.ranks, one.layout.threads) == (1, 6)
    assert (one.command.subdomains_per_rank, one.command.methods) == (2, "self,peer")


def test_one_process_drives_all_devices() -> None:
    _, one = plan_runs(request(2, device="opencl"))
    assert (one.layout, one.command.subdomains_per_rank) == ((1, 1, None), 1)


def test_the_environment_may_select_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_DEVICE", "opencl")
    without_nodes = StudyRequest(
        studies()["processes"], Command("run", "heat", {"steps": 4, "dim": 2}), (16,), (2,), (1,)
    )
    assert plan_runs(without_nodes)[1].command.subdomains_per_rank == 1


def test_processes_of_several_nodes_are_not_compared() -> None:
    with pytest.raises(InputError, match="--nodes 2: the study compares processes of one node"):
        plan_runs(request(2, nodes=(2,)))
