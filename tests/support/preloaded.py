"""The command `halocline` in processes that start with its imports.

Tests run the command some hundred times. Most of its time is the start of Python and the imports, 0.5 s of
processor time per run. `halocline` forks each run from a process with all these imports. The run has its own
working directory, environment and streams, and ends like every process.

Differences from a command that users start: limits, umask, the seed of hashes and the addresses of libraries
are those of the parent process. Modules are loaded even if the command does not import them. Tests of these
properties use subprocess; so do tests of ranks, of faults and of the start. If an environment differs by more
than SEEN from the one in which libraries were loaded, the command starts in a new process.
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
SEEN = ("COLUMNS", "CXX", "HALOCLINE_", "PYTEST_CURRENT_TEST")  # read during a run, ...
AT_IMPORT = "HALOCLINE_CHECK"  # except for this one
IMPORTED = (  # modules that most commands import, and slow ones
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
    """Run a command line until it and all processes with its output have ended; it has no input.

    Parameters
    ----------
    env : mapping of str to str, optional
        The whole environment; the default is that of the tests.
    timeout : float
        Seconds.

    Raises
    ------
    subprocess.TimeoutExpired
    """
    command = [*COMMAND, *map(str, words)]
    folder, environment = Path(cwd or Path.cwd()), dict(os.environ if env is None else env)
    if not _reads_differences(environment):
        return subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=timeout, check=False,
        )  # fmt: skip
    (out, child_out), (error, child_error) = os.pipe(), os.pipe()
    no_input = os.open(os.devnull, os.O_RDONLY)
    try:
        process = _start(
            {"words": command[3:], "cwd": str(folder), "env": environment}, no_input, child_out, child_error
        )
    finally:
        for end in (no_input, child_out, child_error):
            os.close(end)
    try:
        texts = _read((out, error), time.monotonic() + timeout)
        status = int(_server().recv(64)) if texts else None
    except BaseException:  # the next request would receive this status as its answer
        _end(process)
        raise
    finally:
        os.close(out)
        os.close(error)
    if texts is None or status is None:
        _end(process)
        raise subprocess.TimeoutExpired(command, timeout)
    return subprocess.CompletedProcess(command, status, *texts)


def _start(request: dict[str, Any], *streams: int) -> int:
    """Start the process of a request and return its number."""
    server = _server()
    try:
        socket.send_fds(server, [json.dumps(request).encode()], streams)
        return int(server.recv(64))
    except BaseException:
        _drop_server()
        raise


def _read(ends: Sequence[int], until: float) -> list[str] | None:
    """Return the texts from pipes until they close, or None if that takes too long."""
    texts = dict.fromkeys(ends, b"")
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, until - time.monotonic()))
            if not ready:
                return None
            for key, _ in ready:
                chunk = os.read(key.fd, 2**16)
                texts[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
    return [texts[end].decode(errors="replace").replace("\r\n", "\n") for end in ends]


def _end(process: int) -> None:
    """End a process and its parent; the next command starts a new parent."""
    _drop_server()
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _reads_differences(environment: Mapping[str, str]) -> bool:
    """Return True if a forked process reads all differences of an environment."""
    differing = {
        name
        for name in {*environment, *_initial_environment()}
        if environment.get(name) != _initial_environment().get(name)
    }
    return all(name.startswith(SEEN) and name != AT_IMPORT for name in differing)


@functools.cache
def _initial_environment() -> dict[str, str]:
    """Return the environment in which the parent process started."""
    return dict(os.environ)


def _server() -> socket.socket:
    """Return the connection to the parent process, which ends when the connection is closed."""
    return _start_server()[0]


@functools.cache
def _start_server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    client, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (client, child):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST)
    # threads of OpenBLAS do not survive a fork
    environment = _initial_environment() | {"OPENBLAS_NUM_THREADS": "1"}
    with child:
        process = subprocess.Popen(
            [sys.executable, __file__, str(child.fileno())], pass_fds=[child.fileno()], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    client.settimeout(HANG)
    if not client.recv(64):
        raise RuntimeError(f"{__file__} ended with status {process.wait()}: see what it wrote to stderr")
    client.settimeout(None)
    atexit.register(_drop_server)
    return client, process


def _drop_server() -> None:
    if not _start_server.cache_info().currsize:
        return
    server, process = _start_server()
    _start_server.cache_clear()
    server.close()
    process.kill()  # the process may wait for a forked one
    process.wait()


def _requests(server: socket.socket) -> None:
    """Fork a process for each request, and send its number and, at its end, its status.

    The function returns in the forked processes.
    """
    server.send(b"ready")
    while True:
        text, streams, _, _ = socket.recv_fds(server, REQUEST, 3)
        if not text:
            raise SystemExit
        process = os.fork()
        if process == 0:
            _run_request(json.loads(text), streams)
            return
        for stream in streams:
            os.close(stream)
        server.send(str(process).encode())
        server.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())


def _run_request(request: dict[str, Any], streams: Sequence[int]) -> None:
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
    gc.freeze()  # without this, each process copies shared memory when it searches for free memory
    if len(os.listdir("/proc/self/task")) > 1:
        raise SystemExit("a process with several threads cannot be forked")
    with socket.socket(fileno=int(sys.argv[1])) as end:
        _requests(end)
    runpy.run_module("halocline.cli", run_name="__main__", alter_sys=True)
