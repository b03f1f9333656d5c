"""Runs under limits of the system."""

from __future__ import annotations

import subprocess

from halocline.run.ranks.launch import environment
from hang import HANG


def run(command: list[str], before: str = "") -> tuple[int, str, str]:
    """Return status, output and errors of a command, in a shell that runs `before` first."""
    process = subprocess.run(
        ["bash", "-c", f'{before}\nexec "$@"', "bash", *command],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    return process.returncode, process.stdout, process.stderr
