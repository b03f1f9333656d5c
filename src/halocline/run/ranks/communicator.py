"""Communicator of the ranks that compute one problem, with or without MPI."""

from __future__ import annotations

import contextlib
import os
import pickle
import time
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import blake2b
from itertools import accumulate, cycle, pairwise
from typing import Any, TypeVar

from halocline import forks
from halocline.errors import InputError
from halocline.native import native
from halocline.run.ranks.failure import pack, unpack
from halocline.run.ranks.io_ranks import IORanks

T = TypeVar("T")

# A waiting rank polls continuously for AT_ONCE seconds. Ranks with a core of their own arrive in this time.
# Later the rank sleeps between polls, for PAUSE_SHARE of its waiting time but at most LONGEST_PAUSE seconds.
AT_ONCE, PAUSE_SHARE, LONGEST_PAUSE = 5e-5, 0.125, 2e-3
EXCHANGE_TAG = 7  # tag of arrays between ranks
SPARSE_TAGS = (8, 9)  # tags of values, see `Communicator.sparse`

# Bytes of the first message of a value, and of the byte count at the start of this message.
SHORT, COUNT = 128, 8


class _OfParent:
    """MPI communicator of the parent in a forked child; any use raises RunError."""

    def __getattr__(self, name: str) -> Any:
        forks.check(forks.MPI)
        raise AttributeError(name)


_of_mpi = weakref.WeakValueDictionary[int, "Communicator"]()  # all communicators with MPI, by `id`


def _forked() -> None:
    """Disable the MPI communicators of the parent in this forked child.

    Otherwise, the ranks of the parent would receive messages of the child.
    """
    for communicator in list(_of_mpi.values()):
        object.__setattr__(communicator, "mpi", _OfParent())
        object.__setattr__(communicator, "node", _OfParent())


os.register_at_fork(after_in_child=_forked)


@dataclass(frozen=True)
class Communicator:
    """Ranks that compute one problem.

    Parameters
    ----------
    rank, size : int
        Index of this rank, and number of ranks.
    mpi : mpi4py.MPI.Intracomm or None
        Duplicate of the user's communicator, so that messages of Halocline and the user never mix. None in a
        serial run.
    thread_level : str
        Thread support of MPI: "single", "funneled", "serialized" or "multiple".
    ranks_of_node : int
        Number of ranks on the machine of this rank, this rank included.
    masks : tuple of int
        Affinity masks of the ranks on this machine; empty if unknown.
    node : mpi4py.MPI.Intracomm or None
        Ranks that count as the node of this rank (see `grouped`); None in a serial run.
    ranks_per_node : int
        Number of ranks per node, if ranks are numbered node by node. The last node may have fewer ranks.
    nodes_of_ranks : tuple of int
        Node of each rank if ranks are not numbered node by node; else empty.
    io_ranks : IORanks or None
        I/O ranks that write the arrays of these ranks.
    """

    rank: int = 0
    size: int = 1
    mpi: Any = field(default=None, repr=False)
    thread_level: str = "multiple"
    ranks_of_node: int = 1
    masks: tuple[int, ...] = field(default=(), repr=False)
    node: Any = field(default=None, repr=False)
    ranks_per_node: int = 1
    nodes_of_ranks: tuple[int, ...] = ()
    io_ranks: IORanks | None = field(default=None, repr=False)
    _groups: dict[int, Communicator] = field(default_factory=dict, repr=False, compare=False)
    _sparse_tags: Iterator[int] = field(
        default_factory=partial(cycle, SPARSE_TAGS), repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.mpi is not None:
            _of_mpi[id(self)] = self

    @property
    def most_of_node(self) -> int:
        """Maximum number of ranks per node."""
        counts = Counter(self.nodes_of_ranks).values()
        return max(counts, default=min(self.ranks_per_node, self.size))

    def grouped(self, ranks_per_node: int | None) -> Communicator:
        """Return a communicator of the same ranks with `ranks_per_node` ranks per node; collective.

        Ranks with consecutive numbers form a node. Ranks on different machines are never on the same node.
        """
        if ranks_per_node is None or self.mpi is None:
            return self
        if ranks_per_node not in self._groups:
            node = self.node.Split(self.rank // ranks_per_node)
            self._groups[ranks_per_node] = replace(self, node=node, **nodes_of(self.mpi, node), _groups={})
        return self._groups[ranks_per_node]

    def free(self) -> None:
        """Free the communicators that were derived from the user's communicator; collective."""
        for grouped in self._groups.values():
            grouped.node.Free()
        self.node.Free()
        self.mpi.Free()

    @property
    def handle(self) -> int | None:
        """Fortran handle of the communicator for native code; None in a serial run."""
        return None if self.mpi is None else self.mpi.py2f()

    @cached_property
    def has_mailboxes(self) -> bool:
        """True if one-sided communication of MPI accesses memory directly (MPI_WIN_UNIFIED).

        The first access is collective, since MPI creates a window for the test. A barrier precedes the test.
        Early ranks therefore wait in the barrier, which sleeps, and not in MPI, which polls continuously.
        """
        if self.mpi is None:
            return False
        self.barrier()
        return bool(native().has_mailboxes(self.handle))

    def allgather(self, value: T) -> list[T]:
        """Return the values of all ranks, by rank."""
        return [value] if self.mpi is None else _allgather(self.mpi, value)

    def allgather_of_node(self, value: T) -> list[T]:
        """Return the values of all ranks of this node, by rank."""
        return [value] if self.node is None else _allgather(self.node, value)

    def gather(self, value: T) -> list[T] | None:
        """Return the values of all ranks on rank 0, and None on other ranks."""
        return [value] if self.mpi is None else _synchronised(self.mpi).gather(value)

    def bcast(self, value: T, root: int = 0) -> T:
        """Return the value of the rank `root`."""
        return value if self.mpi is None else _bcast(self.mpi, value, root)

    def most(self, value: int) -> int:
        """Return the maximum value of all ranks."""
        if self.mpi is None:
            return int(value)
        from mpi4py import MPI

        most = array("q", [int(value)])
        _wait(self.mpi.Iallreduce(MPI.IN_PLACE, [most, MPI.INT64_T], MPI.MAX).Test)
        return most[0]

    def barrier(self) -> None:
        """Wait for all ranks; all ranks leave the barrier at nearly the same time."""
        if self.mpi is not None:
            _synchronised(self.mpi).Barrier()

    def exchange(self, sends: Sequence[tuple[int, Any]], receives: Sequence[tuple[int, Any]]) -> None:
        """Send contiguous arrays to other ranks, and receive arrays from other ranks.

        Sender and receiver call this method. Both ranks list their common arrays in the same order.

        Parameters
        ----------
        sends : sequence of (int, array)
            Receiving rank and array of each message.
        receives : sequence of (int, array)
            Sending rank and array of each message.
        """
        if self.mpi is None:
            return
        from mpi4py import MPI

        requests = [self.mpi.Irecv([buffer, MPI.BYTE], rank, EXCHANGE_TAG) for rank, buffer in receives]
        requests += [self.mpi.Isend([buffer, MPI.BYTE], rank, EXCHANGE_TAG) for rank, buffer in sends]
        _wait(lambda: bool(MPI.Request.Testall(requests)))

    def sparse(self, sends: Mapping[int, T]) -> dict[int, T]:
        """Send values to some ranks, and return the values from other ranks, by rank; collective.

        A rank does not know its senders in advance. A nonblocking barrier detects the arrival of all messages
        (T. Hoefler, C. Siebert, A. Lumsdaine, Scalable communication protocols for dynamic sparse data
        exchange, PPoPP 2010, Algorithm NBX).
        """
        if self.mpi is None:
            return dict(sends)
        from mpi4py import MPI

        tag = next(self._sparse_tags)  # a rank may call this again before other ranks have returned
        requests = [self.mpi.issend(value, rank, tag) for rank, value in sends.items()]
        received: dict[int, T] = {}
        barrier: list[Any] = []

        def is_complete() -> bool:
            status = MPI.Status()
            while (message := self.mpi.improbe(MPI.ANY_SOURCE, tag, status)) is not None:
                received[status.source] = message.recv()
            if barrier:
                return bool(barrier[0].Test())
            if MPI.Request.Testall(requests):
                barrier.append(self.mpi.Ibarrier())
            return False

        _wait(is_complete)
        return received

    def prefix(self, value: float) -> tuple[float, float]:
        """Return the sum of the values of all lower ranks, and the sum over all ranks; collective."""
        if self.mpi is None:
            return 0.0, value
        before = _synchronised(self.mpi).exscan(value) or 0.0
        return before, self.mpi.bcast(before + value, self.size - 1)

    def greatest(self, values: Sequence[float]) -> list[float]:
        """Return the elementwise maximum of the values over all ranks; collective."""
        return self._reduced(values, "MAX")

    def total(self, values: Sequence[float]) -> list[float]:
        """Return the elementwise sum of the values over all ranks; collective."""
        return self._reduced(values, "SUM")

    def _reduced(self, values: Sequence[float], operation: str) -> list[float]:
        if self.mpi is None:
            return list(values)
        from mpi4py import MPI

        reduced = array("d", values)
        _wait(self.mpi.Iallreduce(MPI.IN_PLACE, [reduced, MPI.DOUBLE], getattr(MPI, operation)).Test)
        return list(reduced)

    @contextlib.contextmanager
    def agreement(self, phase: str) -> Iterator[None]:
        """Run a phase of the set-up that succeeds on all ranks or on none.

        Usage: `with comm.agreement("compile kernels"):`. If the block fails on some ranks, all ranks raise
        the exception of the lowest failing rank. A note in the exception names this rank. All ranks must
        enter the block. No rank may wait for another rank inside the block.
        """
        error: BaseException | None = None
        try:
            yield
        except Exception as exception:
            if self.mpi is None:
                raise
            error = exception
        if self.mpi is None:
            return
        lowest = min(self.allgather(self.size if error is None else self.rank))
        if lowest == self.size:
            return
        count = sum(self.allgather(error is not None))
        if error is None or self.rank != lowest:
            raise unpack(self.bcast(b"", lowest))
        if count < self.size:
            suffix = f" and on {count - 1} more" if count > 1 else ""
            error.add_note(f"This happened on rank {lowest} of {self.size}{suffix}, in: {phase}.")
        self.bcast(pack(error), lowest)
        raise error

    def check_same(self, subject: str, value: Any, advice: str) -> None:
        """Raise InputError if a value differs between ranks; collective."""
        digests = self.allgather(blake2b(repr(value).encode()).digest())
        different_rank = next((rank for rank, digest in enumerate(digests) if digest != digests[0]), None)
        if different_rank is not None:
            raise InputError(f"{subject} not the same on ranks 0 and {different_rank}: {advice}")


def _synchronised(mpi: Any) -> Any:
    """Wait until all ranks of an MPI communicator have arrived, and return the communicator.

    Blocking collective operations of MPI use a whole core while they wait. Another rank or a compiler may
    need this core. This function polls and sleeps between polls.
    """
    _wait(mpi.Ibarrier().Test)
    return mpi


def _allgather(mpi: Any, value: T) -> list[T]:
    """Return the values of all ranks; waiting ranks sleep, see `_synchronised`."""
    from mpi4py import MPI

    packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    first = bytearray(SHORT * mpi.size)
    _wait(mpi.Iallgather([_short(packed), MPI.BYTE], [first, SHORT, MPI.BYTE]).Test)
    parts = [memoryview(first)[at : at + SHORT] for at in range(0, len(first), SHORT)]
    counts = [_count(part) for part in parts]
    if max(counts) <= SHORT - COUNT:
        return [pickle.loads(part[COUNT:]) for part in parts]
    ends = [*accumulate(counts, initial=0)]
    gathered = bytearray(ends[-1])
    _wait(mpi.Iallgatherv([packed, MPI.BYTE], [gathered, counts, ends[:-1], MPI.BYTE]).Test)
    return [pickle.loads(memoryview(gathered)[lo:hi]) for lo, hi in pairwise(ends)]


def _bcast(mpi: Any, value: T, root: int) -> T:
    """Return the value of the rank `root`; waiting ranks sleep, see `_synchronised`."""
    from mpi4py import MPI

    is_root = mpi.rank == root
    packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL) if is_root else b""
    first = _short(packed)
    _wait(mpi.Ibcast([first, MPI.BYTE], root).Test)
    count = _count(first)
    content = first[COUNT:]
    if count > SHORT - COUNT:
        content = bytearray(packed) if is_root else bytearray(count)
        _wait(mpi.Ibcast([content, MPI.BYTE], root).Test)
    return value if is_root else pickle.loads(content)


def _short(content: bytes) -> bytearray:
    """Return the first message of a value: the number of bytes, and the leading bytes that fit."""
    head = len(content).to_bytes(COUNT, "little") + content[: SHORT - COUNT]
    return bytearray(head.ljust(SHORT, b"\0"))


def _count(first: Any) -> int:
    return int.from_bytes(first[:COUNT], "little")


def _wait(is_complete: Callable[[], bool]) -> None:
    """Poll until an operation is complete, and sleep between polls; see `_synchronised`."""
    start = time.perf_counter()
    while not is_complete():
        waited = time.perf_counter() - start
        if waited > AT_ONCE:
            time.sleep(min(PAUSE_SHARE * waited, LONGEST_PAUSE))


def hosts(comm: Communicator) -> int:
    """Return the number of machines that MPI reports for the ranks; collective."""
    return round(sum(1 / count for count in comm.allgather(comm.ranks_of_node)))


def nodes_of(mpi: Any, node: Any) -> dict[str, Any]:
    """Return `Communicator.ranks_per_node` and `nodes_of_ranks` as keyword arguments."""
    leaders = mpi.allgather(min(node.allgather(mpi.rank)))  # lowest rank on the node of each rank
    width = leaders.count(leaders[0])
    if all(leader == rank - rank % width for rank, leader in enumerate(leaders)):
        return {"ranks_per_node": width, "nodes_of_ranks": ()}
    numbers = {leader: number for number, leader in enumerate(dict.fromkeys(leaders))}
    return {"ranks_per_node": width, "nodes_of_ranks": tuple(numbers[leader] for leader in leaders)}
