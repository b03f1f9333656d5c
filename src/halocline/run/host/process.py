"""Command line, garbage collector, signals, affinity and resource limits of this process."""

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
    """Return the words of the command line of this process, suitable for `shlex.join`."""
    program, *words = sys.argv or [""]
    path = Path(program)
    if path.name == "halocline" or path.parts[-3:] == ("halocline", "cli", "__main__.py"):
        return ["halocline", *words]
    return [program, *words]


@contextmanager
def restoring(signals: Iterable[signal.Signals]) -> Iterator[list[signal.Signals]]:
    """Yield the signals that this process does not ignore, and restore their handlers after the with block.

    Ignored signals remain ignored. For example, a command that a shell runs in the background ignores SIGINT.
    Only the main thread may set handlers. In another thread, the list is empty.
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
    """Set environment variables inside the with block; the value None removes a variable."""
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
    """Raise the thresholds of the garbage collector.

    With the default thresholds, Python repeatedly scans modules and expressions that are never freed. These
    scans take a tenth of the time of a short run.
    """
    gc.set_threshold(*SELDOM)


def as_usual() -> None:
    """Restore the default thresholds of the garbage collector for a user's program.

    The program may produce much garbage. Later scans omit the objects that exist before this call, such as
    imported modules.
    """
    gc.freeze()
    gc.set_threshold(*USUAL)


# Number of open files, measured with MPICH 5.0.2 on R = 2 to 16 ranks: a rank has 30 + 2 R, and 4 more while
# it compiles kernels. mpiexec has 10 + 4 R, and some more for a short time.
FILES, FILES_PER_RANK = 48, 4
# Kernels of magnetohydrodynamics on three axes use 37 KiB of stack. g++ 12 uses 256 to 512 KiB of stack to
# compile these kernels, and more to compile larger ones.
KERNEL_STACK, STACK = 256 * 1024, 1024 * 1024

_UNITS = {"": 1024, "B": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


_AT_START = os.sched_getaffinity(0)


def binds_threads() -> bool:
    """Return True if environment variables make OpenMP bind threads to cores."""
    binding = os.environ.get("OMP_PROC_BIND", "").strip().lower()
    return binding != "false" and any(
        map(os.environ.get, ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"))
    )


def cores() -> set[int]:
    """Return the numbers of the hardware threads that this process may use.

    OpenMP may bind the main thread to a core when its library is loaded. If environment variables request
    this, the result is the set of hardware threads that were available at the start of the process.
    """
    return _AT_START if binds_threads() else os.sched_getaffinity(0)


def affinity() -> int:
    """Return a bit mask of the hardware threads that this process may use; see `cores`."""
    return sum(1 << thread for thread in cores())


def allow_files(ranks: int) -> None:
    """Raise the limit of open files to the number that `ranks` ranks on a node require, if it is lower.

    The limit applies to this process and to the processes that it starts.

    Raises
    ------
    InputError
        The system does not allow so many open files.
    """
    file_count = FILES + FILES_PER_RANK * ranks
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _suffices(soft_limit, file_count):
        return
    if not _suffices(hard_limit, file_count):
        raise InputError(
            f"{ranks} ranks need {file_count} open files in a process, but only {hard_limit} are allowed: "
            f"raise the limit (`ulimit -n {file_count}`; LimitNOFILE, limits.conf)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (file_count, hard_limit))


def check_stacks(threads: int, environment: Mapping[str, str] = os.environ) -> None:
    """Check that the stacks are large enough for the compiler of kernels, and for kernels on all threads.

    Raises
    ------
    InputError
        A stack is too small. Without this check, the program would crash without a message.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_STACK)
    if not _suffices(allowed, STACK):
        raise InputError(
            f"the stack of a process is limited to {allowed} bytes, but kernels and their compiler need "
            f"{STACK}: raise the limit (`ulimit -s {STACK // 1024}`, or more)"
        )
    for name in ("OMP_STACKSIZE", "GOMP_STACKSIZE"):  # the first valid size has priority
        size = _stack_size(environment.get(name, ""))
        if size is None:
            continue
        if threads > 1 and size < KERNEL_STACK:
            raise InputError(
                f"{name} is {environment[name]!r}, which is {size} bytes, but kernels need {KERNEL_STACK} "
                f"bytes: unset it, or set it to {KERNEL_STACK // 1024}K or more"
            )
        return


def _suffices(allowed: int, required: int) -> bool:
    return allowed == resource.RLIM_INFINITY or allowed >= required


def _stack_size(text: str) -> int | None:
    """Return the bytes of a stack size in OpenMP syntax: a number with unit B, K, M or G; by default KiB."""
    match = re.fullmatch(r"\s*(\d+)\s*([BKMG]?)\s*", text, re.IGNORECASE)
    return None if match is None else int(match[1]) * _UNITS[match[2].upper()]
