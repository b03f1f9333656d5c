"""What output and checkpoints took of a run, for its record."""

from __future__ import annotations

from typing import Any

from halocline.archive.arrays import Writing
from halocline.run.ranks.communicator import Communicator


def written(comm: Communicator, writing: Writing) -> dict[str, Any]:
    """What all ranks have written, and how long the slowest took, by the names of a record; all ranks call
    this."""
    every = comm.allgather(writing)
    return {
        "written_bytes": sum(each.bytes for each in every),
        "writing_seconds": max(each.seconds for each in every),
        "waiting_seconds": max(each.waited for each in every),
        "io_ranks": 0 if comm.io_ranks is None else len(comm.io_ranks.ranks),
    }
