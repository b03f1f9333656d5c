"""Limits of the system for a process, and the memory of ranks in /dev/shm."""

from __future__ import annotations

import sys

from limited_runs import run


def test_the_required_stack_size_suffices():
    """The largest kernels run with stacks of the size that kernels are assumed to need."""
    command = [sys.executable, "-m", "halocline.cli", "run", "mhd-benchmark", "--n", "16", "--steps", "1"]
    code, out, err = run([*command, "--threads", "2"], "ulimit -s 1024; export OMP_STACKSIZE=256k")
    assert (code, err) == (0, "")
    assert "checksum" in out
