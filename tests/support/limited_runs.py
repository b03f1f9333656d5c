"""Runs under limits of the system."""

from __future__ import annotations

import subprocess

from halocline.run.ranks.launch import environment
from hang import HANG


def run(command: list[str], before: str = "") -> tuple[int, str, str]:
    """Status, output and errors of a command, in a shell that has done something else before."""
    done = subprocess.run(
        ["bash", "-c", f'{before}\nexec "$@"', "bash", *command],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    return done.returncode, done.stdout, done.stderr
