"""Programs that are compiled in separate processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from hang import HANG

SMALL = 'extern "C" int answer() { return 42; }\n'

# The wrapper notes each call, waits while the file `hold` exists, and then compiles as g++ does.
WRAPPER = """#!/bin/sh
case "$1" in --version) exec g++ --version;; esac
echo "$$" >> "{notes}"
while [ -e "{hold}" ]; do sleep 0.05; done
exec g++ "$@"
"""


def calls(notes: Path) -> int:
    """Return the number of compiler calls in a file of notes."""
    return len(notes.read_text().splitlines()) if notes.exists() else 0


def wait_for(notes: Path, count: int) -> None:
    """Wait until the compiler has been called the given number of times."""
    end = time.monotonic() + HANG
    while calls(notes) < count:
        assert time.monotonic() < end
        time.sleep(0.02)


COMPILE = """
import sys
from halocline.compile.driver import compile_library
print(compile_library(sys.stdin.read()))
"""


def start(source: str = SMALL) -> subprocess.Popen[str]:
    """Return another process that compiles, in a process group with its compiler."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMPILE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(source)
    process.stdin.close()
    process.stdin = None
    return process
