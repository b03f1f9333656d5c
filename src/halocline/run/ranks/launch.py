"""Start of a command on several ranks with the mpiexec of the MPI library that Halocline uses."""

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
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TextIO

from halocline.errors import InputError
from halocline.native import native
from halocline.ranges import RANKS
from halocline.run.host import segments
from halocline.run.host.mpi_library import kind_of, mpi_library
from halocline.run.host.process import allow_files, binds_threads, check_stacks, cores, restoring
from halocline.run.host.streams import complain, give_up, why_lost
from halocline.run.ranks import mpi
from halocline.run.ranks.library import (
    environment_of_ranks,
    environment_without_launcher,
    launcher,
    mpiexec,
)

PR_SET_PDEATHSIG = 1  # prctl(2)
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
RANK_BYTES = 50e6  # memory of a rank without fields: interpreter, libraries, MPI buffers
# Environment variables of batch systems and MPI libraries that give mpiexec further hosts.
HOSTS = (
    *("PBS_NODEFILE", "LSB_HOSTS", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE"),
    *("HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"),
    *("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"),
)
# Prefixes of the variables that the mpiexec of Open MPI passes to ranks on other hosts.
PASSED = ("HALOCLINE_", "OMP_", "GOMP_", "MPI4PY_", "PYTHON", "LD_LIBRARY_PATH")


def environment() -> dict[str, str]:
    """Return the environment for mpiexec.

    Open MPI starts ranks as root, or more ranks than cores, only if these variables allow it. Other MPI
    libraries ignore these variables.
    """
    permissions = {
        "OMPI_MCA_rmaps_base_oversubscribe": "true",  # version 4
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # version 5
        "OMPI_MCA_orte_execute_quiet": "true",  # no long message about a failed rank; Halocline prints one
    }
    if os.geteuid() == 0:
        permissions |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**permissions, **environment_without_launcher(os.environ), **environment_of_ranks()}


def run_on_ranks(
    ranks: int, arguments: Sequence[str], *, timeout: float | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run this Python interpreter on several ranks, and return the completed process with its output.

    Parameters
    ----------
    ranks : int
        Number of ranks.
    arguments : sequence of str
        Arguments of the interpreter.
    timeout : float, optional
        Maximum run time in seconds.
    **variables : str
        Additional environment variables of the ranks.
    """
    of_ranks = environment() | variables
    options = [*passing(kind_of(mpi_library()), of_ranks), "-n", str(ranks)]
    return subprocess.run(
        [str(mpiexec()), *options, sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=of_ranks,
        check=False,
    )


def passing(kind: str | None, variables: Mapping[str, str]) -> list[str]:
    """Return the options of mpiexec that pass environment variables to ranks on other hosts.

    Open MPI needs the name of each variable. Other MPI libraries pass all variables.
    """
    if kind != "Open MPI":
        return []
    return [text for name in sorted(variables) if name.startswith(PASSED) for text in ("-x", name)]


def several_hosts() -> bool:
    """Return True in a job on several hosts."""
    nodes = os.environ.get("SLURM_JOB_NUM_NODES", os.environ.get("SLURM_NNODES", "1"))
    return nodes != "1" or any(name in os.environ for name in HOSTS)


def placing(kind: str | None, ranks: int, threads: int | None, per_node: int | None = None) -> list[str]:
    """Return the options of mpiexec that assign ranks to hosts and cores to ranks.

    OpenMP binds the threads of a process to the cores of that process. Without these options, all ranks of a
    node have the same cores, and their first threads share one core. Therefore each rank has separate cores
    if OpenMP binds threads.

    Parameters
    ----------
    kind : {"MPICH", "Open MPI"} or None
        MPI library; None gives no options.
    ranks : int
        Number of ranks.
    threads : int or None
        Threads per rank. Default: OMP_NUM_THREADS, or an equal share of the cores of this host.
    per_node : int, optional
        Ranks per host in a job on several hosts. Default: the distribution of the MPI library.
    """
    if kind is None:
        return []
    hosts = per_node if several_hosts() else None
    thread_text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    count = (
        threads
        or (int(thread_text) if thread_text.isdigit() else 0)
        or max(1, len(cores()) // (hosts or ranks))
    )
    unit = "hwthread" if os.environ.get("OMP_PLACES", "").startswith("threads") else "core"
    if kind == "MPICH":
        host_options = [] if hosts is None else ["-ppn", f"{hosts}"]
        bind_options = ["-bind-to", f"{unit}:{count}", "-map-by", f"{unit}:{count}"]
        return [*host_options, *(bind_options if binds_threads() else ())]
    mapping = "slot" if hosts is None else f"ppr:{hosts}:node"
    if not binds_threads():
        return [] if hosts is None else ["--map-by", f"{mapping}:OVERSUBSCRIBE"]
    thread_options = ["--use-hwthread-cpus"] if unit == "hwthread" else []
    return [*thread_options, "--map-by", f"{mapping}:PE={count}:OVERSUBSCRIBE", "--bind-to", unit]


def launch(
    ranks: int,
    command: Sequence[str],
    *,
    io_ranks: int = 0,
    threads: int | None = None,
    per_node: int | None = None,
) -> int:
    """Run a command on several ranks and additional I/O ranks, wait for it, and return its exit status.

    SIGINT, SIGTERM and SIGUSR1 are forwarded to the ranks, which handle them. If this process is killed, the
    ranks are terminated. If a rank dies, the function prints the number of the rank. If OpenMP binds threads,
    each rank has separate cores for its threads.

    Parameters
    ----------
    ranks : int
        Number of ranks without I/O ranks.
    command : sequence of str
        Program and arguments.
    io_ranks : int
        Number of I/O ranks.
    threads : int, optional
        Threads per rank; see `placing`.
    per_node : int, optional
        Ranks per host in a job on several hosts without I/O ranks; see `placing`.

    Raises
    ------
    InputError
        The number of ranks is below 1. Memory, shared memory or the limit of open files does not suffice. Or
        this process is itself a rank of a run.
    RunError
        There is no mpiexec.
    """
    RANKS.check("ranks", ranks)
    ranks += io_ranks
    parent = launcher()
    if parent is not None and parent.size != 1:  # a shell that `srun --pty` started may start ranks
        size = "several" if parent.size is None else parent.size
        raise InputError(
            f"cannot start {ranks} ranks from inside a run: a launcher ({parent.name}) started this process "
            f"as one of {size} processes. Leave --ranks out: the command uses the ranks of the launcher."
        )
    program = mpiexec()
    check_stacks(1)  # with too small a stack, mpiexec and ranks end without a message
    _check_room(ranks)
    death_report: dict[str, str] = {}
    write_errors: list[OSError] = []
    kind, affinity_set = kind_of(mpi_library()), cores()
    prctl = ctypes.CDLL(None).prctl  # resolved before the fork, since no library may be loaded after it

    def prepare() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        os.sched_setaffinity(0, affinity_set)  # this process may be bound to a core

    with Ranks() as listener:
        variables = environment() | {"HALOCLINE_LAUNCH": listener.name, mpi.IO_RANKS: str(io_ranks)}
        child = subprocess.Popen(
            [
                str(program),
                *placing(kind, ranks, threads, None if io_ranks else per_node),
                *passing(kind, variables),
                "-n",
                str(ranks),
                *command,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=variables,
            errors="replace",
            text=True,
            process_group=0,  # a Ctrl-C of the terminal reaches the ranks once, through this process
            preexec_fn=prepare,
        )
        relays = [
            threading.Thread(target=_relay, args=(source, target, death_report, write_errors), daemon=True)
            for source, target in ((child.stdout, sys.stdout), (child.stderr, sys.stderr))
        ]
        send = _sender(child, listener, ranks)
        with restoring(FORWARDED) as forwarded:
            for number in forwarded:
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
        if write_errors and not isinstance(write_errors[0], BrokenPipeError):
            complain(
                f"halocline: error: the output of the ranks cannot be written: {why_lost(write_errors[0])}"
            )
        return 1 if write_errors else 0
    if listener.last_words is not None:
        code, text = listener.last_words
        complain(text)
        return code
    elsewhere = (
        death_report.get("process") not in listener.processes
        and death_report.get("host") != socket.gethostname()
    )
    text = _obituary(None if death_report and elsewhere else listener.dead, death_report)
    if text and "said" not in death_report:
        complain(text)
    return status if status > 0 else 128 - status


def _check_room(ranks: int) -> None:
    """Raise InputError if the ranks exceed the memory, open files or shared memory of this host.

    Ranks beyond these limits could crash the host or end without a message. Jobs on several hosts are not
    checked.
    """
    if several_hosts():
        return
    available = native().available_memory()
    required = ranks * RANK_BYTES
    if required > available:
        raise InputError(
            f"{ranks} ranks take {required / 1e9:,.1f} GB of memory without fields, but only "
            f"{available / 1e9:,.1f} GB are available on this machine. Start at most "
            f"{int(available // RANK_BYTES)}."
        )
    allow_files(ranks)
    if text := segments.lack(ranks, segments.room()):
        raise InputError(text)


def _sender(child: subprocess.Popen[str], listener: Ranks, ranks: int) -> Callable[[int], None]:
    """Return a function that forwards a signal to the ranks.

    The function sends signals to mpiexec. The mpiexec of Open MPI kills the ranks one second after SIGINT or
    SIGTERM, before they have written a checkpoint. Therefore the first SIGINT or SIGTERM is sent directly to
    the ranks, if all ranks are on this node.
    """
    kills = kind_of(mpi_library()) == "Open MPI"

    def send(number: int) -> None:
        nonlocal kills
        alive = listener.alive() if kills and number in (signal.SIGINT, signal.SIGTERM) else []
        if len(alive) < ranks or 0 in alive:
            child.send_signal(number)
            return
        kills = False  # mpiexec handles repeated signals and may kill the ranks
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    return send


# Output of MPICH's mpiexec when a rank dies: a block between two lines of "=". Three more lines follow if a
# signal killed the rank.
_BLOCK = re.compile(r"=+$|=   ")
_DEAD = re.compile(r"=   PID (?P<process>\d+) RUNNING AT (?P<host>\S+)")
_SIGNAL = re.compile(r"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: .*\(signal (?P<signal>\d+)\)")
_SAID = re.compile(r"halocline: rank (?P<said>\d+): ")  # message of the engine before it aborts all ranks
_NOISE = re.compile(
    r"This typically refers to a problem with your application"
    r"|Please see the FAQ page for debugging suggestions"
    r"|Abort\(\d+\) on node .*: application called MPI_Abort"
    r"|\[mpiexec@.*\] (Sending Ctrl-C to processes|Press Ctrl-C again)"
)


def _relay(source: IO[str], target: TextIO, facts: dict[str, str], lost: list[OSError]) -> None:
    """Copy `source` to `target` without the lines of mpiexec.

    `facts` receives information about a dead rank, and the number of the rank that printed the reason of an
    abort. If `target` accepts no more output, the error is appended to `lost`. The function then continues to
    read, since ranks must not wait for a reader.
    """
    for line in source:
        if reason := _SAID.match(line):
            facts |= reason.groupdict()
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
    """Server for the connections of the ranks of this node (see `halocline.run.ranks.library`).

    Attributes
    ----------
    name : str
        Name of the socket in the abstract namespace of Linux.
    dead : (str, str) or None
        Number and process ID of the first rank whose connection closed without the line "end". mpiexec then
        kills the other ranks, and does not report which rank ended first. The kernel keeps the order of these
        events.
    processes : set of str
        Process IDs of the ranks that have sent their number. Ranks of other nodes cannot connect.
    last_words : (int, str) or None
        Exit status and message of a rank that aborted all ranks.
    """

    def __init__(self) -> None:
        self.name = f"halocline-{os.getpid()}-{secrets.token_hex(8)}"
        self.dead: tuple[str, str] | None = None
        self.processes: set[str] = set()
        self.last_words: tuple[int, str] | None = None
        self._open: dict[int, tuple[socket.socket, bytearray]] = {}  # connections and received data

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
        """Wait for events, at most for the given number of seconds, and return True if there were any.

        A poll lists each connection once, in the order of their first events. Therefore each connection is
        read once before any connection is read again. A rank that sends a line waits for the answer. If one
        poll reports both a line and the end of a rank, this rank was killed while it waited, after another
        rank had ended.
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
        # Edge-triggered: a poll lists a connection again only for a new event, behind the connections with
        # earlier events.
        self._events.register(connection, select.EPOLLIN | select.EPOLLET)

    def _read(self, number: int) -> bool:
        """Read once from a connection; return True if it may have more data."""
        connection, received = self._open[number]
        try:
            data = connection.recv(4096)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        received += data
        self._note_lines(received)
        if data:
            with contextlib.suppress(OSError):  # the rank has ended or no longer waits
                connection.send(b"\n" * data.count(b"\n"))
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
        """Handle each line immediately, because mpiexec may exit before the rank that calls MPI_Abort."""
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
    """Return the process ID of the peer; 0 for a process of another PID namespace."""
    credentials = struct.Struct("3i")  # ucred of unix(7): process, user and group
    content = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size)
    return int(credentials.unpack(content)[0])


def _obituary(dead: tuple[str, str] | None, facts: dict[str, str]) -> str:
    """Return an error message with the rank that died and the cause, or "" if all ranks ended normally."""
    if dead is None and not facts:
        return ""
    if dead is None:
        name = f"process {facts.get('process')} on {facts.get('host')}"
    else:
        name = f"rank {dead[0]} (process {dead[1]})"
    cause = "died"
    if "signal" in facts and (dead is None or dead[1] == facts.get("process")):
        number = signal.Signals(int(facts["signal"]))
        cause = f"was killed by {number.name}"
        if number == signal.SIGBUS and (free := segments.room()) is not None:
            cause += f", probably because {segments.FOLDER} is full (it has {free} bytes available)"
    return f"halocline: error: {name} {cause}; all ranks were stopped"
