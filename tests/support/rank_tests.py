"""Ranks that run the tests of several files, so that few processes start Python and import the package.

`RankServer` starts mpiexec. Each rank is this file run as a program: it runs the tests of each request by
pytest in its own process, and keeps its imported modules for the next request.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import hashlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OUTCOMES = "HALOCLINE_TEST_OUTCOMES"  # set on the ranks: the folder of their outcomes
GRACE = 2.0  # seconds in which the other ranks may end on their own after one has failed
REQUEST = 2**18  # bytes, at most


def place(folder: str | os.PathLike[str], test: str) -> Path:
    """Return the folder of the ranks' outcomes of a test."""
    return Path(folder) / hashlib.sha256(test.encode()).hexdigest()[:16]


def result(folder: Path, rank: int) -> tuple[str, str]:
    """Return the outcome of a rank, and its text."""
    file = folder / str(rank)
    outcome, _, text = file.read_text().partition("\n") if file.is_file() else ("", "", "")
    return outcome, text


class RankServer:
    """An mpiexec whose ranks run tests on request.

    Parameters
    ----------
    ranks : int
    root : Path
        The working directory of the ranks, which is the root of the tests.
    """

    def __init__(self, ranks: int, root: Path) -> None:
        from halocline.run.ranks import launch

        environment = launch.environment()
        for name in ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"):
            environment.pop(name, None)
        if ranks > len(os.sched_getaffinity(0)):
            environment.setdefault("OMP_WAIT_POLICY", "passive")
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins take longer to load than most tests
        self.ranks = ranks
        self.connections: list[socket.socket] = []
        self.folder = Path(tempfile.mkdtemp(prefix="halocline-ranks-"))
        self.output = (self.folder / "output").open("w+", errors="replace")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(self.folder / "socket"))
        self.listener.listen(ranks)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.process = subprocess.Popen(
            [launch.mpiexec(), "-n", str(ranks), sys.executable, __file__, self.folder / "socket"],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def is_alive(self) -> bool:
        """Return True while the ranks can run more tests."""
        return self.process.poll() is None

    def run(self, tests: dict[str, float], folder: Path) -> tuple[str, bool]:
        """Run tests until one does not pass, which ends the ranks.

        Parameters
        ----------
        tests : dict of str to float
            The maximum seconds of each test, in the order of the tests.
        folder : Path
            The folder of the outcomes; see `place`.

        Returns
        -------
        str
            The output of the ranks.
        bool
            True if a test took too long.
        """
        request = json.dumps({"tests": list(tests), "outcomes": str(folder)}).encode()
        begin = self.output.seek(0, os.SEEK_END)
        for connection in self.connections:
            with contextlib.suppress(OSError):  # the rank has died
                connection.send(request)
        remaining, ready = list(tests), 0
        end = time.monotonic() + tests[remaining[0]]
        outcomes: list[str] = []
        failed = late = False
        try:
            while ready < self.ranks and self.is_alive() and not late:
                ready += self._ready(request)
                outcomes = [result(place(folder, remaining[0]), rank)[0] for rank in range(self.ranks)]
                if not failed and "failed" in outcomes:
                    failed, end = True, min(end, time.monotonic() + GRACE)
                    self._disconnect()
                elif not failed and all(outcomes) and len(remaining) > 1:
                    del remaining[0]
                    end = time.monotonic() + tests[remaining[0]]
                late = time.monotonic() > end
        finally:
            if ready < self.ranks:
                self.stop()
        self.output.seek(begin)
        return self.output.read(), late and not failed

    def _ready(self, request: bytes) -> int:
        """Serve the ranks for a moment, and return the number of ranks that finish the request.

        New ranks receive the request.
        """
        ready = 0
        for key, _ in self.selector.select(0.02):
            if key.fileobj is self.listener:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                self.selector.register(connection, selectors.EVENT_READ)
                connection.send(request)
            elif os.read(key.fd, REQUEST):
                ready += 1
            else:  # the rank ends
                self.selector.unregister(key.fileobj)
        return ready

    def _disconnect(self) -> None:
        """End the ranks that wait for a request."""
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End the ranks, which wait for a request."""
        self._disconnect()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(15 * GRACE)
        self.stop()

    def stop(self) -> None:
        """End mpiexec, which ends the ranks."""
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if self.is_alive():
                self.process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(3)
        shutil.rmtree(self.folder, ignore_errors=True)


def serve(server: socket.socket) -> None:
    """Run the tests of each request on this rank."""
    import pytest

    while text := server.recv(REQUEST):
        request = json.loads(text)
        os.environ[OUTCOMES] = request["outcomes"]
        options = ["-q", "-x", "-p", "no:cacheprovider", f"--rootdir={Path.cwd()}"]
        status = pytest.main([*options, *request["tests"]])
        sys.stdout.flush()
        if status:
            raise SystemExit(int(status))
        faulthandler.cancel_dump_traceback_later()
        gc.collect()  # on all ranks at once, since the shared memory of simulations is freed together
        gc.freeze()
        server.send(b"ready")


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())  # as `python -m pytest` does
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
        end.connect(sys.argv[1])
        serve(end)
