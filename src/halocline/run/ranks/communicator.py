"""The ranks that work on one problem, with or without MPI."""

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

# A rank that waits for others asks again at once for AT_ONCE seconds, in which ranks with cores of their own
# arrive. Then it sleeps before it asks again: for PAUSE_SHARE of the time waited so far, but no longer than
# LONGEST_PAUSE.
AT_ONCE, PAUSE_SHARE, LONGEST_PAUSE = 5e-5, 0.125, 2e-3
EXCHANGE_TAG = 7  # of arrays between ranks
SPARSE_TAGS = (8, 9)  # of values, see `Communicator.sparse`
SHORT, COUNT = 128, 8  # bytes of the first message of a value, of which some are the count of all its bytes


class _OfParent:
    """MPI communicator in a forked child of its process: any use raises RunError."""

    def __getattr__(self, name: str) -> Any:
        forks.check(forks.MPI)
        raise AttributeError(name)


_of_mpi = weakref.WeakValueDictionary[int, "Communicator"]()  # all communicators that use MPI, by identity


def _forked() -> None:
    """Replace the MPI communicators of the parent, whose ranks would receive the messages of this process."""
    for communicator in list(_of_mpi.values()):
        object.__setattr__(communicator, "mpi", _OfParent())
        object.__setattr__(communicator, "node", _OfParent())


os.register_at_fork(after_in_child=_forked)


@dataclass(frozen=True)
class Communicator:
    """The ranks that work on one problem.

    Parameters
    ----------
    rank, size : int
    mpi : mpi4py.MPI.Intracomm or None
        Halocline's own duplicate, so that its messages never meet the user's; None where the run is
        serial.
    thread_level : str
        What MPI allows threads: "single", "funneled", "serialized" or "multiple".
    ranks_of_node : int
        How many of the ranks share this rank's node.
    masks : tuple of int
        The affinity of each of these, bit by bit; empty where it was not asked for.
    node : mpi4py.MPI.Intracomm or None
        The ranks that count as this rank's node (see `grouped`); None where the run is serial.
    ranks_per_node : int
        How many that are, where every node has as many, the last perhaps fewer, and ranks follow each other
        node by node.
    nodes_of_ranks : tuple of int
        Otherwise the node of each rank.
    io_ranks : IORanks or None
        Other ranks, which write what these send.
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
        """Greatest number of ranks of a node."""
        counts = Counter(self.nodes_of_ranks).values()
        return max(counts, default=min(self.ranks_per_node, self.size))

    def grouped(self, ranks_per_node: int | None) -> Communicator:
        """The same ranks, as if `ranks_per_node` consecutive ones were on a node; all ranks call this.

        Ranks that do not share a machine do not share a node either.
        """
        if ranks_per_node is None or self.mpi is None:
            return self
        if ranks_per_node not in self._groups:
            node = self.node.Split(self.rank // ranks_per_node)
            self._groups[ranks_per_node] = replace(self, node=node, **nodes_of(self.mpi, node), _groups={})
        return self._groups[ranks_per_node]

    def free(self) -> None:
        """Free what was made of the user's communicator; collective."""
        for grouped in self._groups.values():
            grouped.node.Free()
        self.node.Free()
        self.mpi.Free()

    @property
    def handle(self) -> int | None:
        """The Fortran handle of the communicator, for native code; None where the run is serial."""
        return None if self.mpi is None else self.mpi.py2f()

    @cached_property
    def has_mailboxes(self) -> bool:
        """True where MPI's one-sided communication reads and writes memory itself (MPI_WIN_UNIFIED).

        All ranks ask together at first. MPI makes a window for the answer, and waits at full speed for all
        ranks to do so.
        """
        if self.mpi is None:
            return False
        self.barrier()
        return bool(native().has_mailboxes(self.handle))

    def allgather(self, value: T) -> list[T]:
        """The value of every rank, by rank."""
        return [value] if self.mpi is None else _allgather(self.mpi, value)

    def allgather_of_node(self, value: T) -> list[T]:
        """The values of all ranks on this rank's node, by rank."""
        return [value] if self.node is None else _allgather(self.node, value)

    def gather(self, value: T) -> list[T] | None:
        """The value of every rank on rank 0; None elsewhere."""
        return [value] if self.mpi is None else _together(self.mpi).gather(value)

    def bcast(self, value: T, root: int = 0) -> T:
        """The value of the rank `root`."""
        return value if self.mpi is None else _bcast(self.mpi, value, root)

    def most(self, value: int) -> int:
        """The greatest value of all ranks."""
        if self.mpi is None:
            return int(value)
        from mpi4py import MPI

        most = array("q", [int(value)])
        _wait(self.mpi.Iallreduce(MPI.IN_PLACE, [most, MPI.INT64_T], MPI.MAX).Test)
        return most[0]

    def barrier(self) -> None:
        """Wait for all ranks; they leave together, and not when each wakes up."""
        if self.mpi is not None:
            _together(self.mpi).Barrier()

    def exchange(self, sends: Sequence[tuple[int, Any]], receives: Sequence[tuple[int, Any]]) -> None:
        """Send contiguous arrays to ranks, and receive into others from ranks; all of both ends call this.
        Two ranks list what goes from one to the other in the same order."""
        if self.mpi is None:
            return
        from mpi4py import MPI

        requests = [self.mpi.Irecv([into, MPI.BYTE], rank, EXCHANGE_TAG) for rank, into in receives]
        requests += [self.mpi.Isend([array, MPI.BYTE], rank, EXCHANGE_TAG) for rank, array in sends]
        _wait(lambda: bool(MPI.Request.Testall(requests)))

    def sparse(self, sends: Mapping[int, T]) -> dict[int, T]:
        """Send values to some ranks, and return those that came from others, by rank; all ranks call this.

        No rank knows beforehand who sends to it: a barrier that does not block tells when all has arrived (T.
        Hoefler, C. Siebert, A. Lumsdaine, Scalable communication protocols for dynamic sparse data exchange,
        PPoPP 2010, Algorithm NBX).
        """
        if self.mpi is None:
            return dict(sends)
        from mpi4py import MPI

        tag = next(self._sparse_tags)  # a rank may begin the next exchange before all have left this one
        requests = [self.mpi.issend(value, rank, tag) for rank, value in sends.items()]
        found: dict[int, T] = {}
        barrier: list[Any] = []

        def is_over() -> bool:
            status = MPI.Status()
            while (message := self.mpi.improbe(MPI.ANY_SOURCE, tag, status)) is not None:
                found[status.source] = message.recv()
            if barrier:
                return bool(barrier[0].Test())
            if MPI.Request.Testall(requests):
                barrier.append(self.mpi.Ibarrier())
            return False

        _wait(is_over)
        return found

    def prefix(self, value: float) -> tuple[float, float]:
        """Return the sum of the values of all lower ranks, and of all ranks; all ranks call this."""
        if self.mpi is None:
            return 0.0, value
        before = _together(self.mpi).exscan(value) or 0.0
        return before, self.mpi.bcast(before + value, self.size - 1)

    def greatest(self, values: Sequence[float]) -> list[float]:
        """Return the greatest of the n-th values of all ranks, for each n; all ranks call this."""
        return self._reduced(values, "MAX")

    def total(self, values: Sequence[float]) -> list[float]:
        """Return the sum of the n-th values of all ranks, for each n; all ranks call this."""
        return self._reduced(values, "SUM")

    def _reduced(self, values: Sequence[float], operation: str) -> list[float]:
        if self.mpi is None:
            return list(values)
        from mpi4py import MPI

        reduced = array("d", values)
        _wait(self.mpi.Iallreduce(MPI.IN_PLACE, [reduced, MPI.DOUBLE], getattr(MPI, operation)).Test)
        return list(reduced)

    @contextlib.contextmanager
    def agreement(self, what: str) -> Iterator[None]:
        """A phase of set-up that all ranks pass, or none: `with comm.agreement("compile kernels"):`.

        Where the block fails on some ranks, the exception of the lowest of them is raised on all ranks,
        with a note that names the rank. All ranks must enter the block; inside it, no rank may wait for
        another one.
        """
        error: BaseException | None = None
        try:
            yield
        except Exception as raised:
            if self.mpi is None:
                raise
            error = raised
        if self.mpi is None:
            return
        first = min(self.allgather(self.size if error is None else self.rank))
        if first == self.size:
            return
        count = sum(self.allgather(error is not None))
        if error is None or self.rank != first:
            raise unpack(self.bcast(b"", first))
        if count < self.size:
            more = f" and on {count - 1} more" if count > 1 else ""
            error.add_note(f"This happened on rank {first} of {self.size}{more}, in: {what}.")
        self.bcast(pack(error), first)
        raise error

    def check_same(self, what: str, mine: Any, advice: str) -> None:
        """Raise InputError where ranks do not have the same; all ranks call this."""
        same = self.allgather(blake2b(repr(mine).encode()).digest())
        other = next((rank for rank, digest in enumerate(same) if digest != same[0]), None)
        if other is not None:
            raise InputError(f"{what} not the same on ranks 0 and {other}: {advice}")


def _together(mpi: Any) -> Any:
    """An MPI communicator, when all of its ranks have arrived.

    A rank that waits in MPI's own collective operations takes all of a core, also where a rank that it waits
    for, or a compiler that this one runs, has none. Here it asks whether the others have arrived, and sleeps
    in between.
    """
    _wait(mpi.Ibarrier().Test)
    return mpi


def _allgather(mpi: Any, value: T) -> list[T]:
    """The value of every rank; ranks that wait for it sleep, see `_together`."""
    from mpi4py import MPI

    own = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    first = bytearray(SHORT * mpi.size)
    _wait(mpi.Iallgather([_short(own), MPI.BYTE], [first, SHORT, MPI.BYTE]).Test)
    parts = [memoryview(first)[at : at + SHORT] for at in range(0, len(first), SHORT)]
    counts = [_count(part) for part in parts]
    if max(counts) <= SHORT - COUNT:
        return [pickle.loads(part[COUNT:]) for part in parts]
    ends = [*accumulate(counts, initial=0)]
    every = bytearray(ends[-1])
    _wait(mpi.Iallgatherv([own, MPI.BYTE], [every, counts, ends[:-1], MPI.BYTE]).Test)
    return [pickle.loads(memoryview(every)[lo:hi]) for lo, hi in pairwise(ends)]


def _bcast(mpi: Any, value: T, root: int) -> T:
    """The value of the rank `root`; ranks that wait for it sleep, see `_together`."""
    from mpi4py import MPI

    mine = mpi.rank == root
    own = pickle.dumps(value, pickle.HIGHEST_PROTOCOL) if mine else b""
    first = _short(own)
    _wait(mpi.Ibcast([first, MPI.BYTE], root).Test)
    count = _count(first)
    whole = first[COUNT:]
    if count > SHORT - COUNT:
        whole = bytearray(own) if mine else bytearray(count)
        _wait(mpi.Ibcast([whole, MPI.BYTE], root).Test)
    return value if mine else pickle.loads(whole)


def _short(content: bytes) -> bytearray:
    """The first message: how many bytes there are, and as many of them as have room."""
    head = len(content).to_bytes(COUNT, "little") + content[: SHORT - COUNT]
    return bytearray(head.ljust(SHORT, b"\0"))


def _count(first: Any) -> int:
    return int.from_bytes(first[:COUNT], "little")


def _wait(done: Callable[[], bool]) -> None:
    """Ask until it is done, and sleep in between; see `_together`."""
    begun = time.perf_counter()
    while not done():
        waited = time.perf_counter() - begun
        if waited > AT_ONCE:
            time.sleep(min(PAUSE_SHARE * waited, LONGEST_PAUSE))


def hosts(comm: Communicator) -> int:
    """Return the number of machines that the ranks are on, as MPI sees them; all ranks call this."""
    return round(sum(1 / count for count in comm.allgather(comm.ranks_of_node)))


def nodes_of(mpi: Any, node: Any) -> dict[str, Any]:
    """`Communicator.ranks_per_node` and `nodes_of_ranks`."""
    first = mpi.allgather(min(node.allgather(mpi.rank)))  # of each rank's node
    wide = first.count(first[0])
    if all(leader == rank - rank % wide for rank, leader in enumerate(first)):
        return {"ranks_per_node": wide, "nodes_of_ranks": ()}
    numbers = {leader: number for number, leader in enumerate(dict.fromkeys(first))}
    return {"ranks_per_node": wide, "nodes_of_ranks": tuple(numbers[leader] for leader in first)}
