"""Commands whose error stream is a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

from command_lines import COMMAND
from hang import HANG


def until(terminal: int, pattern: bytes) -> bytes:
    """Return the output of a terminal up to the first match."""
    output, end = b"", time.monotonic() + HANG
    while not re.search(pattern, output) and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):
                output += os.read(terminal, 4096)
    return output


def on_terminal(line: str, folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a command whose error stream is a terminal, and return it with the test's end of the terminal."""
    ours, child_end = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *line.split()],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=child_end,
    )
    os.close(child_end)
    return process, ours
