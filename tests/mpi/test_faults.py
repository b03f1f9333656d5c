"""Ranks that are killed or suspended: other ranks end with a message that names the failed rank, or wait."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halocline.run.ranks.launch import Ranks
from hang import HANG
from started_scripts import start

__all__ = ["start"]  # a fixture

EXCHANGE = (
    "simulation(methods='{}').run(steps=FOR_EVER, on_progress=progress_callback(DYING, kill_this_process))"
)
DEATHS = {  # time of death: the ranks, the rank that dies, the script
    "while MPI starts": (
        2,
        1,
        """
        from halocline.run.ranks.library import launcher
        if launcher().rank == DYING:
            mpi.initialised_mpi = kill_this_process
        mpi.world()
        """,
    ),
    "before the problem is built": (
        2,
        0,
        """
        if mpi.world().rank == DYING:
            kill_this_process()
        simulation()
        """,
    ),
    "while kernels are compiled": (
        2,
        1,
        """
        from halocline.run.engine import prepare

        if mpi.world().rank == DYING:
            prepare.compile_library = kill_this_process
        simulation()
        """,
    ),
    "in the exchange by mpi": (2, 1, EXCHANGE.format("mpi")),
    "in the exchange by colocated": (2, 0, EXCHANGE.format("colocated,mpi")),
    "in an epoch of rma": (2, 1, EXCHANGE.format("rma,mpi")),
    "in a reduction": (
        3,
        0,
        "simulation(sums).run(steps=FOR_EVER, on_progress=progress_callback(DYING, kill_this_process))",
    ),
    "in a linear solve": (
        2,
        1,
        """
        u = hc.Grid((512, 512)).field("u", boundary=hc.Value(0.0))
        problem = hc.LinearProblem(lambda u: -hc.laplacian(u), u, 1.0, threads=1)
        kill = progress_callback(DYING, kill_this_process)
        problem.solve(rtol=1e-300, max_iterations=FOR_EVER, on_progress=kill)
        """,
    ),
    "while results are gathered": (
        2,
        0,
        """
        sim = simulation()
        sim.run(steps=10)
        if mpi.world().rank == DYING:
            kill_this_process()
        sim.gather("u")
        """,
    ),
}

# like other cases
LONG = (
    "before the problem is built",
    "while kernels are compiled",
    "in the exchange by colocated",
    "in a linear solve",
    "while results are gathered",
)


@pytest.mark.parametrize(
    "when", [pytest.param(when, marks=pytest.mark.long) if when in LONG else when for when in DEATHS]
)
def test_a_killed_rank_ends_the_run_and_is_reported(start, when):
    ranks, dying, text = DEATHS[when]
    script = f"DYING = {dying}\n{textwrap.dedent(text)}\nmpi.world().barrier()\nprint('went on')\n"
    process = start(script, ranks, through_command=when != "while MPI starts")
    out, err = process.communicate(timeout=HANG)
    output = f"{out}\n{err}"
    died = re.fullmatch(r"dies at (\S+)", out.strip())
    assert died, output
    assert process.returncode not in (0, 2), output
    named = re.findall(r"error: rank (\d+) \(process \d+\) (?:was killed by SIGKILL|died);", err)
    assert named == [str(dying)], output


@given(data=st.data(), ranks=st.integers(2, 5))
def test_the_first_killed_rank_is_reported_by_a_late_launcher(data, ranks):
    """The first rank to die is named, since its line was answered; later ranks die while they wait."""
    first, *later = data.draw(st.permutations(range(ranks)))
    with Ranks() as listener:
        connections = {rank: socket.socket(socket.AF_UNIX) for rank in range(ranks)}
        for rank in data.draw(st.permutations(range(ranks))):
            connections[rank].connect(f"\0{listener.name}")
            connections[rank].sendall(f"rank {rank} {rank + 1000}\n".encode())
            for _ in range(data.draw(st.integers(0, 3))):
                listener.listen(0)
        connections[first].setblocking(False)
        answer = b""
        for _ in range(2 * ranks):  # a call accepts one rank, and first reads the lines of accepted ranks
            listener.listen(0)
            with contextlib.suppress(BlockingIOError):
                answer = connections[first].recv(1)
            if answer:
                break
        assert answer == b"\n"
        for rank in [first, *later]:
            connections[rank].close()
            if data.draw(st.booleans()):
                listener.listen(0)
        while listener.listen(0):
            pass
    assert listener.dead == (str(first), str(first + 1000))
    assert listener.processes == {str(rank + 1000) for rank in range(ranks)}


def test_the_death_of_a_rank_is_detected_despite_its_forked_child():
    script = """
        import os, time
        from halocline.run.ranks.library import send_to_launcher
        assert send_to_launcher(f"rank 3 {os.getpid()}")
        if os.fork() == 0:
            os.close(1)
            time.sleep(600)
            os._exit(0)
        os._exit(1)
    """
    with Ranks() as listener:
        parent = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            env=os.environ | {"HALOCLINE_LAUNCH": listener.name},
            start_new_session=True,
        )
        try:
            end = time.monotonic() + HANG
            while listener.dead is None and time.monotonic() < end:
                listener.listen(0.1)
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
            parent.wait()
    assert listener.dead == ("3", str(parent.pid))


STOPS = ".run(steps=FOR_EVER, on_progress=progress_callback(STOPPED, stop_this_process))"
CHAIN = "simulation(decomposition=(4, 1), methods='{}')" + STOPS
REDUCTION = "simulation(sums)" + STOPS


@pytest.mark.parametrize(
    ("ranks", "stopped", "text"),
    [
        (4, 2, CHAIN.format("mpi")),
        pytest.param(4, 0, CHAIN.format("rma,mpi"), marks=pytest.mark.long),
        pytest.param(4, 2, CHAIN.format("colocated,mpi"), marks=pytest.mark.long),
        pytest.param(4, 2, CHAIN.format("rma,mpi"), marks=pytest.mark.long),
        pytest.param(4, 0, CHAIN.format("mpi"), marks=pytest.mark.long),
        pytest.param(4, 1, CHAIN.format("mpi"), marks=pytest.mark.long),
        pytest.param(2, 1, REDUCTION, marks=pytest.mark.long),
        pytest.param(3, 0, REDUCTION, marks=pytest.mark.long),
    ],
)
def test_a_stopped_rank_ends_the_run_after_the_timeout(start, monkeypatch, ranks, stopped, text):
    """The message names the stopped rank, and no rank that waits for it directly or indirectly."""
    monkeypatch.setenv("HALOCLINE_TIMEOUT", "5")
    process = start(f"STOPPED = {stopped}\n{text}", ranks)
    out, err = process.communicate(timeout=HANG)
    ended = time.monotonic()
    output = f"{out}\n{err}"
    stops = re.fullmatch(r"stops at (\S+)", out.strip())
    assert stops, output
    assert process.returncode == 1, output
    assert len(err.splitlines()) == 1, output
    assert re.search(r"rank \d: waited 5 s in vain for ", err), output
    assert (
        f", since rank {stopped} does not answer: it has stopped or not yet reached this operation" in err
    ), output
    assert ended - float(stops[1]) > 5, output
