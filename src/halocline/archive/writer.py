"""Writing of chunks in the background, while the run computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from halocline.archive.arrays import ArraySpec, why_not_written
from halocline.errors import RunError

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUFFERS = 256 << 20  # bytes of chunks that wait to be written, at most


@dataclass(frozen=True)
class Writing:
    """Cost of writing in a run.

    Attributes
    ----------
    bytes : int
        Bytes of the chunks of this rank before compression.
    seconds : float
        Time in which the run assembled chunks or waited, instead of computing.
    waited : float
        Part of this time in which the run waited for room in buffers or for the disk.
    """

    bytes: int = 0
    seconds: float = 0.0
    waited: float = 0.0

    def __add__(self, other: Writing) -> Writing:
        return Writing(self.bytes + other.bytes, self.seconds + other.seconds, self.waited + other.waited)


class Writer:
    """Writer of chunks that lets the run go on; a chunk that exceeds the room for waiting chunks waits.

    Parameters
    ----------
    attach : callable (path, ArraySpec) -> array
        Opens an array that exists, such as `halocline.archive.arrays.attach`. The method `write` of the
        array returns a future, as that of `halocline.archive.arrays.StoredArray` does.
    room : float
        Bytes of chunks that may wait.

    Attributes
    ----------
    waited : float
        Seconds that the run has waited for room, or for the end.
    written : int
        Bytes of the chunks that the writer has taken.
    failure : RunError or None
        First error of a chunk; the writer ignores chunks that follow.
    """

    def __init__(self, attach: Callable[[Path, ArraySpec], Any], room: float = BUFFERS) -> None:
        self.attach, self.room = attach, room
        self.waited, self.written = 0.0, 0
        self._pending: deque[tuple[int, int, Any, Any]] = deque()  # bytes, index, future and array of a chunk
        self._held = 0  # bytes of these chunks
        self.failure: RunError | None = None
        self._first_lost: int | None = None  # index of the first chunk that could not be written

    def write(self, array: Any, lo: tuple[int, ...], values: NDArray[Any]) -> None:
        """Write values, which must not change any more, from an element of an array on.

        The method raises no error, since other ranks wait for this one between two writes: `finish` does.
        """
        if self.failure is not None:
            return
        self._await_done()
        while self._pending and self._held + values.nbytes > self.room:
            self._await_one()
        began = perf_counter()
        future = array.write(lo, values)  # an array of I/O ranks waits for room of its own
        self.waited += perf_counter() - began
        self._pending.append((values.nbytes, lo[0], future, array))
        self._held += values.nbytes
        self.written += values.nbytes

    @property
    def done(self) -> bool:
        """True where all chunks are on disk, or have failed."""
        return all(future.done() for _, _, future, _ in self._pending)

    @property
    def first_open(self) -> int | None:
        """Index along the first axis of the first chunk that is not on disk; None where all are."""
        self._await_done()  # a chunk that could not be written is done too
        if self._first_lost is not None:
            return self._first_lost
        return self._pending[0][1] if self._pending else None

    def finish(self) -> None:
        """Wait until all chunks are on disk.

        Raises
        ------
        RunError
            A chunk could not be written.
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
