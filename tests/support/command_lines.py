"""Command lines as processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import preloaded
from hang import HANG

COMMAND = list(preloaded.COMMAND)


def halocline(
    line: str, cwd: Path, *more: str, before: list[str] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command line in a folder."""
    env = {**os.environ, "COLUMNS": "120", **environment}
    if not before:
        return preloaded.halocline(*line.split(), *more, cwd=cwd, env=env)
    return subprocess.run(
        [*before, *COMMAND, *line.split(), *more],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
