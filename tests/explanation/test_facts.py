"""Explanations of solves: messages, bytes, predictions."""

from __future__ import annotations

import json
import re
import time
import tracemalloc

import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.explanation.explain import explain_program
from halocline.explanation.text import lines
from halocline.problems.problem import Problem
from suites import cases


def poisson(n: int, dim: int, method: str = "cg-fused", **options: object):
    case = Problem("poisson", [n] * dim, {"method": method})
    return explain_program(case.program, case.grid, **options)


def test_messages_of_all_ranks_cover_the_cuts_of_the_grid():
    explanations = [poisson(96, 2, ranks=12, rank=k, decomposition="3x4") for k in range(12)]
    sweep = [t.loop[0] for t in explanations]
    cuts = [2 * 4, 3 * 3]  # inner sides along x, along y
    assert sum(s.messages for s in sweep) == 2 * sum(cuts)
    assert sum(s.bytes_sent for s in sweep) == 2 * 8 * (2 * 96 + 3 * 96)
    assert sum(t.plan.subdomains[0].box.size for t in explanations) == 96 * 96


def test_only_required_segments_are_exchanged():
    explanation = poisson(1024, 2, ranks=64)
    first, second = explanation.loop
    r, p = first.halos
    assert (r.field, r.travels, r.walls) == ("r", ("x-", "x+", "y-", "y+"), ())
    assert (p.field, p.travels) == ("p", ())
    assert "this sweep also computes the field in the halo" in p.reason
    assert second.messages == 0
    assert "sweep 3 also computes the field in the halo" in second.halos[0].reason
    assert explanation.bytes_per_cell == 64
    assert (first.messages, first.bytes_sent) == (4, 4 * 128 * 8)
    assert "conjugate gradients: curvature = dot(p, A(p))" in first.statements
    corner = poisson(1024, 2, ranks=64, rank=0)
    assert corner.loop[0].halos[0].travels == ("x+", "y+")
    assert corner.loop[0].halos[0].walls == ("x-", "y-")
    assert poisson(64, 2).loop[0].halos[0].travels == ()


def test_explaining_one_rank_of_many_is_cheap():
    tracemalloc.start()
    start_time = time.process_time()
    explanation = poisson(4096, 3, ranks=100_000)
    seconds, (_, peak) = time.process_time() - start_time, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert explanation.plan.decomposition.count == 100_000
    assert seconds < 3
    assert peak < 30e6


def test_the_bound_is_the_larger_of_memory_and_arithmetic_time(monkeypatch):
    explanation = poisson(256, 2, ranks=4)
    monkeypatch.setattr("halocline.explanation.facts.multiply_add_peak", lambda comm, threads, dtype: 1e15)
    bound = explanation.bound()
    assert bound.limit == "memory"
    assert bound.seconds_per_pass == pytest.approx(64 * 128 * 128 / bound.bandwidth)
    monkeypatch.setattr("halocline.explanation.facts.multiply_add_peak", lambda comm, threads, dtype: 1e6)
    slow = explanation.bound()
    assert slow.limit == "arithmetic"
    assert slow.seconds_per_pass == pytest.approx(explanation.flops_per_cell * 128 * 128 / 1e6)
    assert "bound by arithmetic" in "\n".join(lines(explanation, slow))
    assert json.loads(json.dumps(explanation.as_dict()))["pass"]["bytes_per_cell"] == 64


@cases(
    "options, latencies, crossings",
    [
        ({"methods": "mpi"}, 1, 4),
        ({"methods": "rma,mpi"}, 3, 4),
        ({}, 1, 2),  # one node: colocated
        ({"ranks_per_node": 1}, 1, 4),
        ({"ranks": 1, "subdomains_per_rank": 4}, 0, 2),  # peer, and no reduction over ranks
    ],
    lambda case: case[1] != 1,
)
def test_the_prediction_counts_by_transfer_method(options, latencies, crossings):
    """Each of 2 x 2 subdomains has two neighbours and receives 128 numbers of r from each."""
    explanation = poisson(256, 2, **{"ranks": 4, **options})
    bound, subdomain_count = explanation.bound(), len(explanation.plan.subdomains)
    hops = 2 * 2 if subdomain_count == 1 else 0
    latency = bound.latency * (subdomain_count * 2 * latencies + hops)
    transfer_seconds = subdomain_count * 2 * 128 * 8 * crossings / bound.bandwidth
    assert bound.predicted - bound.seconds_per_pass == pytest.approx(latency + transfer_seconds)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ranks": 4, "rank": 4}, "rank is 4; expected a number from 0 to 3"),
        ({"ranks": 10**6}, "10000"),
        ({"threads": 0}, "threads is 0"),
        ({"patch": 0}, "patch"),
        ({"ranks": 3, "decomposition": "2x1"}, "2x1"),
    ],
)
def test_invalid_plans_are_reported(options, words):
    with pytest.raises(InputError, match=re.escape(words)):
        poisson(10, 2, **options)


def test_a_simulation_is_explained_for_its_ranks_and_for_more() -> None:
    grid = hc.Grid((64, 32), periodic=True)
    grid.field("u")
    options = {"threads": 2, "decomposition": "1d-y", "patch": 8}
    sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-5, **options)
    explanation = hc.explain(sim)
    assert (explanation.plan.decomposition.count, explanation.plan.threads) == (1, 2)
    assert len(explanation.plan.subdomains[0].patches.table) == 8 * 4
    assert hc.explain(sim, ranks=4).plan.decomposition.parts == (1, 4)
    text = str(hc.explain(sim, ranks=4, decomposition="optimal", threads=1))
    assert "4 ranks of 1 thread: 4 x 1 subdomains, decomposition optimal" in text
    assert "predicted:" in text
    u = grid.find("u")
    assert "sweep 2" in str(hc.explain(hc.LinearProblem(lambda u: u - hc.laplacian(u), u, 1.0)))
