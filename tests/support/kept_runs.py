"""Runs that the command continues."""

from __future__ import annotations

import subprocess
from pathlib import Path

import xarray

import preloaded


def run_command_line(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command line and return the finished process."""
    return preloaded.halocline(*words)


def steps_of(path: Path) -> list[int]:
    """Return the step numbers in a store."""
    return [int(step) for step in xarray.open_zarr(path)["step"].values]
