"""Communicators of this process, and printing from a program that runs on many ranks."""

from __future__ import annotations

import atexit
import builtins
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from halocline import forks
from halocline.errors import InputError, RunError
from halocline.run.host import segments
from halocline.run.host.mpi_library import MPI4PY_VARIABLE, library_of_mpi4py, mpi_library, selected_library
from halocline.run.host.process import affinity
from halocline.run.ranks import excepthook
from halocline.run.ranks.communicator import Communicator, nodes_of
from halocline.run.ranks.io_ranks import IORanks
from halocline.run.ranks.library import (
    Launcher,
    initialised_mpi,
    is_foreign,
    launcher,
    mpiexec,
    send_to_launcher,
)
from halocline.words import short_repr

IO_RANKS = "HALOCLINE_IO_RANKS"  # number of I/O ranks, which are the last ranks of the launcher


@cache
def world() -> Communicator:
    """Return the communicator of all ranks that the launcher started, or of this process alone.

    The first call in a launched process initialises and checks MPI. This call also installs a hook that ends
    all ranks after an uncaught exception (`halocline.run.ranks.excepthook`).

    Raises
    ------
    RunError
        No MPI library works, the MPI library has too little shared memory, or the launcher and
        mpi4py belong to different MPI libraries.
    """
    parent = launcher()
    if parent is None:
        return Communicator()
    send_to_launcher(f"rank {parent.rank} {os.getpid()}")  # a rank may die during the initialisation of MPI
    _at_exit(send_to_launcher, "end")
    if is_foreign(mpi_library()):
        raise RunError(_foreign(parent))  # before the MPI library ends this process with its own error
    segments.prepare()
    MPI = initialised_mpi()
    comm = MPI.COMM_WORLD
    if comm.size == 1 and parent.size is not None and parent.size > 1:
        library = library_of_mpi4py()
        srun = f", or with `srun --mpi={'pmix' if '.so.40' in library else 'pmi2'}`"
        raise RunError(
            f"the launcher ({parent.name}) started {parent.size} processes, but MPI sees only one. "
            f"The launcher belongs to a different MPI than the library in use, {library}. "
            "Start the ranks with `halocline run FILE.py --ranks R`, or with the mpiexec of that library"
            f"{srun if parent.name == 'Slurm' else ''}."
        )
    excepthook.install_again()
    setting = os.environ.get(IO_RANKS) or "0"
    if not setting.isdecimal() or int(setting) >= comm.size:
        raise InputError(
            f"{IO_RANKS} is {short_repr(setting)}; expected fewer I/O ranks than the {comm.size} ranks "
            "of the launcher"
        )
    return _beside_io_ranks(MPI, comm, int(setting)) if int(setting) else _wrap(MPI, comm)


def _foreign(launch: Launcher) -> str:
    library = os.path.realpath(mpi_library())
    try:
        program = str(mpiexec())
    except RunError:
        program = "its mpiexec, which is not installed"
    other = "" if "mpi4py.MPI" not in sys.modules else str(selected_library(os.environ))
    advice = f" Or set {MPI4PY_VARIABLE}={other}." if other and not is_foreign(other) else ""
    return (
        f"the launcher ({launch.name}) started {launch.size} processes, but it belongs to a different "
        f"MPI than the library in use, {library}. Start the ranks with `halocline run FILE.py --ranks R`, or "
        f"with {program}.{advice}"
    )


def _at_exit(function: Callable[..., Any], *args: Any) -> None:
    """Call a function at the end of this process, but not at the end of its forked children."""
    atexit.register(function, *args)
    os.register_at_fork(after_in_child=lambda: atexit.unregister(function))


def _beside_io_ranks(MPI: Any, comm: Any, count: int) -> Communicator:
    """Return the communicator of the compute ranks; on I/O ranks, serve arrays and exit."""
    from halocline.run.ranks.io_ranks import serve  # this module imports the array writers

    first = comm.size - count
    post, role_comm = comm.Dup(), comm.Split(comm.rank >= first, comm.rank)
    segments.forget_names()  # all ranks of the node have mapped the segments
    if comm.rank >= first:
        serve(post, first)
        raise SystemExit(0)
    communicator = _wrap(MPI, role_comm)
    ranks = IORanks(post, tuple(range(first, comm.size)), concurrent=communicator.thread_level == "multiple")
    _at_exit(ranks.end)
    return replace(communicator, io_ranks=ranks)


def communicator_of(communicator: Any) -> Communicator:
    """Return the communicator for a user's choice.

    Parameters
    ----------
    communicator : mpi4py.MPI.Intracomm, Communicator or None
        Communicator of the user. None means all ranks.
    """
    if isinstance(communicator, Communicator):
        return communicator
    return world() if communicator is None else from_user(communicator)


def from_user(comm: Any) -> Communicator:
    """Return the `Communicator` for a user's mpi4py communicator; all its ranks must call the function.

    Derived communicators are stored with the user's communicator and freed with it. Therefore the user must
    not free this communicator while Halocline uses it.
    """
    MPI = initialised_mpi()
    if not isinstance(comm, MPI.Intracomm):
        raise InputError(
            f"communicator is {short_repr(comm)}: expected an mpi4py.MPI.Intracomm, such as MPI.COMM_WORLD"
        )
    excepthook.install_again()
    return _wrap(MPI, comm)


# Communicator for failing ranks, separate from all other messages.
_failure_communicator: Any = None


@cache
def _attribute(MPI: Any) -> int:
    """Return the key of the MPI attribute that stores the Communicator of an MPI communicator.

    The number of MPI communicators is limited (MPICH: 2048). Therefore all simulations on one communicator of
    a user share one duplicate.
    """

    def free(comm: Any, key: int, communicator: Communicator) -> None:
        communicator.free()

    return int(MPI.Comm.Create_keyval(delete_fn=free))


def _wrap(MPI: Any, comm: Any) -> Communicator:
    communicator: Communicator | None = comm.Get_attr(_attribute(MPI))
    if communicator is None:
        communicator = _duplicate(MPI, comm)
        comm.Set_attr(_attribute(MPI), communicator)
    return communicator


def _duplicate(MPI: Any, comm: Any) -> Communicator:
    global _failure_communicator
    duplicate = comm.Dup()
    # MPI errors after the set-up are fatal. Abort all ranks, since some could otherwise wait forever.
    duplicate.Set_errhandler(MPI.ERRORS_ARE_FATAL)
    if _failure_communicator is None:
        _failure_communicator = comm.Dup()
    levels = {
        MPI.THREAD_SINGLE: "single",
        MPI.THREAD_FUNNELED: "funneled",
        MPI.THREAD_SERIALIZED: "serialized",
        MPI.THREAD_MULTIPLE: "multiple",
    }
    level = levels[MPI.Query_thread()]
    node = duplicate.Split_type(MPI.COMM_TYPE_SHARED)
    masks = tuple(node.allgather(affinity()))
    if duplicate.size == MPI.COMM_WORLD.size:  # all ranks of the node have mapped the segments
        segments.forget_names()
    return Communicator(
        duplicate.rank, duplicate.size, duplicate, level, len(masks), masks, node, **nodes_of(duplicate, node)
    )


def has_ranks() -> bool:
    """Return True if this process is one of several ranks of a launcher or of a user's communicator.

    A forked child of such a process has no ranks.
    """
    if forks.is_lost(forks.MPI):
        return False
    return launcher() is not None or _failure_communicator is not None


def failure_communicator() -> Any:
    """Return the communicator for failing ranks; None if no communicator exists yet."""
    return _failure_communicator


def print(*values: Any, **options: Any) -> None:
    """Print on the first rank only.

    Parameters
    ----------
    *values, **options
        Arguments of the built-in print. All ranks must evaluate them, since ``sim.checksum(T)`` and similar
        calls are collective.
    """
    if world().rank == 0:
        builtins.print(*values, **{"flush": True, **options})
