"""This process: its command line, its garbage collector, and the limits that the system sets."""

from __future__ import annotations

import gc
import os
import re
import resource
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from halocline.errors import InputError


def command_line() -> list[str]:
    """Its words, as they can be given again: `shlex.join` makes a line of them."""
    program, *words = sys.argv or [""]
    path = Path(program)
    if path.name == "halocline" or path.parts[-3:] == ("halocline", "cli", "__main__.py"):
        return ["halocline", *words]
    return [program, *words]


@contextmanager
def restoring(signals: Iterable[signal.Signals]) -> Iterator[list[signal.Signals]]:
    """Yield the signals that this process does not ignore, and restore their handlers after the block.

    A signal that is ignored stays ignored, such as SIGINT in a command that a shell runs in the background.
    Only the main thread may set handlers: in another thread the list is empty.
    """
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in signals if is_main}
    before = {number: handler for number, handler in handlers.items() if handler != signal.SIG_IGN}
    try:
        yield list(before)
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables of the environment during the block; None removes one."""
    before = {name: os.environ.get(name) for name in variables}

    def put(values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    put(variables)
    try:
        yield
    finally:
        put(before)


USUAL = gc.get_threshold()
SELDOM = (50_000, 20, 20)


def seldom() -> None:
    """By Python's thresholds it scans modules and expressions, which stay, over and over: a tenth of the time
    of a short run."""
    gc.set_threshold(*SELDOM)


def as_usual() -> None:
    """For a user's program, whose garbage may be large; what was imported before is not scanned any more."""
    gc.freeze()
    gc.set_threshold(*USUAL)


# Measured with MPICH 5.0.2 on R = 2 to 16 ranks: a rank opens 30 + 2 R files and 4 more to compile kernels,
# mpiexec 10 + 4 R and some for a moment.
FILES, FILES_PER_RANK = 48, 4
# Kernels of magnetohydrodynamics on three axes take 37 KiB of a stack, and g++ 12 takes from 256 to 512 KiB
# to compile them; larger ones take more.
KERNEL_STACK, STACK = 256 * 1024, 1024 * 1024

_UNITS = {"": 1024, "B": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


_AT_START = os.sched_getaffinity(0)


def binds_threads() -> bool:
    """Return True where the environment tells OpenMP to bind threads to cores."""
    how = os.environ.get("OMP_PROC_BIND", "").strip().lower()
    return how != "false" and any(map(os.environ.get, ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY")))


def cores() -> set[int]:
    """Return the numbers of the hardware threads that this process may use.

    OpenMP binds the main thread when its library is loaded. Where it binds threads, the result is therefore
    what the process could use at its start.
    """
    return _AT_START if binds_threads() else os.sched_getaffinity(0)


def affinity() -> int:
    """Return the hardware threads that this process may use, as bits; see `cores`."""
    return sum(1 << thread for thread in cores())


def allow_files(ranks: int) -> None:
    """Let this process, and those that it starts, open the files that this number of ranks of a node need.

    Raises
    ------
    InputError
        The system allows fewer.
    """
    needed = FILES + FILES_PER_RANK * ranks
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _enough(allowed, needed):
        return
    if not _enough(most, needed):
        raise InputError(
            f"{ranks} ranks need {needed} open files in a process, but only {most} are allowed: "
            f"raise the limit (`ulimit -n {needed}`; LimitNOFILE, limits.conf)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))


def check_stacks(threads: int, environment: Mapping[str, str] = os.environ) -> None:
    """See that compilers of kernels have room on their stack, and kernels on those of all threads.

    Raises
    ------
    InputError
        A stack is too small: what needs it would die without a word.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_STACK)
    if not _enough(allowed, STACK):
        raise InputError(
            f"the stack of a process is limited to {allowed} bytes, but kernels and their compiler need "
            f"{STACK}: raise the limit (`ulimit -s {STACK // 1024}`, or more)"
        )
    for name in ("OMP_STACKSIZE", "GOMP_STACKSIZE"):  # the first that can be read counts
        size = _stack_size(environment.get(name, ""))
        if size is None:
            continue
        if threads > 1 and size < KERNEL_STACK:
            raise InputError(
                f"{name} is {environment[name]!r}, {size} bytes, but kernels need {KERNEL_STACK}: "
                f"unset it, or set it to {KERNEL_STACK // 1024}K or more"
            )
        return


def _enough(allowed: int, needed: int) -> bool:
    return allowed == resource.RLIM_INFINITY or allowed >= needed


def _stack_size(text: str) -> int | None:
    """What OpenMP understands by a size of stacks: a number of KiB unless it says B, K, M or G."""
    match = re.fullmatch(r"\s*(\d+)\s*([BKMG]?)\s*", text, re.IGNORECASE)
    return None if match is None else int(match[1]) * _UNITS[match[2].upper()]
