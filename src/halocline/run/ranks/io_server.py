"""What I/O ranks do: they write what others send, while these compute on.

They see no user code: `halocline.run.ranks.mpi.world` serves on them until all others have ended (the
asynchronous I/O servers of WOMBAT, Mendygral et al. 2017, Section 2.2.5).
"""

from __future__ import annotations

import signal
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.archive.arrays import ArraySpec, attach, context
from halocline.archive.writer import BUFFERS
from halocline.errors import RunError
from halocline.run.ranks.io_ranks import DATA, DONE, HEADER, PAUSE

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREADS = 2  # of an I/O rank


def serve(post: Any, sources: int) -> None:
    """Write what ranks 0 to `sources` - 1 send, until all of them have said that they end.

    Signals that ask a run to stop are theirs: they leave a last checkpoint, which is written here.
    """
    import numpy as np
    from mpi4py import MPI

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(each, signal.SIG_IGN)
    threads, left, held = context(THREADS), sources, 0
    writing: deque[tuple[int, int, int, Any]] = deque()  # source, number, bytes, future or error
    answers: list[Any] = []
    while left or writing or answers:
        busy = False
        if left and held < BUFFERS and post.Iprobe(MPI.ANY_SOURCE, HEADER, status := MPI.Status()):
            busy, source = True, status.source
            header = post.recv(source=source, tag=HEADER)
            if header is None:
                left -= 1
            else:
                number, folder, spec, lo, shape, dtype = header
                values = np.empty(shape, dtype)
                post.Recv([values, MPI.BYTE], source, DATA)
                begun = _begun(folder, spec, lo, values, threads)
                writing.append((source, number, values.nbytes, begun))
                held += values.nbytes
        for _ in range(len(writing)):
            source, number, size, future = writing.popleft()
            if isinstance(future, str) or future.done():
                busy, held = True, held - size
                answers.append(post.isend((number, _failure(future)), source, DONE))
            else:
                writing.append((source, number, size, future))
        answers = [request for request in answers if not request.Test()]
        if not busy:
            time.sleep(PAUSE)


def _begun(folder: str, spec: ArraySpec, lo: tuple[int, ...], values: NDArray[Any], threads: Any) -> Any:
    """Begin to write a chunk; return its future, or the error that prevents it."""
    try:
        return attach(Path(folder), spec, threads).write(lo, values)
    except RunError as error:
        return str(error)


def _failure(future: Any) -> str:
    """Return the error of a chunk, empty where it is on disk."""
    if isinstance(future, str):
        return future
    try:
        future.result()
    except (ValueError, OSError) as error:
        return str(error)
    return ""
