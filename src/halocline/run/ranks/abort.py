"""The end of ranks that fail: one of them prints why, and all end with the same status."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from array import array
from typing import Any

from halocline.errors import HaloclineError, Terminated
from halocline.run.host import segments
from halocline.run.host.streams import complain
from halocline.run.ranks.failure import describe, exit_code
from halocline.run.ranks.library import launcher, send_to_launcher
from halocline.run.ranks.mpi import has_ranks, meeting, world

PATIENCE = 2.0  # seconds that a failing rank waits for the others to fail too
START_PATIENCE = 10.0  # the same where MPI must be initialised first
RELAY_PATIENCE = 0.5  # seconds that mpiexec gets to pass on what was printed


def ends(error: BaseException) -> int | None:
    """Report an exception that nobody caught, and return the exit status; None where it is Python's matter:
    it is no error of ours, and this process is alone."""
    return report(error) if isinstance(error, (HaloclineError, Terminated)) or has_ranks() else None


def report(error: BaseException) -> int:
    """Print `error` as a command's last word, and return the exit status that the process must have.

    Where all ranks fail, the lowest one prints for all of them and their status is the same. Where
    others go on, this rank prints with its name, and MPI ends all of them.
    """
    code = exit_code(error)
    started = launcher()
    if not has_ranks():
        complain(describe(error))
        return code
    try:
        failed = _join(error, code)
    except HaloclineError:  # MPI does not work so: no rank can get far, and the first of each node speaks
        if started is None or segments.first_of_node(started.rank):
            complain(describe(error))
        return code
    from mpi4py import MPI

    if MPI.Is_finalized():
        complain(describe(error))
        return code
    common = array("i", [code if failed.rank == 0 else 0])
    request = failed.Iallreduce(MPI.IN_PLACE, common, MPI.MAX)
    deadline = time.monotonic() + PATIENCE
    while not request.Test():
        if time.monotonic() > deadline:
            _say(f"on rank {failed.rank} of {failed.size}:\n{describe(error)}", code)
            MPI.COMM_WORLD.Abort(code)  # of a duplicate, MPICH 4.0 does not return
            os._exit(code)  # on a busy machine that of MPICH 5.0 does, before mpiexec has ended this rank
        time.sleep(0.001)
    if failed.rank == 0:
        _say(describe(error), common[0])
    # The first rank to end with this status ends all: launchers terminate the others, and with `srun
    # --kill-on-bad-exit` the status would be that of SIGTERM.
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    failed.Barrier()
    return common[0]


def _join(error: BaseException, code: int) -> Any:
    """The communicator on which failing ranks meet. Where this rank failed before MPI was initialised,
    that must happen now, and may wait for ever for ranks that do not need MPI."""
    if meeting() is None:
        guard = _guard(describe(error), code)
        try:
            world()
        finally:
            os.kill(guard, signal.SIGKILL)
            os.waitpid(guard, 0)
    return meeting()


def _guard(text: str, code: int) -> int:
    """Start a process that says `text` and kills this one after START_PATIENCE; return its number.
    No thread could: Python's lock is held while MPI is initialised."""
    parent = os.getpid()
    guard = os.fork()
    if guard:
        return guard
    end = time.monotonic() + START_PATIENCE
    while time.monotonic() < end:
        if os.getppid() != parent:
            os._exit(0)
        time.sleep(0.1)
    _say(text, code)
    os.kill(parent, signal.SIGKILL)
    os._exit(0)


def _say(text: str, code: int) -> None:
    """The last words of ranks that end with the status `code`. mpiexec does not always pass on what a rank
    prints just before it aborts, so that they go to `halocline.run.ranks.launch` directly, where that
    listens."""
    if not send_to_launcher(f"status {code} {json.dumps(text)}"):
        complain(text)
        time.sleep(RELAY_PATIENCE)
