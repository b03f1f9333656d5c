"""Who writes what a run puts together: threads of its ranks, or ranks of their own."""

from __future__ import annotations

from halocline.archive.writer import Writer
from halocline.run.mpi import Communicator
from halocline.run.writer_ranks import RemoteWriter


def writer(comm: Communicator, threads: int) -> Writer | RemoteWriter:
    """What writes chunks: ranks of their own where the run has some, else so many threads of this rank."""
    if comm.writers is None:
        return Writer(threads)
    return RemoteWriter(comm.writers, concurrent=comm.thread_level == "multiple")
