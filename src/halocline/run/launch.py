"""Start a command on several ranks with the mpiexec that belongs to Halocline's MPI."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
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
    environment = dict(os.environ)
    if os.geteuid() == 0:  # Open MPI asks root to confirm, other MPIs ignore this
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with tempfile.TemporaryDirectory(prefix="halocline-") as processes:
        child = subprocess.Popen(
            [str(program), "-n", str(ranks), *command],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment | {"HALOCLINE_PROCESSES": processes},
            errors="replace",
            text=True,
            process_group=0,  # a Ctrl-C of the terminal reaches the ranks once, through this process
            preexec_fn=_die_with_parent(),
        )
        assert child.stderr is not None
        relay = threading.Thread(target=_relay, args=(child.stderr, sys.stderr, Path(processes)), daemon=True)
        relay.start()
        with _forwarding(child, (signal.SIGINT, signal.SIGTERM)):
            status = child.wait()
            relay.join(5.0)  # a grandchild of a rank may keep the pipe open
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
_STATUS = re.compile(r"=   EXIT CODE: (?P<status>\d+)")
_SIGNAL = re.compile(r"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: .*\(signal (?P<signal>\d+)\)")
_NOISE = re.compile(
    r"This typically refers to a problem with your application"
    r"|Please see the FAQ page for debugging suggestions"
    r"|Abort\(\d+\) on node .*: application called MPI_Abort"
    r"|\[mpiexec@.*\] (Sending Ctrl-C to processes|Press Ctrl-C again)"
)


def _relay(source: IO[str], target: IO[str], processes: Path) -> None:
    """Copy `source` to `target`, with mpiexec's own lines about a dead rank put in our words."""
    facts: dict[str, str] = {}
    with contextlib.suppress(OSError):  # nobody may be left to read
        for line in source:
            for pattern in (_DEAD, _STATUS, _SIGNAL):
                if match := pattern.match(line):
                    facts |= match.groupdict()
                    break
            else:
                if not (_BLOCK.match(line) or _NOISE.match(line)):
                    target.write(line)
                    target.flush()
        if facts:
            target.write(_obituary(facts, processes))
            target.flush()


def _obituary(facts: dict[str, str], processes: Path) -> str:
    name = f"process {facts.get('process')} on {facts.get('host')}"
    file = processes / facts.get("process", "")
    if file.is_file():
        name = f"rank {file.read_text()} ({name})"
    how = f"ended with status {facts.get('status')} without telling the other ranks"
    if "signal" in facts:
        how = f"was killed by {signal.Signals(int(facts['signal'])).name}"
    return f"halocline: error: {name} {how}; all ranks were stopped\n"
