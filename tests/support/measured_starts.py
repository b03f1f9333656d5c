"""Times of starts of processes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

from hang import HANG


def measure(script: str, times: int, cache: Path | None = None) -> tuple[float, float, float]:
    """The medians of wall-clock seconds and of what the process and its compiler computed, and the least of
    the former."""
    environment = dict(os.environ)
    # who works with Python day by day has its bytecode
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if cache is not None:
        environment["HALOCLINE_CACHE"] = str(cache)
    found = []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=HANG
        )
        assert done.returncode == 0, done.stderr
        found.append([float(word) for word in done.stdout.split()])
    wall, own = zip(*found, strict=True)
    return statistics.median(wall), statistics.median(own), min(wall)
