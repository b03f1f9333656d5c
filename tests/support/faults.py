"""Faults of ranks for tests: a rank dies or hangs at a chosen moment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time

import numpy as np

import halocline as hc
from halocline.native import native
from halocline.run.ranks import mpi

PAUSE = 5.0  # seconds of the pause of a rank
FOR_EVER = 10**9  # steps


def kill_this_process(*_, **__):
    """Print the time and kill this process."""
    print(f"dies at {time.monotonic()}", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def progress_callback(rank, act):
    """Return a callback for `on_progress` with which one rank acts once.

    The rank acts from another thread, during a run of its engine.
    """
    acted = []

    def callback(done):
        elsewhere = threading.current_thread() is not threading.main_thread()
        if mpi.world().rank == rank and done > 20 and elsewhere and not acted:
            acted.append(True)
            act()

    return callback


def heat(u):
    return {u: hc.laplacian(u)}


@hc.program
def sums(u):
    u.set(1.0 - u)
    hc.scalar("total").set(hc.sum(u))


def simulation(function=heat, **options):
    grid = hc.Grid((64, 64), extent=(1.0, 1.0), periodic=True)
    u = grid.field("u")
    timed = {"scheme": hc.Euler(), "dt": 1e-8} if function is heat else {}
    sim = hc.Simulation(grid, function, threads=1, **timed, **options)
    sim[u] = lambda x, y: np.sin(40 * x * x) + np.cos(70 * x * y)
    return sim


def stop_until_continued():
    """Stop this process until a child continues it; then all ranks end."""
    pause = f"sleep {PAUSE}; kill -CONT {os.getpid()}"
    waker = subprocess.Popen(["sh", "-c", pause], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.kill(os.getpid(), signal.SIGSTOP)
    waker.wait()
    native().request_stop()


def stop_this_process():
    """Print the time and stop this process."""
    print(f"stops at {time.monotonic()}", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)


def run_with_a_pause(methods, rank):
    """Run until one rank has been stopped and continued, then repeat the steps without a pause."""
    disturbed, calm = simulation(methods=methods), simulation(methods=methods)
    begun = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        disturbed.run(steps=FOR_EVER, on_progress=progress_callback(rank, stop_until_continued))
    seconds = time.monotonic() - begun
    calm.run(steps=disturbed.steps)
    checksums = disturbed.checksum("u"), calm.checksum("u")
    if mpi.world().rank != rank:
        print(calm.plan.transfers.methods[0], disturbed.steps, seconds, *checksums)
