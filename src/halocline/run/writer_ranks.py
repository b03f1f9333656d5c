"""Ranks that do nothing but write: others send them chunks, and compute on.

They see no user code: `halocline.run.mpi.world` serves on them until all others have ended (the asynchronous
I/O servers of WOMBAT, Mendygral et al. 2017, Section 2.2.5).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.archive.arrays import ArraySpec, attach, context, why_not_written
from halocline.archive.writer import BUFFERS
from halocline.errors import RunError

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEADER, DATA, DONE = 11, 12, 13  # tags
THREADS = 2  # of a rank that writes
PAUSE = 1e-3  # seconds between two looks where nothing happens


@dataclass(frozen=True)
class WriterRanks:
    """The ranks that write, as one that computes sees them.

    Attributes
    ----------
    post : mpi4py.MPI.Intracomm
        With all ranks, for what goes between these and those.
    ranks : tuple of int
        Theirs in `post`.
    """

    post: Any
    ranks: tuple[int, ...]

    def end(self) -> None:
        """Say that this rank sends nothing any more."""
        for rank in self.ranks:
            self.post.send(None, rank, HEADER)


def serve(post: Any, sources: int) -> None:
    """Write what ranks 0 to `sources` - 1 send, until all of them have said that they end."""
    import numpy as np
    from mpi4py import MPI

    threads, left, held = context(THREADS), sources, 0
    writing: deque[tuple[int, int, str, Any]] = deque()  # source, bytes, where, what says whether it is done
    answers: list[Any] = []
    while left or writing or answers:
        busy = False
        if left and held < BUFFERS and post.Iprobe(MPI.ANY_SOURCE, HEADER, status := MPI.Status()):
            busy, source = True, status.source
            header = post.recv(source=source, tag=HEADER)
            if header is None:
                left -= 1
            else:
                folder, spec, lo, shape, dtype = header
                values = np.empty(shape, dtype)
                post.Recv([values, MPI.BYTE], source, DATA)
                begun = _begun(folder, spec, lo, values, threads)
                writing.append((source, values.nbytes, folder, begun))
                held += values.nbytes
        for _ in range(len(writing)):
            source, size, folder, future = writing.popleft()
            if isinstance(future, str) or future.done():
                busy, held = True, held - size
                why = _failure(future)
                answers.append(post.isend(f"{folder} cannot be written: {why}" if why else "", source, DONE))
            else:
                writing.append((source, size, folder, future))
        answers = [request for request in answers if not request.Test()]
        if not busy:
            time.sleep(PAUSE)


def _begun(folder: str, spec: ArraySpec, lo: tuple[int, ...], values: NDArray[Any], threads: Any) -> Any:
    """What says whether it is written; or why it cannot be."""
    try:
        return attach(Path(folder), spec, threads).write(lo, values)
    except RunError as error:
        return str(error)


def _failure(future: Any) -> str:
    """Why something was not written; empty where it was."""
    if isinstance(future, str):
        return future
    try:
        future.result()
    except (ValueError, OSError) as error:
        return why_not_written(error)
    return ""


class RemoteWriter:
    """Sends chunks to ranks that write; as `halocline.archive.writer.Writer` is used.

    Parameters
    ----------
    ranks : WriterRanks
    concurrent : bool
        Whether MPI may be called while the engine runs: then what is sent goes on meanwhile.
    room : int
        Bytes that may wait to be sent.
    """

    def __init__(self, ranks: WriterRanks, *, concurrent: bool, room: int = BUFFERS) -> None:
        self.ranks, self.concurrent, self.room = ranks, concurrent, room
        self.waited, self.written = 0.0, 0
        self.failure: RunError | None = None
        self._next = ranks.post.rank  # not all begin with the same
        self._sending: deque[tuple[int, list[Any], Any]] = deque()
        self._unanswered = dict.fromkeys(ranks.ranks, 0)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def attach(self, folder: Path, spec: ArraySpec) -> tuple[Path, ArraySpec]:
        """An array that is there, to be written to."""
        return folder, spec

    def write(self, array: tuple[Path, ArraySpec], lo: tuple[int, ...], values: NDArray[Any]) -> None:
        """See Writer."""
        if self.failure is not None:
            return
        from mpi4py import MPI
        from numpy import ascontiguousarray

        self._until(lambda: self._held() + values.nbytes <= self.room or not self._sending)
        folder, spec = array
        kept = ascontiguousarray(values)
        with self._lock:
            rank = self.ranks.ranks[self._next % len(self.ranks.ranks)]
            self._next += 1
            header = str(folder.resolve()), spec, lo, kept.shape, kept.dtype.str
            requests = [
                self.ranks.post.isend(header, rank, HEADER),
                self.ranks.post.Isend([kept, MPI.BYTE], rank, DATA),
            ]
            self._sending.append((kept.nbytes, requests, kept))
            self._unanswered[rank] += 1
        self.written += kept.nbytes
        if self.concurrent and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._go_on, name="halocline-writer", daemon=True)
            self._thread.start()

    @property
    def done(self) -> bool:
        """Whether all is on disk, or has failed."""
        self._progress()
        return not any(self._unanswered.values())

    def finish(self) -> None:
        """Wait until all is on disk.

        Raises
        ------
        RunError
            Something could not be written.
        """
        self._until(lambda: not any(self._unanswered.values()))
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def _held(self) -> int:
        return sum(size for size, _, _ in self._sending)

    def _until(self, reached: Any) -> None:
        began = time.perf_counter()
        self._progress()
        while not reached():
            time.sleep(PAUSE)
            self._progress()
        self.waited += time.perf_counter() - began

    def _go_on(self) -> None:
        while any(self._unanswered.values()):
            self._progress()
            time.sleep(PAUSE)

    def _progress(self) -> None:
        """Let go of what is sent, and take answers."""
        from mpi4py import MPI

        with self._lock:
            while self._sending and MPI.Request.Testall(self._sending[0][1]):
                self._sending.popleft()
            for rank in self.ranks.ranks:
                while self._unanswered[rank] and self.ranks.post.Iprobe(rank, DONE):
                    failure = self.ranks.post.recv(source=rank, tag=DONE)
                    self._unanswered[rank] -= 1
                    if failure and self.failure is None:
                        self.failure = RunError(failure)
