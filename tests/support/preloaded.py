"""The command `halocline` in processes that begin with what it imports.

Tests begin it some hundred times, and most of what it then takes is the start of Python and its imports,
0.5 s of processor time each. `halocline` forks it from a process that has imported all that. It has its own
working directory, environment and streams, and ends as every process does.

What differs from a command that users begin: limits, umask, the seed of hashes and the addresses of
libraries are those of the process it is forked from, and modules are there that it might have forgotten to
import. Where a test is about these it uses subprocess; so do those of ranks, of faults and of the start. An
environment that differs by more than SEEN from the one in which libraries were loaded has the command begun
as users begin it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hang import HANG

COMMAND = (sys.executable, "-m", "halocline.cli")
SEEN = ("COLUMNS", "CXX", "HALOCLINE_", "PYTEST_CURRENT_TEST")  # read while the command runs, ...
AT_IMPORT = "HALOCLINE_CHECK"  # but for this one
IMPORTED = (  # what most commands import, and what takes long
    *("halocline.cli.app", "halocline.cli.run", "halocline.cli.summary"),
    *("halocline.explanation.explain", "halocline.problems.problem", "halocline.study.engine"),
    *("jinja2", "rich.table", "rich.progress", "scipy.optimize", "pydantic", "tensorstore", "h5py"),
    *("matplotlib.figure", "matplotlib.backends.backend_agg"),
)
REQUEST = 2**18  # bytes, at most


def halocline(
    *words: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = HANG,
) -> subprocess.CompletedProcess[str]:
    """Run a command line to its end, and that of all processes that have its output; it has no input.

    Parameters
    ----------
    env : mapping of str to str, optional
        The whole environment; that of the tests where there is none.
    timeout : float
        Seconds.

    Raises
    ------
    subprocess.TimeoutExpired
    """
    command = [*COMMAND, *map(str, words)]
    folder, environment = Path(cwd or Path.cwd()), dict(os.environ if env is None else env)
    if not _is_seen(environment):
        return subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=timeout, check=False,
        )  # fmt: skip
    (out, its_out), (error, its_error) = os.pipe(), os.pipe()
    none = os.open(os.devnull, os.O_RDONLY)
    try:
        process = _asked(
            {"words": command[3:], "cwd": str(folder), "env": environment}, none, its_out, its_error
        )
    finally:
        for end in (none, its_out, its_error):
            os.close(end)
    try:
        texts = _read((out, error), time.monotonic() + timeout)
        status = int(_server().recv(64)) if texts else None
    except BaseException:  # its status would be taken for an answer to the next request
        _end(process)
        raise
    finally:
        os.close(out)
        os.close(error)
    if texts is None or status is None:
        _end(process)
        raise subprocess.TimeoutExpired(command, timeout)
    return subprocess.CompletedProcess(command, status, *texts)


def _asked(request: dict[str, Any], *streams: int) -> int:
    """The process that a request has begun."""
    server = _server()
    try:
        socket.send_fds(server, [json.dumps(request).encode()], streams)
        return int(server.recv(64))
    except BaseException:
        _forget()
        raise


def _read(ends: Sequence[int], until: float) -> list[str] | None:
    """What comes through pipes to their ends; None where that takes too long."""
    found = dict.fromkeys(ends, b"")
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, until - time.monotonic()))
            if not ready:
                return None
            for key, _ in ready:
                come = os.read(key.fd, 2**16)
                found[key.fd] += come
                if not come:
                    selector.unregister(key.fd)
    return [found[end].decode(errors="replace").replace("\r\n", "\n") for end in ends]


def _end(process: int) -> None:
    """End a process, and the one that it was forked from: the next command has a new one."""
    _forget()
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _is_seen(environment: Mapping[str, str]) -> bool:
    """Whether a process that is forked sees all of an environment."""
    differing = {name for name in {*environment, *_begun()} if environment.get(name) != _begun().get(name)}
    return all(name.startswith(SEEN) and name != AT_IMPORT for name in differing)


@functools.cache
def _begun() -> dict[str, str]:
    """The environment in which what is forked was begun."""
    return dict(os.environ)


def _server() -> socket.socket:
    """The way to the process to fork from; it ends when this is closed."""
    return _started()[0]


@functools.cache
def _started() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (mine, its):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST)
    # threads of OpenBLAS would not live in what is forked
    environment = _begun() | {"OPENBLAS_NUM_THREADS": "1"}
    with its:
        process = subprocess.Popen(
            [sys.executable, __file__, str(its.fileno())], pass_fds=[its.fileno()], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    mine.settimeout(HANG)
    if not mine.recv(64):
        raise RuntimeError(f"{__file__} ended with status {process.wait()}: see what it wrote to stderr")
    mine.settimeout(None)
    atexit.register(_forget)
    return mine, process


def _forget() -> None:
    if not _started.cache_info().currsize:
        return
    server, process = _started()
    _started.cache_clear()
    server.close()
    process.kill()  # it may be waiting for what it has forked
    process.wait()


def _requests(server: socket.socket) -> None:
    """Fork a process for each request; answer with its number, and with its status at its end. Returns in the
    processes."""
    server.send(b"ready")
    while True:
        text, streams, _, _ = socket.recv_fds(server, REQUEST, 3)
        if not text:
            raise SystemExit
        process = os.fork()
        if process == 0:
            _become(json.loads(text), streams)
            return
        for stream in streams:
            os.close(stream)
        server.send(str(process).encode())
        server.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())


def _become(request: dict[str, Any], streams: Sequence[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["halocline", *request["words"]]
    sys.path[0] = request["cwd"]


if __name__ == "__main__":
    for name in IMPORTED:
        __import__(name)
    from halocline.native import native

    native()
    gc.freeze()  # else each process would copy what it shares as it looks for what is free
    if len(os.listdir("/proc/self/task")) > 1:
        raise SystemExit("a process with several threads cannot be forked")
    with socket.socket(fileno=int(sys.argv[1])) as end:
        _requests(end)
    runpy.run_module("halocline.cli", run_name="__main__", alter_sys=True)
