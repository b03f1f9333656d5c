"""Shared memory segments of MPICH: files in /dev/shm that every rank of a node maps when MPI starts.

The shared memory of Halocline itself consists of anonymous files (native/src/storage/memory.hpp), which have
no names in /dev/shm.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from halocline.errors import RunError

FOLDER = Path("/dev/shm")
NAMES = "mpich_*"
# Bytes of shared memory per rank of a node, measured with MPICH 5.0.2 on 1 to 8 ranks. MPICH always uses
# NEEDED bytes. MPICH and UCX together use TAKEN bytes if so many are available.
NEEDED, TAKEN = 1057344, 5400000
START = 60.0  # maximum time between the starts of the first and last rank, in seconds
ADVICE = (
    "make /dev/shm larger (`mount -o remount,size=1G /dev/shm`, `docker run --shm-size=1g`), remove unused "
    "files from it, or start fewer ranks on this node"
)


def first_of_node(rank: int, environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if this rank is the first of its node. The first rank prints the messages of the node."""
    return environment.get("MPI_LOCALRANKID", str(rank)) == "0"


def room() -> int | None:
    """Return the free bytes of /dev/shm, or None if it does not exist."""
    try:
        status = os.statvfs(FOLDER)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def lack(ranks: int, free: int | None) -> str:
    """Return an error text if the ranks of a node need more than `free` bytes to start MPI, else ""."""
    required = ranks * NEEDED
    if free is None or free >= required:
        return ""
    owners = "1 rank" if ranks == 1 else f"{ranks} ranks"
    return (
        f"MPI needs {required} bytes of shared memory for {owners}, "
        f"but {FOLDER} has {free} bytes available: {ADVICE}"
    )


def prepare(environment: Mapping[str, str] = os.environ) -> None:
    """Check that the shared memory suffices for MPI, and configure UCX; called before MPI starts.

    UCX sometimes fails if less shared memory is available than UCX and MPICH use by default. In this case,
    UCX is configured to use no shared memory.

    Raises
    ------
    RunError
        The shared memory is too small for MPI to start. All ranks of the node raise this error.
    """
    ranks = environment.get("MPI_LOCALNRANKS", "")
    free = room()
    if not ranks.isdigit() or free is None:
        return  # The launcher does not belong to MPICH, or there is no /dev/shm.
    # Other ranks of this run may already have created segments, which reduce the free memory.
    free += sum(_size(path) for path in FOLDER.glob(NAMES))
    if text := lack(int(ranks), free):
        raise RunError(text)
    if free < int(ranks) * TAKEN:
        os.environ.setdefault("UCX_TLS", "^posix")


def _size(path: Path) -> int:
    """Return the bytes of a segment, or 0 if the segment is so old that it belongs to an earlier run."""
    try:
        status = path.stat()
    except OSError:  # another process has removed the file
        return 0
    return status.st_blocks * 512 if time.time() - status.st_mtime < START else 0


def forget_names() -> None:
    """Remove the names of the segments from /dev/shm; called after all ranks of the node have mapped them.

    Afterwards no file remains, even if ranks end abnormally. The memory exists until no process maps it.
    """
    with Path("/proc/self/maps").open() as maps:
        names = {line.split(maxsplit=5)[-1].rstrip("\n") for line in maps if f"{FOLDER}/" in line}
    for name in names:  # the system appends " (deleted)" to removed names
        path = Path(name)
        if path.parent == FOLDER and path.match(NAMES) and not name.endswith(" (deleted)"):
            path.unlink(missing_ok=True)
