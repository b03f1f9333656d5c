"""Start times of processes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

from hang import HANG


def measure(script: str, times: int, cache: Path | None = None) -> tuple[float, float, float]:
    """Return the medians of wall-clock and processor seconds of a script, and the minimum of the former.

    The processor seconds include the compiler.
    """
    environment = dict(os.environ)
    # Bytecode is cached in daily use of Python.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if cache is not None:
        environment["HALOCLINE_CACHE"] = str(cache)
    seconds = []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=HANG
        )
        assert done.returncode == 0, done.stderr
        seconds.append([float(word) for word in done.stdout.split()])
    wall, processor = zip(*seconds, strict=True)
    return statistics.median(wall), statistics.median(processor), min(wall)
