"""Termination of failing ranks: one rank prints the error, and all ranks exit with the same status."""

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
from halocline.run.ranks.mpi import failure_communicator, has_ranks, world

# Times in seconds. A failing rank waits PATIENCE for the failure of the other ranks, and START_PATIENCE for
# the initialisation of MPI. Before an abort, mpiexec gets RELAY_PATIENCE to forward output.
PATIENCE = 2.0
START_PATIENCE = 10.0
RELAY_PATIENCE = 0.5


def ends(error: BaseException) -> int | None:
    """Report an uncaught exception and return the exit status, or None if Python should report it.

    In a process without other ranks, Python reports the exceptions that Halocline did not raise.
    """
    return report(error) if isinstance(error, (HaloclineError, Terminated)) or has_ranks() else None


def report(error: BaseException) -> int:
    """Print the error of a command and return the exit status of this process.

    If all ranks fail, the lowest rank prints the error for all, and all ranks exit with the same status. If
    other ranks continue, this rank prints the error with its rank number, and MPI aborts all ranks.
    """
    code = exit_code(error)
    parent = launcher()
    if not has_ranks():
        complain(describe(error))
        return code
    try:
        failed_ranks = _join(error, code)
    except HaloclineError:  # MPI does not work, so all ranks fail, and the first rank of each node prints
        if parent is None or segments.first_of_node(parent.rank):
            complain(describe(error))
        return code
    from mpi4py import MPI

    if MPI.Is_finalized():
        complain(describe(error))
        return code
    common_status = array("i", [code if failed_ranks.rank == 0 else 0])
    request = failed_ranks.Iallreduce(MPI.IN_PLACE, common_status, MPI.MAX)
    deadline = time.monotonic() + PATIENCE
    while not request.Test():
        if time.monotonic() > deadline:
            _say(f"on rank {failed_ranks.rank} of {failed_ranks.size}:\n{describe(error)}", code)
            MPI.COMM_WORLD.Abort(code)  # for a duplicate communicator, Abort of MPICH 4.0 hangs
            os._exit(code)  # on a busy machine, Abort of MPICH 5.0 returns before mpiexec ends this rank
        time.sleep(0.001)
    if failed_ranks.rank == 0:
        _say(describe(error), common_status[0])
    # When the first rank exits, the launcher terminates the other ranks. With `srun --kill-on-bad-exit`, the
    # exit status would be the status of SIGTERM. Therefore failing ranks ignore SIGTERM.
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    failed_ranks.Barrier()
    return common_status[0]


def _join(error: BaseException, code: int) -> Any:
    """Return the communicator of failing ranks, whose messages are separate from all other messages.

    If this rank failed before the initialisation of MPI, the function initialises MPI. The initialisation may
    block forever if other ranks do not use MPI, so a guard process limits the time.
    """
    if failure_communicator() is None:
        guard = _guard(describe(error), code)
        try:
            world()
        finally:
            os.kill(guard, signal.SIGKILL)
            os.waitpid(guard, 0)
    return failure_communicator()


def _guard(text: str, code: int) -> int:
    """Start a guard process, and return its process ID.

    After START_PATIENCE, the guard prints `text` and kills this process.

    A thread cannot replace the guard process, since the initialisation of MPI holds the lock of the Python
    interpreter.
    """
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
    """Print the final message of ranks that exit with the status `code`.

    mpiexec may drop output that a rank prints just before it aborts. The message is therefore sent directly
    to `halocline.run.ranks.launch`, if that module started the ranks.
    """
    if not send_to_launcher(f"status {code} {json.dumps(text)}"):
        complain(text)
        time.sleep(RELAY_PATIENCE)
