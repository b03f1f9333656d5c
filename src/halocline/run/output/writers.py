"""Who writes what a run puts together: threads of its ranks, or I/O ranks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.archive.arrays import ArraySpec
from halocline.archive.writer import BUFFERS, Writer
from halocline.errors import RunError
from halocline.run.ranks.communicator import Communicator
from halocline.run.ranks.io_ranks import IORanks

if TYPE_CHECKING:
    from numpy.typing import NDArray


def writer(comm: Communicator, threads: int) -> Writer | RemoteWriter:
    """What writes chunks: I/O ranks where the run has some, else threads of this rank."""
    return Writer(threads) if comm.io_ranks is None else RemoteWriter(comm.io_ranks)


@dataclass
class _Chunk:
    """A chunk that was sent: its index along the first axis, and whether it is on disk."""

    index: int
    is_written: bool = False


class RemoteWriter:
    """Sends chunks to I/O ranks; used as `halocline.archive.writer.Writer` is.

    Parameters
    ----------
    ranks : IORanks
    room : int
        Bytes that may wait to be sent.
    """

    def __init__(self, ranks: IORanks, room: int = BUFFERS) -> None:
        self.ranks, self.room = ranks, room
        self.waited, self.written = 0.0, 0
        self.failure: RunError | None = None
        self._open: deque[_Chunk] = deque()  # in the order in which they were given
        # bytes that are on their way, and arrays without an answer: each number has one thread that counts
        self._given = self._sent = 0
        self._asked = self._answered = 0

    def attach(self, folder: Path, spec: ArraySpec) -> tuple[Path, ArraySpec]:
        """An array that is there, to be written to."""
        return folder, spec

    def write(self, array: tuple[Path, ArraySpec], lo: tuple[int, ...], values: NDArray[Any]) -> None:
        """See Writer."""
        if self.failure is not None:
            return
        from numpy import ascontiguousarray

        self._forget_written()
        kept = ascontiguousarray(values)
        self._wait(lambda: self._given - self._sent <= max(0, self.room - kept.nbytes))
        folder, spec = array
        self._given += kept.nbytes
        self._asked += 1
        chunk = _Chunk(lo[0])
        self._open.append(chunk)
        self.written += kept.nbytes
        where = str(folder.resolve()), spec, lo
        self.ranks.send(where, kept, partial(self._is_sent, kept.nbytes), partial(self._is_answered, chunk))

    @property
    def done(self) -> bool:
        """Whether all is on disk, or has failed."""
        self.ranks.progress()
        return self._answered == self._asked

    @property
    def first_open(self) -> int | None:
        """See Writer."""
        self._forget_written()
        return self._open[0].index if self._open else None

    def _forget_written(self) -> None:
        """Drop the first chunks that are on disk."""
        self.ranks.progress()
        while self._open and self._open[0].is_written:
            self._open.popleft()

    def finish(self) -> None:
        """Wait until all is on disk.

        Raises
        ------
        RunError
            Something could not be written.
        """
        self._wait(lambda: self._answered == self._asked)
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def _wait(self, reached: Callable[[], bool]) -> None:
        began = time.perf_counter()
        self.ranks.wait(reached)
        self.waited += time.perf_counter() - began

    def _is_sent(self, size: int) -> None:
        self._sent += size

    def _is_answered(self, chunk: _Chunk, failure: str) -> None:
        chunk.is_written = not failure
        self._answered += 1
        if failure and self.failure is None:
            self.failure = RunError(failure)
