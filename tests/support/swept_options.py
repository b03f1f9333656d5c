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
    """Status and output of a command."""

    def bound() -> None:
        if address_space is not None:
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    done = subprocess.run(
        [sys.executable, "-m", "halocline.cli", *line.split(), *more],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=HANG,
        preexec_fn=bound,
    )
    return done.returncode, done.stdout, done.stderr


# -- the sweep -----------------------------------------------------------------------------------------------


def check_sweep(lines: int, seed: int) -> None:
    done = subprocess.run(
        [sys.executable, str(SWEEP), str(lines), "--seed", str(seed)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^{lines} lines, 0 faults", done.stdout, re.MULTILINE), done.stdout
