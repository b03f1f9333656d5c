"""Sweeps of options in processes."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

from hang import HANG

SWEEP = Path(__file__).parents[1] / "support" / "sweep.py"


def run(line: str, cwd: Path, *more: str, address_space: int | None = None) -> tuple[int, str, str]:
    """Return status, output and errors of a command."""

    def limit_address_space() -> None:
        if address_space is not None:
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    process = subprocess.run(
        [sys.executable, "-m", "halocline.cli", *line.split(), *more],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=HANG,
        preexec_fn=limit_address_space,
    )
    return process.returncode, process.stdout, process.stderr


# -- the sweep -----------------------------------------------------------------------------------------------


def check_sweep(lines: int, seed: int) -> None:
    """Check that a sweep over option values finds no faults."""
    process = subprocess.run(
        [sys.executable, str(SWEEP), str(lines), "--seed", str(seed)], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert re.search(rf"^{lines} lines, 0 faults", process.stdout, re.MULTILINE), process.stdout
