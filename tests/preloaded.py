"""The command `halocline` in processes that begin with what it imports.

Tests begin it some hundred times, and most of what it then takes is the start of Python and its imports,
0.5 s of processor time each. `halocline` forks it from a process that has imported all that. It has its own
working directory, environment and streams, and ends as every process does. What is read where libraries are
loaded stays as the tests have it: with an environment that differs from theirs by more than SEEN, the command
is begun as users begin it.
"""

from __future__ import annotations

import array
import functools
import gc
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

COMMAND = (sys.executable, "-m", "halocline.cli")
SEEN = (
    "COLUMNS",
    "CXX",
    "HALOCLINE_",
    "PYTEST_CURRENT_TEST",
)  # read while the command runs, ...
AT_IMPORT = "HALOCLINE_CHECK"  # but for this one
IMPORTED = (  # what most commands import, and what takes long
    *("halocline.cli.app", "halocline.cli.run_case", "halocline.cli.script", "halocline.cli.summary"),
    *("halocline.explanation.explain", "halocline.problems.linear", "halocline.study.engine"),
    *("jinja2", "rich.table", "rich.progress", "scipy.optimize", "pydantic", "tensorstore", "h5py"),
    *("matplotlib.figure", "matplotlib.backends.backend_agg"),
)
REQUEST = 2**18  # bytes, at most


def halocline(
    *words: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a command line to its end, with nothing to read.

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
    with open(os.devnull) as none, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
        request = {"words": command[3:], "cwd": str(folder), "env": environment}
        server = _server()
        streams = [each.fileno() for each in (none, out, error)]
        socket.send_fds(server, [json.dumps(request).encode()], streams)
        process = int(server.recv(64))
        server.settimeout(timeout)
        try:
            status = int(server.recv(64))
        except TimeoutError:
            os.kill(process, 9)
            server.settimeout(None)
            server.recv(64)
            raise subprocess.TimeoutExpired(command, timeout) from None
        finally:
            server.settimeout(None)
        out.seek(0)
        error.seek(0)
        return subprocess.CompletedProcess(command, status, out.read(), error.read())


def _is_seen(environment: Mapping[str, str]) -> bool:
    """Whether a process that is forked sees all of an environment."""
    differing = {name for name in {*environment, *_begun()} if environment.get(name) != _begun().get(name)}
    return all(name.startswith(SEEN) and name != AT_IMPORT for name in differing)


@functools.cache
def _begun() -> dict[str, str]:
    """The environment in which what is forked was begun."""
    return dict(os.environ)


@functools.cache
def _server() -> socket.socket:
    """The process to fork from, as the end of a socket: it ends when this is closed."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (mine, its):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST)
    subprocess.Popen(
        [sys.executable, __file__, str(its.fileno())], pass_fds=[its.fileno()], env=_begun(),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    its.close()
    return mine


def _requests(server: socket.socket) -> None:
    """Fork a process for each request, tell its number, then how it ended; returns in the processes."""
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


def _become(request: dict, streams: array.array) -> None:
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
    gc.freeze()  # what is shared with the processes stays so, also at their ends
    if len(os.listdir("/proc/self/task")) > 1:
        raise SystemExit("a process with several threads cannot be forked")
    with socket.socket(fileno=int(sys.argv[1])) as end:
        _requests(end)
    runpy.run_module("halocline.cli", run_name="__main__", alter_sys=True)
