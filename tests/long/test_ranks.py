"""Start, agreement and end of ranks, with the real mpiexec."""

from __future__ import annotations

import signal
import time

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


def test_all_ranks_agree_on_the_signal_that_ends_a_run(script):
    """Only the last rank receives the signal."""
    case = script("""
        import halocline as hc
        from halocline.errors import Terminated
        grid = hc.Grid((64, 64), extent=(1.0, 1.0), periodic=True)
        T = grid.field("T")
        sim = hc.Simulation(grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.Euler(), dt=1e-6, threads=1)
        sim[T] = lambda x, y: x
        sim.run(steps=1)
        comm = mpi.world()
        for number, kind in ((signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)):
            sent = []  # a second signal would end the process

            def ask(done):
                if comm.rank == 1 and not sent:
                    sent.append(os.kill(os.getpid(), number))

            try:
                sim.run(steps=10**9, on_progress=ask)
            except KeyboardInterrupt as error:
                assert type(error) is kind, error
            else:
                raise AssertionError
        comm.barrier()
        if comm.rank == 0:
            print("agreed", flush=True)
    """)
    code, out, err = end(start(case, 2))
    assert (code, out) == (0, "agreed\n"), err


def test_an_ignored_signal_stays_ignored(script):
    """A process in the background of a shell ignores the signal."""
    case = script("""
        import halocline as hc
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        grid = hc.Grid((64, 64), periodic=True)
        T = grid.field("T")
        sim = hc.Simulation(grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.Euler(), dt=1e-6, threads=1)
        sim[T] = 1.0
        sim.run(steps=1)
        print("ready", flush=True)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            sim.run(steps=100)
        print("done")
    """)
    process = start(case, None)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    assert end(process) == (0, "done\n", "")
