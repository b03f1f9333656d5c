"""Shared memory segments of MPICH: files in /dev/shm, which every rank of a node maps when MPI starts.

The shared memory of Halocline consists of anonymous files (native/src/storage/memory.hpp). Anonymous files
leave no names behind.
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
# NEEDED. MPICH and UCX together use TAKEN if that much is available.
NEEDED, TAKEN = 1057344, 5400000
START = 60.0  # maximum time between the starts of the first and last rank, in seconds
ADVICE = (
    "make it larger (`mount -o remount,size=1G /dev/shm`, `docker run --shm-size=1g`), remove unused files "
    "from it, or start fewer ranks on this node"
)


def first_of_node(rank: int, environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if this rank prints messages for its node: the launcher counts it first there."""
    return environment.get("MPI_LOCALRANKID", str(rank)) == "0"


def room() -> int | None:
    """Return the free bytes of /dev/shm, or None if it does not exist."""
    try:
        status = os.statvfs(FOLDER)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def lack(ranks: int, free: int | None) -> str:
    """Return a message if `free` bytes are too few for the ranks of a node to start MPI, else ""."""
    required = ranks * NEEDED
    if free is None or free >= required:
        return ""
    owners = "1 rank" if ranks == 1 else f"{ranks} ranks"
    return (
        f"MPI needs {required} bytes of shared memory for {owners}, "
        f"but {FOLDER} has {free} bytes available: {ADVICE}"
    )


def prepare(environment: Mapping[str, str] = os.environ) -> None:
    """Check before the start of MPI that its shared memory fits, and configure UCX accordingly.

    UCX sometimes fails if less memory is available than it prefers. In this case UCX is configured to use no
    shared memory.

    Raises
    ------
    RunError
        The memory is too small for MPI to start. All ranks of the node come to the same result.
    """
    ranks = environment.get("MPI_LOCALNRANKS", "")
    free = room()
    if not ranks.isdigit() or free is None:
        return  # a launcher other than MPICH's
    # Other ranks of this run may have created their segments already.
    free += sum(_size(path) for path in FOLDER.glob(NAMES))
    if text := lack(int(ranks), free):
        raise RunError(text)
    if free < int(ranks) * TAKEN:
        os.environ.setdefault("UCX_TLS", "^posix")


def _size(path: Path) -> int:
    """Return the bytes of a segment that was created recently; 0 for a segment of an earlier run."""
    try:
        status = path.stat()
    except OSError:  # removed in the meantime
        return 0
    return status.st_blocks * 512 if time.time() - status.st_mtime < START else 0


def forget_names() -> None:
    """Remove the names of the segments after all ranks of the node have mapped them.

    No file remains, even if the ranks end abnormally. The memory exists as long as a process maps it.
    """
    with Path("/proc/self/maps").open() as maps:
        names = {line.split(maxsplit=5)[-1].rstrip("\n") for line in maps if f"{FOLDER}/" in line}
    for name in names:  # the system appends " (deleted)" to removed names
        path = Path(name)
        if path.parent == FOLDER and path.match(NAMES) and not name.endswith(" (deleted)"):
            path.unlink(missing_ok=True)
