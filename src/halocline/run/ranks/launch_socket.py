"""The connection of a rank to `halocline.run.ranks.launch`, where that started it."""

from __future__ import annotations

import os
from typing import Any

# Open as long as the rank lives: that it closes reports a death, unless "end" was sent before.
_connection: Any = None
PATIENCE = 10.0  # longest wait for an answer, in seconds


def send(text: str) -> bool:
    """Send a line: "rank R PROCESS", "status S TEXT" before all ranks end, or "end". Return whether the
    launcher has answered, with an empty line."""
    global _connection
    name = os.environ.get("HALOCLINE_LAUNCH")
    if name is None:
        return False
    import fcntl
    import socket

    try:
        if _connection is None:
            with socket.socket(socket.AF_UNIX) as line:
                # Of a process that dies, Linux closes the highest first: mpiexec must not be the first to see
                # the end, since it kills the others then.
                above = int(os.environ.get("PMI_FD", "2")) + 1
                _connection = socket.socket(fileno=fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, above))
            _connection.connect(f"\0{name}")  # waits where many ranks connect at once
            _connection.settimeout(PATIENCE)
        _connection.sendall(f"{text}\n".encode())
        return bool(_connection.recv(1))
    except OSError:  # on another node, or gone
        return False


def _close() -> None:
    """Close the connection of the parent in a forked child, which may live longer."""
    global _connection
    if _connection is not None:
        _connection.close()
        _connection = None


os.register_at_fork(after_in_child=_close)
