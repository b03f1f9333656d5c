"""MPICH's segments of shared memory: files in /dev/shm, which every rank of a node maps when MPI starts.

Halocline's own shared memory is anonymous files (native/src/storage/memory.hpp): they have no name that could
stay.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from halocline.errors import RunError

FOLDER = Path("/dev/shm")
NAMES = "mpich_*"
# Measured with MPICH 5.0.2 on 1 to 8 ranks: what MPICH takes for each rank of a node, whatever room there is,
# and that together with what UCX takes where it finds room.
NEEDED, TAKEN = 1057344, 5400000
START = 60.0  # seconds that ranks take at most from the first to the last one that starts
ADVICE = (
    "make it larger (`mount -o remount,size=1G /dev/shm`, `docker run --shm-size=1g`), remove from it "
    "what no process uses any more, or start fewer ranks on this node"
)


def first_of_node(rank: int, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this rank speaks for its node: the first there, as far as its launcher says."""
    return environment.get("MPI_LOCALRANKID", str(rank)) == "0"


def room() -> int | None:
    """Bytes that are free in /dev/shm; None where there is no such folder."""
    try:
        found = os.statvfs(FOLDER)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def lack(ranks: int, free: int | None) -> str:
    """What to say where MPI cannot start these ranks of a node with these bytes; else an empty string."""
    needed = ranks * NEEDED
    if free is None or free >= needed:
        return ""
    whose = "1 rank" if ranks == 1 else f"{ranks} ranks"
    return (
        f"MPI needs {needed} bytes of shared memory for {whose}, "
        f"but {FOLDER} has {free} bytes available: {ADVICE}"
    )


def prepare(environment: Mapping[str, str] = os.environ) -> None:
    """Before MPI starts: see that it has room.

    Where there is less than UCX would like to take, it is configured to do without: it takes what there is,
    and now and then dies of what is missing.

    Raises
    ------
    RunError
        There is too little for MPI to start, which all ranks of the node see alike.
    """
    ranks = environment.get("MPI_LOCALNRANKS", "")
    free = room()
    if not ranks.isdigit() or free is None:
        return  # another launcher than MPICH's
    # other ranks of this run may have taken their part already
    free += sum(_size(path) for path in FOLDER.glob(NAMES))
    if text := lack(int(ranks), free):
        raise RunError(text)
    if free < int(ranks) * TAKEN:
        os.environ.setdefault("UCX_TLS", "^posix")


def _size(path: Path) -> int:
    """What a segment that has just been made takes; 0 for older ones, which are not of this run."""
    try:
        found = path.stat()
    except OSError:  # gone meanwhile
        return 0
    return found.st_blocks * 512 if time.time() - found.st_mtime < START else 0


def forget_names() -> None:
    """Once all ranks of the node have mapped the segments: remove their names, so that nothing stays behind
    however the ranks end. The memory lives as long as a process maps it."""
    with Path("/proc/self/maps").open() as maps:
        names = {line.split(maxsplit=5)[-1].rstrip("\n") for line in maps if f"{FOLDER}/" in line}
    for name in names:  # one that is gone ends with " (deleted)"
        path = Path(name)
        if path.parent == FOLDER and path.match(NAMES) and not name.endswith(" (deleted)"):
            path.unlink(missing_ok=True)
