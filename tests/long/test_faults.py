"""Faults of ranks: pauses."""

from __future__ import annotations

from faults import PAUSE
from hang import HANG
from started_scripts import start

__all__ = ["start"]  # a fixture


def test_a_paused_rank_only_delays_the_others(start):
    """A pause of a rank delays the others with every method; the runs overlap, since they mostly wait."""
    runs = {
        method: start(f"run_with_a_pause('{method},mpi', 1)", 2, name=method)
        for method in ("mpi", "colocated", "rma")
    }
    for method, process in runs.items():
        out, err = process.communicate(timeout=HANG)
        assert (process.returncode, err) == (0, ""), out + err
        method_used, steps, seconds, disturbed, calm = out.split()
        assert method_used == method
        assert int(steps) > 20
        assert float(seconds) > PAUSE
        assert disturbed == calm
