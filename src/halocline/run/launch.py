"""Start a command on several ranks with the mpiexec that belongs to Halocline's MPI."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from halocline.errors import InputError, RunError
from halocline.run import mpi

PR_SET_PDEATHSIG = 1  # prctl(2)


def mpiexec() -> Path:
    """The mpiexec of the MPI library that native code uses: beside the library, else on PATH.

    Raises
    ------
    RunError
        There is none.
    """
    library = Path(mpi.native().mpi_library())
    names = ["mpiexec"]
    if ".so.40" in library.name:
        names.insert(0, "mpiexec.openmpi")  # Debian's names: plain mpiexec may be another MPI's
    elif ".so.12" in library.name:
        names.insert(0, "mpiexec.mpich")
    folders = [str(folder / "bin") for folder in library.resolve().parents]
    for path in (os.pathsep.join(folders), None):
        for name in names:
            found = shutil.which(name, path=path)
            if found:
                return Path(found)
    raise RunError(f"no mpiexec is installed beside the MPI library {library}, and there is none on PATH")


def environment() -> dict[str, str]:
    """The environment to start mpiexec in: Open MPI refuses root, and more ranks than cores, unless told;
    other MPIs ignore these variables."""
    told = {
        "OMPI_MCA_rmaps_base_oversubscribe": "true",  # version 4
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # version 5
        "OMPI_MCA_orte_execute_quiet": "true",  # no essay about a rank that failed; we say what is to say
    }
    if os.geteuid() == 0:
        told |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**told, **os.environ}


def launch(ranks: int, command: Sequence[str]) -> int:
    """Run `command` on `ranks` ranks, wait for it, and return its exit status.

    SIGINT and SIGTERM go on to the ranks, which decide what to do; where this process itself is killed,
    the ranks are terminated. Where a rank dies, its number is printed.

    Raises
    ------
    InputError
        `ranks` is below one, or this process is itself a rank.
    RunError
        There is no mpiexec.
    """
    if ranks < 1:
        raise InputError(f"ranks is {ranks}: expected 1 or more")
    started = mpi.launcher()
    if started is not None:
        size = "some" if started.size is None else started.size
        raise InputError(
            f"cannot start {ranks} ranks from inside a run: a launcher ({started.name}) started this process "
            f"as one of {size}; leave out --ranks there, the command uses the ranks it is given"
        )
    program = mpiexec()
    facts: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="halocline-") as processes:
        child = subprocess.Popen(
            [str(program), "-n", str(ranks), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment() | {"HALOCLINE_PROCESSES": processes},
            errors="replace",
            text=True,
            process_group=0,  # a Ctrl-C of the terminal reaches the ranks once, through this process
            preexec_fn=_die_with_parent(),
        )
        notes = Notes(Path(processes))
        over = threading.Event()
        threads = [
            threading.Thread(target=_relay, args=(child.stdout, sys.stdout, facts), daemon=True),
            threading.Thread(target=_relay, args=(child.stderr, sys.stderr, facts), daemon=True),
            threading.Thread(target=notes.watch, args=(over,), daemon=True),
        ]
        with _forwarding(child, (signal.SIGINT, signal.SIGTERM)):
            for thread in threads:
                thread.start()
            status = child.wait()
            over.set()
            for thread in threads:
                thread.join(5.0)  # a grandchild of a rank may keep a pipe open
        if status == 0:
            return 0
        agreed = notes.status()
        if agreed is not None:
            return agreed
        if dead := notes.obituary(facts):
            print(dead, file=sys.stderr, flush=True)
    return status if status >= 0 else 128 - status


def _die_with_parent() -> Callable[[], None]:
    prctl = ctypes.CDLL(None).prctl

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    return ask


@contextlib.contextmanager
def _forwarding(child: subprocess.Popen[str], signals: Iterable[signal.Signals]) -> Iterator[None]:
    """Send these signals on to `child` meanwhile (where this is the main thread: only that may)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def forward(number: int, frame: FrameType | None) -> None:
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# What MPICH's mpiexec prints when a rank dies: a block between two lines of "=", then three more lines
# where a signal killed it.
_BLOCK = re.compile(r"=+$|=   ")
_DEAD = re.compile(r"=   PID (?P<process>\d+) RUNNING AT (?P<host>\S+)")
_SIGNAL = re.compile(r"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: .*\(signal (?P<signal>\d+)\)")
_NOISE = re.compile(
    r"This typically refers to a problem with your application"
    r"|Please see the FAQ page for debugging suggestions"
    r"|Abort\(\d+\) on node .*: application called MPI_Abort"
    r"|\[mpiexec@.*\] (Sending Ctrl-C to processes|Press Ctrl-C again)"
)


def _relay(source: IO[str], target: IO[str], facts: dict[str, str]) -> None:
    """Copy `source` to `target` without mpiexec's own lines; what they say of a dead rank goes to `facts`."""
    with contextlib.suppress(OSError):  # nobody may be left to read
        for line in source:
            match = _DEAD.match(line) or _SIGNAL.match(line)
            if match:
                facts |= match.groupdict()
            elif not (_BLOCK.match(line) or _NOISE.match(line)):
                target.write(line)
                target.flush()


class Notes:
    """What the ranks have left about themselves (see `halocline.run.mpi`), and which of them died first.

    Parameters
    ----------
    folder : Path
        Where they leave it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first: dict[str, str] = {}  # processes and ranks of those seen dead first, at the same time

    def watch(self, over: threading.Event) -> None:
        """Wait until a rank of this node dies out of order; mpiexec then kills the others, and does not say
        which was first."""
        ranks: dict[int, tuple[str, str]] = {}
        poll = select.poll()
        pause = 20.0  # milliseconds between looks for ranks that are new
        try:
            while not (over.is_set() or self.first):
                for process in {file.name for file in self.folder.glob("[0-9]*")} - {
                    p for p, _ in ranks.values()
                }:
                    with contextlib.suppress(OSError):  # gone already, or on another node
                        rank = (self.folder / process).read_text()
                        handle = os.pidfd_open(int(process))
                        ranks[handle] = (process, rank)
                        poll.register(handle, select.POLLIN)
                pause = min(1.1 * pause, 500.0)
                for handle, _ in poll.poll(pause):
                    poll.unregister(handle)
                    process, rank = ranks[handle]
                    if (self.folder / process).exists():
                        self.first[process] = rank
        finally:
            for handle in ranks:
                os.close(handle)

    def status(self) -> int | None:
        """The exit status that a rank asked for when it aborted all."""
        file = self.folder / "status"
        return int(file.read_text()) if file.is_file() else None

    def obituary(self, facts: dict[str, str]) -> str:
        """Which rank died and how, in a sentence; "" where all ended in order."""
        process = facts.get("process", "")
        dead = self.first or {file.name: file.read_text() for file in self.folder.glob("[0-9]*")}
        if not dead and not facts:
            return ""
        how = "died"
        if "signal" in facts and (process in dead or not dead):
            how = f"was killed by {signal.Signals(int(facts['signal'])).name}"
        if not dead:
            return f"halocline: error: process {process} on {facts.get('host')} {how}; all ranks were stopped"
        names = sorted((int(rank), process) for process, rank in dead.items())
        who = " or ".join(f"rank {rank} (process {process})" for rank, process in names)
        return f"halocline: error: {who} {how}; all ranks were stopped"
