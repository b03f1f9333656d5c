"""Runs on CUDA devices have the CPU's bits: on the stand-in for the driver, by all methods, on all ranks."""

from __future__ import annotations

import pytest

import bitwise_programs
from cuda_runs import WAYS, notices, run
from loops import some

ALL = [problem.__name__ for problem in bitwise_programs.PROBLEMS]


# -- bits --------------------------------------------------------------------------------------------


def test_ranks_of_different_nodes_do_not_share():
    results, errors = run(2, ["pretended nodes"], ["heat"])
    assert "colocated" not in results["methods"]
    assert "mpi" in results["methods"]
    assert errors == ""


# each setting with each number of ranks, in one of two precisions; processes share no memory with one rank
@pytest.mark.parametrize(
    ("settings", "ranks", "dtype"),
    [
        ({}, 1, "float64"), ({}, 2, "float32"), ({}, 4, "float64"),
        ({"peers": 0}, 1, "float32"), ({"peers": 0}, 2, "float64"), ({"peers": 0}, 4, "float32"),
        ({"ipc": 0}, 2, "float32"), ({"ipc": 0}, 4, "float64"),
        ({"delay": 20000}, 1, "float64"), ({"delay": 20000}, 2, "float32"), ({"delay": 20000}, 4, "float64"),
    ],
    ids=str,
)  # fmt: skip
def test_every_problem_has_the_same_bits_for_all_options(settings: dict[str, int], ranks: int, dtype: str):
    for problem in ALL:
        if not (settings.get("delay") and problem.startswith("cg")):  # these solvers wait for each reduction
            run(ranks, list(WAYS), [problem], [dtype], **settings)


# -- between processes -------------------------------------------------------------------------------


def test_shared_memory_is_freed_after_its_release_by_the_other_process():
    results, _ = run(2, ["default"] * 24, ["heat"])
    # memory that the other process held a moment ago remains until one of the next engines
    for held in some(results["held"]):
        assert len(held) == 24
        # an engine has 6 blocks of memory, which may remain for a while; a leak of one per run would reach 24
        assert max(held) <= 12, held


def test_four_ranks_on_two_devices_have_the_same_bits():
    results, _ = run(4, ["no self", "no peer"], ["heat"])
    assert "colocated" in results["methods"]


def test_stages_walls_and_reductions_have_the_same_bits():
    results, _ = run(2, ["default"], ["fluxes"])
    assert "colocated" in results["methods"]


def test_each_rank_sees_only_its_own_device():
    """Both ranks name their device cuda:0 (CUDA_VISIBLE_DEVICES); peer access reaches the other one."""
    results, errors = run(2, ["default"], ["heat"], own_device=True)
    assert "colocated" in results["methods"]
    assert errors == ""
    results, errors = run(2, ["default"], ["heat"], own_device=True, peers=0)
    assert "colocated" not in results["methods"]
    assert len(notices(errors, "colocated")) == 1
