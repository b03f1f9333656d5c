"""Start, agreement and end of ranks, with the real mpiexec."""

from __future__ import annotations

from launched_scripts import end, script, start

__all__ = ["script"]  # fixtures


def test_a_rank_failure_before_mpi_ends_the_run(script):
    case = script("""
        if launcher().rank == 1:
            raise InputError("early")
        time.sleep(40)
    """)
    code, _, err = end(start(case, 2))
    assert code == 2
    assert "early" in err
