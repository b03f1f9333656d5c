"""Text from a program that runs on many ranks."""

from __future__ import annotations

import atexit
import builtins
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from halocline import forks
from halocline.errors import InputError, RunError
from halocline.native import native
from halocline.run.host import segments
from halocline.run.host.process import affinity
from halocline.run.ranks import excepthook
from halocline.run.ranks.communicator import Communicator, nodes_of
from halocline.run.ranks.io_ranks import IORanks
from halocline.run.ranks.library import (
    Launcher,
    initialised,
    is_foreign,
    launcher,
    library_of_mpi4py,
    mpiexec,
    send_to_launcher,
)
from halocline.words import shown

IO_RANKS = "HALOCLINE_IO_RANKS"  # how many of the launcher's ranks, the last ones, are I/O ranks


@cache
def world() -> Communicator:
    """All ranks that the launcher started, or this process alone.

    The first call on a launched process initialises MPI, checks it, and sees to it that an exception
    which nobody catches ends all ranks (`halocline.run.ranks.excepthook`).

    Raises
    ------
    RunError
        The launcher belongs to another MPI, native code is bound to another MPI library than mpi4py,
        there is no working MPI, or it has no room for its shared memory.
    """
    started = launcher()
    if started is None:
        return Communicator()
    send_to_launcher(f"rank {started.rank} {os.getpid()}")  # a rank may die while MPI is initialised
    _at_exit(send_to_launcher, "end")
    if is_foreign(native().mpi_library()):
        raise RunError(_foreign(started))  # before the library ends this process with an error of its own
    segments.prepare()
    MPI = initialised()
    comm = MPI.COMM_WORLD
    if comm.size == 1 and started.size is not None and started.size > 1:
        library = library_of_mpi4py(MPI)
        srun = f", or with `srun --mpi={'pmix' if '.so.40' in library else 'pmi2'}`"
        raise RunError(
            f"the launcher ({started.name}) started {started.size} processes, but MPI sees only one: "
            f"it belongs to another MPI than the library in use, {library}; "
            "start the ranks with `halocline run FILE.py --ranks R`, or with that MPI's own mpiexec"
            f"{srun if started.name == 'Slurm' else ''}"
        )
    excepthook.install_again()
    given = os.environ.get(IO_RANKS) or "0"
    if not given.isdecimal() or int(given) >= comm.size:
        raise InputError(
            f"{IO_RANKS} is {shown(given)}; expected fewer I/O ranks than the {comm.size} ranks there are"
        )
    return _beside_io_ranks(MPI, comm, int(given)) if int(given) else _wrap(MPI, comm)


def _foreign(started: Launcher) -> str:
    library = os.path.realpath(native().mpi_library())
    try:
        program = str(mpiexec())
    except RunError:
        program = "its mpiexec, which is not installed"
    return (
        f"the launcher ({started.name}) started {started.size} processes, but it belongs to another MPI "
        f"than the library in use, {library}: start the ranks with `halocline run FILE.py --ranks R`, or "
        f"with {program}"
    )


def _at_exit(function: Callable[..., Any], *args: Any) -> None:
    """Call a function at the end of this process, but not at the end of its forked children."""
    atexit.register(function, *args)
    os.register_at_fork(after_in_child=lambda: atexit.unregister(function))


def _beside_io_ranks(MPI: Any, comm: Any, count: int) -> Communicator:
    """All ranks but the last ones, the I/O ranks, on which this does not return."""
    from halocline.run.ranks.io_ranks import serve  # it loads what writes

    first = comm.size - count
    post, own = comm.Dup(), comm.Split(comm.rank >= first, comm.rank)
    segments.forget_names()  # all ranks of the node have come
    if comm.rank >= first:
        serve(post, first)
        raise SystemExit(0)
    communicator = _wrap(MPI, own)
    ranks = IORanks(post, tuple(range(first, comm.size)), concurrent=communicator.thread_level == "multiple")
    _at_exit(ranks.end)
    return replace(communicator, io_ranks=ranks)


def communicator_of(given: Any) -> Communicator:
    """The ranks that a user gives: an mpi4py communicator, one of ours, or None for all that there are."""
    if isinstance(given, Communicator):
        return given
    return world() if given is None else from_user(given)


def from_user(comm: Any) -> Communicator:
    """The ranks of a user's mpi4py communicator; all of them must call this.

    What is made of a communicator is kept with it and freed with it: it must live as long as it is used here.
    """
    MPI = initialised()
    if not isinstance(comm, MPI.Intracomm):
        raise InputError(
            f"communicator is {shown(comm)}: expected an mpi4py.MPI.Intracomm, such as MPI.COMM_WORLD"
        )
    excepthook.install_again()
    return _wrap(MPI, comm)


# Ranks that fail meet here, apart from all other messages.
_meeting: Any = None


@cache
def _attribute(MPI: Any) -> int:
    """The attribute of a communicator that holds its Communicator. MPI has few communicators to give (MPICH:
    2048), so that one user's communicator gets one duplicate, however many simulations run on it."""

    def free(comm: Any, key: int, made: Communicator) -> None:
        made.free()

    return int(MPI.Comm.Create_keyval(delete_fn=free))


def _wrap(MPI: Any, comm: Any) -> Communicator:
    known: Communicator | None = comm.Get_attr(_attribute(MPI))
    if known is None:
        known = _duplicate(MPI, comm)
        comm.Set_attr(_attribute(MPI), known)
    return known


def _duplicate(MPI: Any, comm: Any) -> Communicator:
    global _meeting
    own = comm.Dup()
    # An error of MPI after set-up cannot be mended: abort all ranks instead of leaving some waiting.
    own.Set_errhandler(MPI.ERRORS_ARE_FATAL)
    if _meeting is None:
        _meeting = comm.Dup()
    levels = {
        MPI.THREAD_SINGLE: "single",
        MPI.THREAD_FUNNELED: "funneled",
        MPI.THREAD_SERIALIZED: "serialized",
        MPI.THREAD_MULTIPLE: "multiple",
    }
    level = levels[MPI.Query_thread()]
    node = own.Split_type(MPI.COMM_TYPE_SHARED)
    masks = tuple(node.allgather(affinity()))
    if own.size == MPI.COMM_WORLD.size:  # all ranks of the node have come
        segments.forget_names()
    return Communicator(own.rank, own.size, own, level, len(masks), masks, node, **nodes_of(own, node))


def has_ranks() -> bool:
    """Return whether this process is one of several, or has met others through a user's communicator.

    A forked child of such a process has no ranks.
    """
    if forks.is_lost(forks.MPI):
        return False
    return launcher() is not None or _meeting is not None


def meeting() -> Any:
    """Where ranks that fail meet; None before there is a communicator."""
    return _meeting


def print(*values: Any, **options: Any) -> None:
    """Print once, however many ranks run the program: on the first.

    Parameters
    ----------
    *values, **options
        Of Python's own print. All ranks must evaluate them: ``sim.checksum(T)`` and the like are collective.
    """
    if world().rank == 0:
        builtins.print(*values, **{"flush": True, **options})
