"""Two nodes on one machine: network namespaces that are joined by a veth pair, so that MPI uses TCP."""

from __future__ import annotations

import json
import re

import pytest

from namespaces import ADDRESSES, nodes, run

__all__ = ["nodes", "run"]  # fixtures


def test_a_rank_killed_on_another_node_ends_the_run(run):
    done = run(
        """
import os, signal, time
from halocline.run.ranks import mpi

comm = mpi.world()
comm.barrier()
if comm.rank == 1:
    print("dies", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
comm.barrier()
""",
        2,
    )
    assert done.stdout.strip() == "dies", done
    assert done.returncode not in (0, 2)
    named = rf"halocline: error: process \d+ on {ADDRESSES[1]} (was killed by SIGKILL|died);"
    assert re.search(named, done.stderr), done.stderr


N = 64
SOLVES = f"""
import json
import halocline as hc
from halocline.run.ranks import mpi

for options in (
    {{"methods": "self,mpi"}},
    {{}},
    {{"ranks_per_node": 1}},
    {{"methods": "colocated,mpi"}},
    {{"methods": "rma,mpi"}},
):
    u = hc.Grid(({N}, {N}), walls="node").field("u", boundary=hc.Value(0.0))
    problem = hc.LinearProblem(
        lambda u: -hc.laplacian(u), u, 1.0, threads=1, decomposition="1d-y", **options
    )
    solution = problem.solve(rtol=1e-8)
    transfers = problem.plan.transfers
    checksum = solution.fields.checksum(u)
    if mpi.world().rank == 0:
        last = mpi.world().size - 1
        pairs = ((last // 2, last // 2 + 1), (0, 1))[:last]  # of two nodes, then of one
        print(json.dumps({{
            "options": options,
            "nodes": transfers.layout.nodes,
            "methods": [transfers.method(*pair) for pair in pairs],
            "checksum": checksum,
            "iterations": solution.iterations,
        }}))
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_of_two_nodes_give_the_bits_of_one_rank(nodes, run, ranks):
    def sent() -> int:
        return int(nodes[0].run("cat /sys/class/net/halo/statistics/tx_bytes"))

    done = run(SOLVES, 1)
    assert (done.returncode, done.stderr) == (0, "")
    alone = [json.loads(line) for line in done.stdout.splitlines()]
    before = sent()
    done = run(SOLVES, ranks)
    assert (done.returncode, done.stderr) == (0, "")
    spread = [json.loads(line) for line in done.stdout.splitlines() if line]
    assert len({solve["checksum"] for solve in alone + spread}) == 1
    assert len({solve["iterations"] for solve in alone + spread}) == 1
    assert [solve["nodes"] for solve in spread] == [2, 2, ranks, 2, 2]
    assert [solve["methods"][0] for solve in spread] == ["mpi", "mpi", "mpi", "mpi", "rma"]
    if ranks == 4:
        within = [solve["methods"][1] for solve in spread]
        assert within[1] in ("colocated", "mpi")  # depends on the shared memory
        assert [within[0], *within[2:]] == ["mpi", "mpi", "colocated", "rma"]
    assert sent() - before > 8 * N * sum(solve["iterations"] for solve in spread)
