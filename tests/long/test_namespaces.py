"""Two nodes on one machine: network namespaces that are joined by a veth pair, so that MPI uses TCP."""

from __future__ import annotations

import re

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
