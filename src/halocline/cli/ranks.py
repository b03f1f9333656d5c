"""Start of the current command on several ranks."""

from __future__ import annotations

import os
import sys

import typer

from halocline.errors import InputError
from halocline.run.ranks.launch import launch
from halocline.run.ranks.library import launcher
from halocline.run.ranks.mpi import IO_RANKS, world
from halocline.run.simulation.progress import share_terminal


def start_ranks(
    ranks: int | None,
    io_ranks: int = 0,
    threads: int | None = None,
    per_node: int | None = None,
    *,
    needs_mpi: bool = False,
) -> None:
    """Start all ranks and exit with their status; return if this process is already one of the ranks.

    Parameters
    ----------
    ranks : int, optional
        Number of ranks that compute.
    io_ranks : int
        Number of additional I/O ranks.
    threads : int, optional
        Threads per rank.
    per_node : int, optional
        Ranks per node.
    needs_mpi : bool
        True to start MPI even for a single rank, which sends messages to itself.

    Raises
    ------
    InputError
        A launcher has started a different number of ranks or I/O ranks.
    """
    parent = launcher()
    needs_several = (ranks or 1) > 1 or io_ranks > 0
    if parent is not None and not (parent.size == 1 and needs_several):
        size = world().size
        if ranks not in (None, size):
            raise InputError(
                f"--ranks is {ranks}, but the launcher ({parent.name}) started {size}. Leave --ranks out, or "
                f"start {ranks} ranks."
            )
        if io_ranks and os.environ.get(IO_RANKS) != str(io_ranks):
            raise InputError(
                f"--io-ranks is {io_ranks}, but the launcher ({parent.name}) has already started all ranks. "
                f"Set {IO_RANKS}={io_ranks} in the environment of the launcher, so that the last {io_ranks} "
                "of these ranks become I/O ranks."
            )
    elif needs_several or (needs_mpi and parent is None):
        share_terminal()
        command = [sys.executable, "-m", "halocline.cli", *sys.argv[1:]]
        raise typer.Exit(launch(ranks or 1, command, io_ranks=io_ranks, threads=threads, per_node=per_node))
