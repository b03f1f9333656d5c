"""I/O ranks: the arrays that are on the way to them, and the server that writes these arrays."""

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
PAUSE = 1e-3  # seconds between two looks where nothing happens


class RemoteWrite:
    """Future of a chunk that an I/O rank writes.

    Attributes
    ----------
    failure : str or None
        Error of the I/O rank, empty where the chunk is on disk; None until the I/O rank has answered.
    """

    def __init__(self, ranks: IORanks) -> None:
        self._ranks = ranks
        self.failure: str | None = None

    def done(self) -> bool:
        """Return whether the I/O rank has answered."""
        self._ranks.progress()
        return self.failure is not None

    def result(self) -> None:
        """Wait for the answer; raise OSError where the chunk could not be written."""
        self._ranks.wait(lambda: self.failure is not None)
        if self.failure:
            raise OSError(self.failure)


class IORanks:
    """The I/O ranks of a run: they write, and compute nothing.

    Each array that is sent has a number, which its answer carries: several writers share one of these.

    Parameters
    ----------
    post : mpi4py.MPI.Intracomm
        With all ranks, for what goes between these and those.
    ranks : tuple of int
        Theirs in `post`.
    concurrent : bool
        Whether MPI may be called while the engine runs: then what is sent goes on meanwhile.
    """

    def __init__(self, post: Any, ranks: tuple[int, ...], *, concurrent: bool) -> None:
        self.post, self.ranks, self.concurrent = post, ranks, concurrent
        self._next = post.rank  # not all begin with the same
        self._number = 0
        self._sending: deque[tuple[list[Any], NDArray[Any]]] = deque()  # requests, and the memory they read
        self._unsent = 0  # bytes of this memory
        self._awaited: dict[int, RemoteWrite] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def send(self, where: tuple[Any, ...], values: NDArray[Any]) -> RemoteWrite:
        """Begin to send an array, which must not change any more; wait while others fill the memory.

        Parameters
        ----------
        where : tuple
            Place of the values on disk; see `serve`.
        values : array
            Contiguous in memory.
        """
        from mpi4py import MPI

        self.wait(lambda: not self._unsent or self._unsent + values.nbytes <= BUFFERS)
        write = RemoteWrite(self)
        with self._lock:
            rank = self.ranks[self._next % len(self.ranks)]
            self._next, self._number = self._next + 1, self._number + 1
            header = self._number, *where, values.shape, values.dtype.str
            requests = [
                self.post.isend(header, rank, HEADER),
                self.post.Isend([values, MPI.BYTE], rank, DATA),
            ]
            self._sending.append((requests, values))
            self._unsent += values.nbytes
            self._awaited[self._number] = write
        if self.concurrent and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._go_on, name="halocline-writer", daemon=True)
            self._thread.start()
        return write

    def progress(self) -> None:
        """Let go of what is sent, and take answers."""
        from mpi4py import MPI

        with self._lock:
            while self._sending and MPI.Request.Testall(self._sending[0][0]):
                self._unsent -= self._sending.popleft()[1].nbytes
            for rank in self.ranks if self._awaited else ():
                while self.post.Iprobe(rank, DONE):
                    number, failure = self.post.recv(source=rank, tag=DONE)
                    self._awaited.pop(number).failure = failure

    def wait(self, reached: Callable[[], bool]) -> None:
        """Until something has been sent, or answered."""
        self.progress()
        while not reached():
            time.sleep(PAUSE)
            self.progress()

    def end(self) -> None:
        """Say that this rank sends nothing any more, when all that it has sent is answered."""
        self.wait(lambda: not self._awaited)
        for rank in self.ranks:
            self.post.send(None, rank, HEADER)

    def _go_on(self) -> None:
        while self._awaited:
            self.progress()
            time.sleep(PAUSE)


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
    writing: deque[tuple[int, int, int, Any]] = deque()  # source, number, bytes, future
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
                try:
                    future = attach(Path(folder), spec, threads).write(lo, values)
                except RunError as error:
                    answers.append(post.isend((number, str(error)), source, DONE))
                else:
                    writing.append((source, number, values.nbytes, future))
                    held += values.nbytes
        for _ in range(len(writing)):
            source, number, size, future = writing.popleft()
            if future.done():
                busy, held = True, held - size
                answers.append(post.isend((number, _failure(future)), source, DONE))
            else:
                writing.append((source, number, size, future))
        answers = [request for request in answers if not request.Test()]
        if not busy:
            time.sleep(PAUSE)


def _failure(future: Any) -> str:
    """Return the error of a chunk, empty where it is on disk."""
    try:
        future.result()
    except (ValueError, OSError) as error:
        return str(error)
    return ""
