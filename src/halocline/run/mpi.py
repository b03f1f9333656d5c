"""Ranks: the only place where Python meets MPI.

A process that no launcher started is serial, and MPI is neither imported nor initialised there; under
`mpiexec`, `srun` and the like the ranks are theirs. The rest of Halocline sees a `Communicator`, which
works in both cases.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import signal
import time
import warnings
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from typing import Any, TypeVar

from halocline.errors import HaloclineError, InputError, RunError
from halocline.native import native
from halocline.run import excepthook, segments
from halocline.run.failure import describe, exit_code, pack, unpack
from halocline.run.io_ranks import IORanks
from halocline.run.streams import complain

T = TypeVar("T")

PATIENCE = 2.0  # seconds that a failing rank waits for the others to fail too
START_PATIENCE = 10.0  # the same where MPI must be initialised first
# A rank that waits for others looks again at once for so many seconds, in which ranks with cores of their own
# come. Then it sleeps between two looks: a share of what it has waited so far, and at most so many seconds.
AT_ONCE, PAUSE_SHARE, LONGEST_PAUSE = 5e-5, 0.125, 2e-3
IO_RANKS = "HALOCLINE_IO_RANKS"  # how many of the launcher's ranks, the last ones, are I/O ranks
EXCHANGE_TAG = 7  # of arrays between ranks
RELAY_PATIENCE = 0.5  # seconds that mpiexec gets to pass on what was printed

# Where launchers say which rank a process is, and of how many.
LAUNCHERS = (
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI", "PMI_RANK", "PMI_SIZE"),
    ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # a batch script itself is no step
    ("PMIx", "PMIX_RANK", None),
)


# -- who started this process ------------------------------------------------------------------------


@dataclass(frozen=True)
class Launcher:
    """The program that started this process as one of several.

    Parameters
    ----------
    name : str
    rank : int
        Which of the processes this one is, as the launcher counts.
    size : int or None
        How many it started; None where it does not say.
    """

    name: str
    rank: int
    size: int | None


def launcher(environment: Mapping[str, str] = os.environ) -> Launcher | None:
    """The launcher that started this process, or None."""
    for name, rank, size in LAUNCHERS:
        if environment.get(rank, "").isdigit():
            if size is None:
                return Launcher(name, int(environment[rank]), None)
            if environment.get(size, "").isdigit():
                return Launcher(name, int(environment[rank]), int(environment[size]))
    return None


def affinity() -> int:
    """The hardware threads that this process may use, bit by bit."""
    return sum(1 << thread for thread in os.sched_getaffinity(0))


# -- communicators -----------------------------------------------------------------------------------


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

    def grouped(self, ranks_per_node: int | None) -> Communicator:
        """The same ranks, as if so many consecutive ones were on a node; all ranks call this.

        Ranks that do not share a machine do not share a node either.
        """
        if ranks_per_node is None or self.mpi is None:
            return self
        if ranks_per_node not in self._groups:
            node = self.node.Split(self.rank // ranks_per_node)
            self._groups[ranks_per_node] = replace(self, node=node, **_nodes(self.mpi, node), _groups={})
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

    def allgather(self, value: T) -> list[T]:
        """The value of every rank, by rank."""
        return [value] if self.mpi is None else _together(self.mpi).allgather(value)

    def allgather_of_node(self, value: T) -> list[T]:
        """The values of all ranks on this rank's node, by rank."""
        return [value] if self.node is None else _together(self.node).allgather(value)

    def gather(self, value: T) -> list[T] | None:
        """The value of every rank on rank 0; None elsewhere."""
        return [value] if self.mpi is None else _together(self.mpi).gather(value)

    def bcast(self, value: T, root: int = 0) -> T:
        """The value of the rank `root`."""
        return value if self.mpi is None else _together(self.mpi).bcast(value, root)

    def bcast_of_node(self, value: T) -> T:
        """The value of the first rank on this rank's node."""
        return value if self.node is None else _together(self.node).bcast(value)

    def most(self, value: int) -> int:
        """The greatest value of all ranks."""
        if self.mpi is None:
            return int(value)
        from mpi4py import MPI

        return int(_together(self.mpi).allreduce(int(value), MPI.MAX))

    def barrier(self) -> None:
        """Wait for all ranks."""
        if self.mpi is not None:
            _together(self.mpi).barrier()

    def exchange(self, sends: Sequence[tuple[int, Any]], receives: Sequence[tuple[int, Any]]) -> None:
        """Send contiguous arrays to ranks, and receive into others from ranks; all of both ends call this.
        Two ranks list what goes from one to the other in the same order."""
        if self.mpi is None:
            return
        from mpi4py import MPI

        requests = [self.mpi.Irecv([into, MPI.BYTE], rank, EXCHANGE_TAG) for rank, into in receives]
        requests += [self.mpi.Isend([array, MPI.BYTE], rank, EXCHANGE_TAG) for rank, array in sends]
        _wait(lambda: bool(MPI.Request.Testall(requests)))

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
    """An MPI communicator, when all of its ranks have come to use it.

    A rank that waits in MPI's own collective operations takes all of a core, also where a rank that it waits
    for, or a compiler that this one runs, has none. Here it looks whether the others have come, and sleeps in
    between.
    """
    request = mpi.Ibarrier()
    _wait(request.Test)
    return mpi


def _wait(done: Callable[[], bool]) -> None:
    """Ask until it is done, and sleep in between; see `_together`."""
    begun = time.perf_counter()
    while not done():
        waited = time.perf_counter() - begun
        if waited > AT_ONCE:
            time.sleep(min(PAUSE_SHARE * waited, LONGEST_PAUSE))


@cache
def world() -> Communicator:
    """All ranks that the launcher started, or this process alone.

    The first call on a launched process initialises MPI, checks it, and sees to it that an exception
    which nobody catches ends all ranks (`halocline.run.excepthook`).

    Raises
    ------
    RunError
        The launcher belongs to another MPI, native code is bound to another MPI library than mpi4py,
        there is no working MPI, or it has no room for its shared memory.
    """
    started = launcher()
    if started is None:
        return Communicator()
    _tell(f"rank {started.rank} {os.getpid()}")  # a rank may die while MPI is initialised
    atexit.register(_tell, "end")
    segments.prepare()
    MPI = _initialised()
    comm = MPI.COMM_WORLD
    if comm.size == 1 and started.size is not None and started.size > 1:
        library = _library_of_mpi4py(MPI)
        srun = f", or with `srun --mpi={'pmix' if '.so.40' in library else 'pmi2'}`"
        raise RunError(
            f"the launcher ({started.name}) started {started.size} processes, but MPI sees only one: "
            f"it belongs to another MPI than the library in use, {library}; "
            "start the ranks with `halocline run FILE.py --ranks R`, or with that MPI's own mpiexec"
            f"{srun if started.name == 'Slurm' else ''}"
        )
    excepthook.install_again()
    given = os.environ.get(IO_RANKS) or "0"
    if not given.isdecimal() or int(given) >= comm.size:
        raise InputError(
            f"{IO_RANKS} is {given!r}; expected fewer I/O ranks than the {comm.size} ranks there are"
        )
    return _beside_io_ranks(MPI, comm, int(given)) if int(given) else _wrap(MPI, comm)


def _beside_io_ranks(MPI: Any, comm: Any, count: int) -> Communicator:
    """All ranks but the last ones, the I/O ranks, on which this does not return."""
    from halocline.run.io_server import serve  # it loads what writes

    first = comm.size - count
    post, own = comm.Dup(), comm.Split(comm.rank >= first, comm.rank)
    segments.forget_names()  # all ranks of the node have come
    if comm.rank >= first:
        serve(post, first)
        raise SystemExit(0)
    made = _wrap(MPI, own)
    ranks = IORanks(post, tuple(range(first, comm.size)), concurrent=made.thread_level == "multiple")
    atexit.register(ranks.end)
    return replace(made, io_ranks=ranks)


def communicator_of(given: Any) -> Communicator:
    """The ranks that a user gives: an mpi4py communicator, one of ours, or None for all that there are."""
    if isinstance(given, Communicator):
        return given
    return world() if given is None else from_user(given)


def from_user(comm: Any) -> Communicator:
    """The ranks of a user's mpi4py communicator; all of them must call this.

    What is made of a communicator is kept with it and freed with it: it must live as long as it is used here.
    """
    MPI = _initialised()
    if not isinstance(comm, MPI.Intracomm):
        raise InputError(
            f"communicator is {comm!r}: expected an mpi4py.MPI.Intracomm, such as MPI.COMM_WORLD"
        )
    excepthook.install_again()
    return _wrap(MPI, comm)


# Ranks that fail meet here, apart from all other messages.
_meeting: Any = None


@cache
def _attribute(MPI: Any) -> int:
    """The attribute of a communicator that holds its Communicator. MPI has few communicators to give (MPICH:
    2048), so that one user's communicator gets one duplicate, however many simulations run on it."""

    def free(comm: Any, key: int, made: Communicator) -> None:
        made.free()

    key: int = MPI.Comm.Create_keyval(delete_fn=free)
    return key


def _wrap(MPI: Any, comm: Any) -> Communicator:
    known: Communicator | None = comm.Get_attr(_attribute(MPI))
    if known is None:
        known = _duplicate(MPI, comm)
        comm.Set_attr(_attribute(MPI), known)
    return known


def _duplicate(MPI: Any, comm: Any) -> Communicator:
    global _meeting
    own = comm.Dup()
    # An error of MPI after set-up cannot be mended: abort all ranks instead of leaving some waiting.
    own.Set_errhandler(MPI.ERRORS_ARE_FATAL)
    if _meeting is None:
        _meeting = comm.Dup()
    levels = {
        MPI.THREAD_SINGLE: "single",
        MPI.THREAD_FUNNELED: "funneled",
        MPI.THREAD_SERIALIZED: "serialized",
        MPI.THREAD_MULTIPLE: "multiple",
    }
    node = own.Split_type(MPI.COMM_TYPE_SHARED)
    masks = tuple(node.allgather(affinity()))
    if own.size == MPI.COMM_WORLD.size:  # all ranks of the node have come
        segments.forget_names()
    level = levels[MPI.Query_thread()]
    return Communicator(own.rank, own.size, own, level, len(masks), masks, node, **_nodes(own, node))


def _nodes(mpi: Any, node: Any) -> dict[str, Any]:
    """`Communicator.ranks_per_node` and `nodes_of_ranks`."""
    first = mpi.allgather(min(node.allgather(mpi.rank)))  # of each rank's node
    wide = first.count(first[0])
    if all(leader == rank - rank % wide for rank, leader in enumerate(first)):
        return {"ranks_per_node": wide, "nodes_of_ranks": ()}
    numbers = {leader: number for number, leader in enumerate(dict.fromkeys(first))}
    return {"ranks_per_node": wide, "nodes_of_ranks": tuple(numbers[leader] for leader in first)}


def ends(error: BaseException) -> int | None:
    """Report an exception that nobody caught, and return the exit status; None where it is Python's matter:
    it is no error of ours, and this process is alone."""
    return report(error) if isinstance(error, HaloclineError) or has_ranks() else None


def has_ranks() -> bool:
    """Whether this process is one of several, or has met others through a user's communicator."""
    return launcher() is not None or _meeting is not None


# -- the MPI library ---------------------------------------------------------------------------------


def _initialised() -> Any:
    """mpi4py.MPI, initialised and checked."""
    import mpi4py

    mpi4py.rc.thread_level = "multiple"  # without effect where the user imported mpi4py.MPI before
    try:
        with warnings.catch_warnings():  # about another MPI's launcher; `world` says it better
            warnings.simplefilter("ignore", RuntimeWarning)
            from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RunError(
            f"mpi4py finds no MPI library ({error}); `pip install mpich`, or install the system's MPI and "
            "build mpi4py against it: pip install --force-reinstall --no-cache-dir --no-binary mpi4py mpi4py"
        ) from error
    if MPI.Is_finalized():
        raise RunError("MPI is finalized already: Halocline cannot run after MPI.Finalize()")
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    check_library(native().mpi_library(), _library_of_mpi4py(MPI))
    return MPI


def check_library(ours: str, theirs: str) -> None:
    """Raise RunError where native code and mpi4py use different MPI libraries.

    Parameters
    ----------
    ours, theirs : str
        Files of the libraries of native code and of mpi4py.
    """
    if os.path.realpath(ours) != os.path.realpath(theirs):
        raise RunError(
            f"native code uses the MPI library {os.path.realpath(ours)}, "
            f"but mpi4py uses {os.path.realpath(theirs)}: they must be one. Build both against the same "
            "MPI: with its mpicc first on PATH, "
            "pip install --force-reinstall --no-cache-dir --no-binary mpi4py mpi4py, then Halocline anew"
        )


class _SymbolInfo(ctypes.Structure):
    """Dl_info of dladdr(3)."""

    _fields_ = (
        ("dli_fname", ctypes.c_char_p),
        ("dli_fbase", ctypes.c_void_p),
        ("dli_sname", ctypes.c_char_p),
        ("dli_saddr", ctypes.c_void_p),
    )


def _library_of_mpi4py(MPI: Any) -> str:
    """The file that holds the MPI_Comm_rank which mpi4py calls."""
    function = ctypes.CDLL(MPI.__file__).MPI_Comm_rank
    try:
        dladdr = ctypes.CDLL(None).dladdr
    except AttributeError:  # C libraries before 2.34 keep it apart
        dladdr = ctypes.CDLL("libdl.so.2").dladdr
    dladdr.argtypes = (ctypes.c_void_p, ctypes.POINTER(_SymbolInfo))
    info = _SymbolInfo()
    if not dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info)):
        raise RunError("cannot find out which MPI library mpi4py uses: dladdr does not know MPI_Comm_rank")
    return os.fsdecode(info.dli_fname)


# -- the end of a rank that fails --------------------------------------------------------------------


def report(error: BaseException) -> int:
    """Print `error` as a command's last word, and return the exit status that the process must have.

    Where all ranks fail, the lowest one prints for all of them and their status is the same. Where
    others go on, this rank prints with its name, and MPI ends all of them.
    """
    code = exit_code(error)
    started = launcher()
    if started is None and _meeting is None:
        complain(describe(error))
        return code
    try:
        meeting = _join(error, code)
    except HaloclineError:  # MPI does not work so: no rank can get far, and the first of each node speaks
        if started is None or segments.first_of_node(started.rank):
            complain(describe(error))
        return code
    from mpi4py import MPI

    if MPI.Is_finalized():
        complain(describe(error))
        return code
    common = array("i", [code if meeting.rank == 0 else 0])
    request = meeting.Iallreduce(MPI.IN_PLACE, common, MPI.MAX)
    deadline = time.monotonic() + PATIENCE
    while not request.Test():
        if time.monotonic() > deadline:
            _say(f"on rank {meeting.rank} of {meeting.size}:\n{describe(error)}", code)
            MPI.COMM_WORLD.Abort(code)  # of a duplicate, MPICH 4.0 does not return
            os._exit(code)  # on a busy machine that of MPICH 5.0 does, before mpiexec has ended this rank
        time.sleep(0.001)
    if meeting.rank == 0:
        _say(describe(error), common[0])
    meeting.Barrier()  # the first rank to end with this status ends all
    return common[0]


def _join(error: BaseException, code: int) -> Any:
    """The communicator on which failing ranks meet. Where this rank failed before MPI was initialised,
    that must happen now, and may wait for ever for ranks that do not need MPI."""
    if _meeting is None:
        guard = _guard(describe(error), code)
        try:
            world()
        finally:
            os.kill(guard, signal.SIGKILL)
            os.waitpid(guard, 0)
    return _meeting


def _guard(text: str, code: int) -> int:
    """Start a process that says `text` and kills this one after START_PATIENCE; return its number.
    No thread could: Python's lock is held while MPI is initialised."""
    parent = os.getpid()
    guard = os.fork()
    if guard:
        return guard
    end = time.monotonic() + START_PATIENCE
    while time.monotonic() < end:
        if os.getppid() != parent:
            os._exit(0)
        time.sleep(0.1)
    _say(text, code)
    os.kill(parent, signal.SIGKILL)
    os._exit(0)


def _say(text: str, code: int) -> None:
    """The last words of ranks that end with the status `code`. mpiexec does not always pass on what a rank
    prints just before it aborts, so that they go to `halocline.run.launch` directly, where that listens."""
    if not _tell(f"status {code} {json.dumps(text)}"):
        complain(text)
        time.sleep(RELAY_PATIENCE)


# The connection to `halocline.run.launch`, where that started this rank. It is open as long as the rank
# lives: its end tells of a death, unless "end" was said before.
_line: Any = None


def _tell(text: str) -> bool:
    """Tell what started this rank: "rank R PROCESS", "status S TEXT" before all ranks end, "end". Return
    whether it listens."""
    global _line
    name = os.environ.get("HALOCLINE_LAUNCH")
    if name is None:
        return False
    import fcntl
    import socket

    try:
        if _line is None:
            with socket.socket(socket.AF_UNIX) as line:
                # Of a process that dies, Linux closes the highest first: mpiexec must not be the first to see
                # the end, since it kills the others then.
                above = int(os.environ.get("PMI_FD", "2")) + 1
                _line = socket.socket(fileno=fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, above))
            _line.connect(f"\0{name}")
        _line.sendall(f"{text}\n".encode())
    except OSError:  # on another node, or gone
        return False
    return True
