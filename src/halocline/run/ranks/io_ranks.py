"""I/O ranks: the client that sends arrays to them, and the server that writes the arrays."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.archive.arrays import BUFFERS, attach, context
from halocline.errors import RunError

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEADER, DATA, DONE = 11, 12, 13  # tags
PAUSE = 1e-3  # seconds between two polls while idle


class RemoteWrite:
    """Future of a chunk that an I/O rank writes.

    Attributes
    ----------
    failure : str or None
        Error message of the I/O rank, "" if the chunk is on disk, None before the answer.
    """

    def __init__(self, ranks: IORanks) -> None:
        self._ranks = ranks
        self.failure: str | None = None

    def done(self) -> bool:
        """Return True if the I/O rank has answered."""
        self._ranks.progress()
        return self.failure is not None

    def result(self) -> None:
        """Wait for the answer, and raise OSError if the chunk could not be written."""
        self._ranks.wait(lambda: self.failure is not None)
        if self.failure:
            raise OSError(self.failure)


class IORanks:
    """I/O ranks of a run, which write arrays and compute nothing.

    Each array has a number, which is also part of the answer of the I/O rank. Therefore several writers can
    share one `IORanks` object.

    Parameters
    ----------
    post : mpi4py.MPI.Intracomm
        Communicator of all compute ranks and I/O ranks, for messages between them.
    ranks : tuple of int
        I/O ranks, numbered as in `post`.
    concurrent : bool
        True if MPI may be called while the engine runs. Messages then progress during the computation.
    """

    def __init__(self, post: Any, ranks: tuple[int, ...], *, concurrent: bool) -> None:
        self.post, self.ranks, self.concurrent = post, ranks, concurrent
        self._next = post.rank  # compute ranks start with different I/O ranks
        self._number = 0
        self._sending: deque[tuple[list[Any], NDArray[Any]]] = deque()  # requests and send buffers
        self._unsent = 0  # bytes of these buffers
        self._awaited: dict[int, RemoteWrite] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def send(self, destination: tuple[Any, ...], values: NDArray[Any]) -> RemoteWrite:
        """Start to send an array, which must not change afterwards.

        The method waits while the arrays of earlier calls fill the send buffers.

        Parameters
        ----------
        destination : tuple
            Folder, array specification and first index of the values on disk; see `serve`.
        values : array
            Values, contiguous in memory.

        Returns
        -------
        RemoteWrite
            Future of the chunk.
        """
        from mpi4py import MPI

        self.wait(lambda: not self._unsent or self._unsent + values.nbytes <= BUFFERS)
        write = RemoteWrite(self)
        with self._lock:
            rank = self.ranks[self._next % len(self.ranks)]
            self._next, self._number = self._next + 1, self._number + 1
            header = self._number, *destination, values.shape, values.dtype.str
            requests = [
                self.post.isend(header, rank, HEADER),
                self.post.Isend([values, MPI.BYTE], rank, DATA),
            ]
            self._sending.append((requests, values))
            self._unsent += values.nbytes
            self._awaited[self._number] = write
        if self.concurrent and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._make_progress, name="halocline-writer", daemon=True)
            self._thread.start()
        return write

    def progress(self) -> None:
        """Release the buffers of completed sends, and receive the available answers."""
        from mpi4py import MPI

        with self._lock:
            while self._sending and MPI.Request.Testall(self._sending[0][0]):
                self._unsent -= self._sending.popleft()[1].nbytes
            for rank in self.ranks if self._awaited else ():
                while self.post.Iprobe(rank, DONE):
                    number, failure = self.post.recv(source=rank, tag=DONE)
                    self._awaited.pop(number).failure = failure

    def wait(self, is_reached: Callable[[], bool]) -> None:
        """Wait until a condition is true, and call `progress` meanwhile."""
        self.progress()
        while not is_reached():
            time.sleep(PAUSE)
            self.progress()

    def end(self) -> None:
        """Wait for all answers, then notify the I/O ranks that this rank sends no more arrays."""
        self.wait(lambda: not self._awaited)
        for rank in self.ranks:
            self.post.send(None, rank, HEADER)

    def _make_progress(self) -> None:
        while self._awaited:
            self.progress()
            time.sleep(PAUSE)


THREADS = 2  # threads of an I/O rank


def serve(post: Any, sources: int) -> None:
    """Write the arrays of ranks 0 to `sources` - 1, until all these ranks have called `IORanks.end`.

    The function ignores signals that stop a run, because the compute ranks still send a last checkpoint after
    such a signal.
    """
    import numpy as np
    from mpi4py import MPI

    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(signal_number, signal.SIG_IGN)
    threads, active_sources, buffered_bytes = context(THREADS), sources, 0
    writing: deque[tuple[int, int, int, Any]] = deque()  # source, number, bytes, future
    answers: list[Any] = []
    while active_sources or writing or answers:
        made_progress = False
        if (
            active_sources
            and buffered_bytes < BUFFERS
            and post.Iprobe(MPI.ANY_SOURCE, HEADER, status := MPI.Status())
        ):
            made_progress, source = True, status.source
            header = post.recv(source=source, tag=HEADER)
            if header is None:
                active_sources -= 1
            else:
                number, folder, spec, lo, shape, dtype = header
                values = np.empty(shape, dtype)
                post.Recv([values, MPI.BYTE], source, DATA)
                try:
                    future = attach(Path(folder), spec, threads).write(lo, values)
                except RunError as error:
                    answers.append(post.isend((number, str(error)), source, DONE))
                else:
                    writing.append((source, number, values.nbytes, future))
                    buffered_bytes += values.nbytes
        for _ in range(len(writing)):
            source, number, size, future = writing.popleft()
            if future.done():
                made_progress, buffered_bytes = True, buffered_bytes - size
                answers.append(post.isend((number, _failure(future)), source, DONE))
            else:
                writing.append((source, number, size, future))
        answers = [request for request in answers if not request.Test()]
        if not made_progress:
            time.sleep(PAUSE)


def _failure(future: Any) -> str:
    """Return the error message of a chunk, or "" if the chunk is on disk."""
    try:
        future.result()
    except (ValueError, OSError) as error:
        return str(error)
    return ""
