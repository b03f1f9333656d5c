"""Limits of the system for a process, and the memory of ranks in /dev/shm."""

from __future__ import annotations

import re
import sys

from limited_runs import RUN, in_small_shm, run, script, with_ranks

__all__ = ["script"]  # a fixture


def test_the_required_stack_size_suffices():
    """The largest kernels run with stacks of the size that kernels are assumed to need."""
    command = [sys.executable, "-m", "halocline.cli", "run", "mhd-benchmark", "--n", "16", "--steps", "1"]
    code, out, err = run([*command, "--threads", "2"], "ulimit -s 1024; export OMP_STACKSIZE=256k")
    assert (code, err) == (0, "")
    assert "checksum" in out


def test_a_bus_error_of_a_rank_is_reported_as_lack_of_shared_memory(script):
    file = script(
        "import os, signal, time\nfrom halocline.run.ranks import mpi\n"
        "if mpi.world().rank == 1:\n    os.kill(os.getpid(), signal.SIGBUS)\ntime.sleep(600)"
    )
    code, _, err = run(with_ranks(file, 2))
    assert code not in (0, 2)
    assert re.search(
        r"killed by SIGBUS, probably because /dev/shm is full \(it has \d+ bytes available\)", err
    ), err


def test_mailboxes_without_shared_memory_are_rejected(script):
    file = script(RUN.replace("METHODS", "'rma,mpi'").replace("(32, 32)", "(8, 40000)"))
    code, out, err = in_small_shm("2200k", with_ranks(file, 2))
    assert (code, out) == (1, "")
    assert err.count("halocline: error:") == 1
    assert re.search(r"error: program '.+': the method rma in /dev/shm of a node needs \d+ bytes", err), err
    assert "remove rma from the transfer methods" in err
