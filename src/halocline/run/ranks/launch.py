"""Start a command on several ranks with the mpiexec that belongs to Halocline's MPI."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import secrets
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import IO, TextIO

from halocline.errors import InputError
from halocline.native import native
from halocline.ranges import RANKS
from halocline.run.host import segments
from halocline.run.host.process import allow_files, binds_threads, check_stacks, cores, restoring
from halocline.run.host.streams import complain, give_up, why_lost
from halocline.run.ranks import mpi
from halocline.run.ranks.library import kind_of, launcher, mpiexec, unlaunched

PR_SET_PDEATHSIG = 1  # prctl(2)
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
RANK_BYTES = 50e6  # what a rank takes before it has fields: interpreter, libraries, MPI's buffers
# Where mpiexec finds hosts beside this one: batch systems and the MPIs' own.
HOSTS = (
    *("PBS_NODEFILE", "LSB_HOSTS", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE"),
    *("HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"),
    *("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"),
)


def environment() -> dict[str, str]:
    """The environment to start mpiexec in: Open MPI refuses root, and more ranks than cores, unless these
    variables allow it; other MPIs ignore these variables."""
    allowed = {
        "OMPI_MCA_rmaps_base_oversubscribe": "true",  # version 4
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # version 5
        "OMPI_MCA_orte_execute_quiet": "true",  # no long message about a rank that failed: ours is printed
    }
    if os.geteuid() == 0:
        allowed |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**allowed, **unlaunched(os.environ)}


def run_on_ranks(
    ranks: int, arguments: Sequence[str], *, timeout: float | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run this Python with some arguments on several ranks, and return the completed process with its output.

    Variables are added to the environment of the ranks.
    """
    return subprocess.run(
        [str(mpiexec()), "-n", str(ranks), sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment() | variables,
        check=False,
    )


def several_hosts() -> bool:
    """Return True in a job on several hosts."""
    nodes = os.environ.get("SLURM_JOB_NUM_NODES", os.environ.get("SLURM_NNODES", "1"))
    return nodes != "1" or any(name in os.environ for name in HOSTS)


def placing(kind: str | None, ranks: int, threads: int | None, per_node: int | None = None) -> list[str]:
    """Return the options of mpiexec that give each host its ranks, and each rank its cores.

    OpenMP binds the threads of a process within the cores of that process. Without these options all ranks of
    a node have the same cores, and their first threads share the first of them. Therefore each rank has cores
    of its own where OpenMP binds threads.

    Parameters
    ----------
    kind : {"MPICH", "Open MPI"} or None
    ranks : int
    threads : int or None
        Threads of a rank; by default OMP_NUM_THREADS, or an equal share of the cores of this host.
    per_node : int, optional
        Ranks of each host, in a job on several hosts; by default as the MPI distributes them.
    """
    if kind is None:
        return []
    hosts = per_node if several_hosts() else None
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    count = threads or (int(given) if given.isdigit() else 0) or max(1, len(cores()) // (hosts or ranks))
    unit = "hwthread" if os.environ.get("OMP_PLACES", "").startswith("threads") else "core"
    if kind == "MPICH":
        of_host = [] if hosts is None else ["-ppn", f"{hosts}"]
        bound = ["-bind-to", f"{unit}:{count}", "-map-by", f"{unit}:{count}"]
        return [*of_host, *(bound if binds_threads() else ())]
    place = "slot" if hosts is None else f"ppr:{hosts}:node"
    if not binds_threads():
        return [] if hosts is None else ["--map-by", f"{place}:OVERSUBSCRIBE"]
    of_threads = ["--use-hwthread-cpus"] if unit == "hwthread" else []
    return [*of_threads, "--map-by", f"{place}:PE={count}:OVERSUBSCRIBE", "--bind-to", unit]


def launch(
    ranks: int,
    command: Sequence[str],
    *,
    io_ranks: int = 0,
    threads: int | None = None,
    per_node: int | None = None,
) -> int:
    """Run `command` on `ranks` ranks, and I/O ranks beside them, wait for it, and return its exit status.

    SIGINT, SIGTERM and SIGUSR1 go on to the ranks, which decide what to do; where this process itself is
    killed, the ranks are terminated. Where a rank dies, its number is printed. Where OpenMP binds threads,
    each rank has cores of its own for its `threads`. In a job on several hosts without I/O ranks, each host
    has `per_node` ranks; see `placing`.

    Raises
    ------
    InputError
        `ranks` is below one or more than this machine has memory, shared memory or open files for, or
        this process is itself a rank.
    RunError
        There is no mpiexec.
    """
    RANKS.check("ranks", ranks)
    ranks += io_ranks
    started = launcher()
    if started is not None and started.size != 1:  # a shell that srun --pty started may start ranks
        size = "some" if started.size is None else started.size
        raise InputError(
            f"cannot start {ranks} ranks from inside a run: a launcher ({started.name}) started this process "
            f"as one of {size}; leave out --ranks there, the command uses the ranks it is given"
        )
    program = mpiexec()
    check_stacks(1)  # mpiexec and ranks die of a small one without a word
    _check_room(ranks)
    facts: dict[str, str] = {}
    lost: list[OSError] = []
    kind, mine = kind_of(os.path.basename(native().mpi_library())), cores()
    prctl = ctypes.CDLL(None).prctl  # found before the fork, after which no library may be loaded

    def prepare() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        os.sched_setaffinity(0, mine)  # this process may be bound to a core

    with Ranks() as listener:
        child = subprocess.Popen(
            [
                str(program),
                *placing(kind, ranks, threads, None if io_ranks else per_node),
                "-n",
                str(ranks),
                *command,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment() | {"HALOCLINE_LAUNCH": listener.name, mpi.IO_RANKS: str(io_ranks)},
            errors="replace",
            text=True,
            process_group=0,  # a Ctrl-C of the terminal reaches the ranks once, through this process
            preexec_fn=prepare,
        )
        relays = [
            threading.Thread(target=_relay, args=(source, target, facts, lost), daemon=True)
            for source, target in ((child.stdout, sys.stdout), (child.stderr, sys.stderr))
        ]
        send = _sender(child, listener, ranks)
        with restoring(FORWARDED) as heard:
            for number in heard:
                signal.signal(number, lambda number, _: send(number))
            for relay in relays:
                relay.start()
            while child.poll() is None:
                listener.listen(0.1)
            while listener.listen(0):
                pass
            for relay in relays:
                relay.join(5.0)  # a grandchild of a rank may keep a pipe open
    status = child.returncode
    if status == 0:
        if lost and not isinstance(lost[0], BrokenPipeError):
            complain(f"halocline: error: what the ranks print cannot be written: {why_lost(lost[0])}")
        return 1 if lost else 0
    if listener.last_words is not None:
        code, text = listener.last_words
        complain(text)
        return code
    elsewhere = facts.get("process") not in listener.processes and facts.get("host") != socket.gethostname()
    text = _obituary(None if facts and elsewhere else listener.dead, facts)
    if text and "said" not in facts:
        complain(text)
    return status if status > 0 else 128 - status


def _check_room(ranks: int) -> None:
    """Refuse ranks that this host has no room for, where they all come to it: they would take it down, or die
    without a word."""
    if several_hosts():
        return
    available = native().available_memory()
    needed = ranks * RANK_BYTES
    if needed > available:
        raise InputError(
            f"{ranks} ranks take {needed / 1e9:,.1f} GB of memory before they have fields, but only "
            f"{available / 1e9:,.1f} GB are available on this machine: start "
            f"{int(available // RANK_BYTES)} at most"
        )
    allow_files(ranks)
    if text := segments.lack(ranks, segments.room()):
        raise InputError(text)


def _sender(child: subprocess.Popen[str], listener: Ranks, ranks: int) -> Callable[[int], None]:
    """What sends a signal on to the ranks: mpiexec does. But Open MPI's answers SIGINT and SIGTERM by killing
    them a second later, before they have left a checkpoint, so that the first of these goes to them directly,
    where all of them are on this node."""
    kills = ".so.40" in native().mpi_library()

    def send(number: int) -> None:
        nonlocal kills
        alive = listener.alive() if kills and number in (signal.SIGINT, signal.SIGTERM) else []
        if len(alive) < ranks or 0 in alive:
            child.send_signal(number)
            return
        kills = False  # who asks again means it
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    return send


# What MPICH's mpiexec prints when a rank dies: a block between two lines of "=", then three more lines
# where a signal killed it.
_BLOCK = re.compile(r"=+$|=   ")
_DEAD = re.compile(r"=   PID (?P<process>\d+) RUNNING AT (?P<host>\S+)")
_SIGNAL = re.compile(r"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: .*\(signal (?P<signal>\d+)\)")
_SAID = re.compile(r"halocline: rank (?P<said>\d+): ")  # the engine's reason to abort all ranks
_NOISE = re.compile(
    r"This typically refers to a problem with your application"
    r"|Please see the FAQ page for debugging suggestions"
    r"|Abort\(\d+\) on node .*: application called MPI_Abort"
    r"|\[mpiexec@.*\] (Sending Ctrl-C to processes|Press Ctrl-C again)"
)


def _relay(source: IO[str], target: TextIO, facts: dict[str, str], lost: list[OSError]) -> None:
    """Copy `source` to `target` without mpiexec's own lines; what they say of a dead rank, and which rank has
    said why all are aborted, goes to `facts`. Where `target` takes no more, `lost` gets the reason, and the
    ranks go on: they must not wait for a reader."""
    for line in source:
        if said := _SAID.match(line):
            facts |= said.groupdict()
        match = _DEAD.match(line) or _SIGNAL.match(line)
        if match:
            facts |= match.groupdict()
        elif not (_BLOCK.match(line) or _NOISE.match(line)):
            try:
                target.write(line)
                target.flush()
            except OSError as error:
                lost.append(error)
                give_up(target)


class Ranks:
    """Listens to the ranks of this node (see `halocline.run.ranks.library`).

    Attributes
    ----------
    name : str
        Of the socket where they connect, in Linux' abstract namespace.
    dead : (str, str) or None
        Number and process of the first rank whose connection ended out of order. mpiexec kills the others
        then, and does not say which was first. The kernel keeps the order of the events.
    processes : set of str
        All that have said which rank they are. Those of other nodes cannot.
    last_words : (int, str) or None
        The exit status with which a rank ended all, and why.
    """

    def __init__(self) -> None:
        self.name = f"halocline-{os.getpid()}-{secrets.token_hex(8)}"
        self.dead: tuple[str, str] | None = None
        self.processes: set[str] = set()
        self.last_words: tuple[int, str] | None = None
        self._open: dict[int, tuple[socket.socket, bytearray]] = {}  # connections, and their data

    def __enter__(self) -> Ranks:
        self._events = select.epoll()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(f"\0{self.name}")
        self._server.listen(4096)
        self._events.register(self._server, select.EPOLLIN)
        return self

    def __exit__(self, *_: object) -> None:
        for connection, _received in self._open.values():
            connection.close()
        self._server.close()
        self._events.close()

    def listen(self, seconds: float) -> bool:
        """Wait for events, at most for a number of seconds; return whether there were any.

        A poll lists each connection once, in the order of their first events. Hence each connection is read
        once before any is read again. A rank that sends a line waits for the answer. Where a poll has the
        line and the end of a rank, the rank was therefore killed, after another rank had ended.
        """
        events = [number for number, _mask in self._events.poll(seconds)]
        unread = [number for number in events if number != self._server.fileno()]
        if len(unread) < len(events):
            self._accept()
        while unread:
            unread = [number for number in unread if self._read(number)]
        return bool(events)

    def _accept(self) -> None:
        connection = self._server.accept()[0]
        connection.setblocking(False)
        self._open[connection.fileno()] = (connection, bytearray())
        # Edge-triggered: a poll lists a connection again only after a new event, behind earlier events.
        self._events.register(connection, select.EPOLLIN | select.EPOLLET)

    def _read(self, number: int) -> bool:
        """Read once from a connection; return whether it may have more data."""
        connection, received = self._open[number]
        try:
            new = connection.recv(4096)
        except BlockingIOError:
            return False
        except ConnectionError:
            new = b""
        received += new
        self._note_lines(received)
        if new:
            with contextlib.suppress(OSError):  # the rank has ended, or no longer waits
                connection.send(b"\n" * new.count(b"\n"))
            return True
        self._note_end(received)
        connection.close()
        del self._open[number]
        return False

    def alive(self) -> list[int]:
        """Return the process IDs of the ranks that have sent their number and have not ended."""
        ranks = [connection for connection, received in self._open.values() if received.startswith(b"rank ")]
        return [_peer_process(connection) for connection in ranks]

    def _note_lines(self, received: bytearray) -> None:
        """Note the lines at once, since mpiexec may end before the rank that aborts all."""
        for line in received.splitlines(keepends=True):
            if line.startswith(b"rank ") and line.endswith(b"\n"):
                self.processes.add(line.split()[2].decode())
            if self.last_words is None and line.startswith(b"status ") and line.endswith(b"\n"):
                _, code, text = line.decode().split(" ", 2)
                self.last_words = int(code), json.loads(text)

    def _note_end(self, received: bytearray) -> None:
        lines = [line.split(" ") for line in received.decode().splitlines()]
        if self.dead is None and ["end"] not in lines:
            for key, *values in lines:
                if key == "rank":
                    self.dead = values[0], values[1]


def _peer_process(connection: socket.socket) -> int:
    """Return the ID of the process at the other end; 0 for a process of another PID namespace."""
    credentials = struct.Struct("3i")  # ucred of unix(7): process, user and group
    content = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size)
    return int(credentials.unpack(content)[0])


def _obituary(dead: tuple[str, str] | None, facts: dict[str, str]) -> str:
    """Which rank died and how, in a sentence; "" where all ended in order."""
    if dead is None and not facts:
        return ""
    if dead is None:
        name = f"process {facts.get('process')} on {facts.get('host')}"
    else:
        name = f"rank {dead[0]} (process {dead[1]})"
    how = "died"
    if "signal" in facts and (dead is None or dead[1] == facts.get("process")):
        number = signal.Signals(int(facts["signal"]))
        how = f"was killed by {number.name}"
        if number == signal.SIGBUS and (free := segments.room()) is not None:
            how += f", as happens where {segments.FOLDER} is full (it has {free} bytes available)"
    return f"halocline: error: {name} {how}; all ranks were stopped"
