"""Chunks on their way to disk, while the run that made them goes on."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from halocline.archive.arrays import ArraySpec, StoredArray, attach, context, why_not_written
from halocline.errors import RunError

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUFFERS = 256 << 20  # bytes of chunks that wait to be written, at most


@dataclass(frozen=True)
class Writing:
    """What writing took of a run.

    Attributes
    ----------
    bytes : int
        Of values that this rank has put together, before they were compressed.
    seconds : float
        That the run did not compute: it put chunks together, or waited.
    waited : float
        Of these, for room in buffers or for the disk.
    """

    bytes: int = 0
    seconds: float = 0.0
    waited: float = 0.0

    def __add__(self, other: Writing) -> Writing:
        return Writing(self.bytes + other.bytes, self.seconds + other.seconds, self.waited + other.waited)


class Writer:
    """Writes chunks with threads of its own; who gives it more than it has room for waits.

    Parameters
    ----------
    threads : int
        That compress, and as many that write.
    room : int
        Bytes of chunks that may wait.

    Attributes
    ----------
    threads : tensorstore.Context
        For the arrays that it writes to.
    waited : float
        Seconds that the run has waited for room, or for the end.
    written : int
        Bytes of chunks that were given to it.
    failure : RunError or None
        Why something could not be written; what is given to it later is not written.
    """

    def __init__(self, threads: int = 1, room: int = BUFFERS) -> None:
        self.threads = context(threads)
        self.room, self.waited, self.written = room, 0.0, 0
        self._pending: deque[tuple[int, int, Any, StoredArray]] = deque()
        self._held = 0
        self.failure: RunError | None = None
        self._first_lost: int | None = None  # index of the first chunk that could not be written

    def attach(self, folder: Path, spec: ArraySpec) -> StoredArray:
        """An array that is there, to be written to."""
        return attach(folder, spec, self.threads)

    def write(self, array: StoredArray, lo: tuple[int, ...], values: NDArray[Any]) -> None:
        """Write values, which must not change any more, from an element of an array on. It does not fail,
        since other ranks wait for this one between two writes: `finish` does."""
        if self.failure is not None:
            return
        self._await_done()
        while self._pending and self._held + values.nbytes > self.room:
            self._await_one()
        self._pending.append((values.nbytes, lo[0], array.write(lo, values), array))
        self._held += values.nbytes
        self.written += values.nbytes

    @property
    def done(self) -> bool:
        """Whether all is on disk, or has failed."""
        return all(future.done() for _, _, future, _ in self._pending)

    @property
    def first_open(self) -> int | None:
        """Index along the first axis of the first chunk that is not on disk; None where all are."""
        self._await_done()  # a chunk that could not be written is done too
        if self._first_lost is not None:
            return self._first_lost
        return self._pending[0][1] if self._pending else None

    def finish(self) -> None:
        """Wait until all is on disk.

        Raises
        ------
        RunError
            Something could not be written.
        """
        while self._pending:
            self._await_one()
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def _await_done(self) -> None:
        """Take the results of the chunks up to the first one that is being written."""
        while self._pending and self._pending[0][2].done():
            self._await_one()

    def _await_one(self) -> None:
        size, index, future, array = self._pending.popleft()
        self._held -= size
        began = perf_counter()
        try:
            future.result()
        except (ValueError, OSError) as error:
            if self.failure is None:  # chunks are awaited in the order in which they were given
                self._first_lost = index
                self.failure = RunError(f"{array.folder} cannot be written: {why_not_written(error)}")
        finally:
            self.waited += perf_counter() - began
