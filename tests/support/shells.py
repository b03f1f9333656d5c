"""Commands in a shell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hang import HANG

RUN = "run sound-wave --n 16 --steps 1 --threads 1"


# -- streams -------------------------------------------------------------------------------------------------


def in_shell(line: str, cwd: Path) -> tuple[int, str, str]:
    """Return status, output and errors of a command whose streams a shell redirects."""
    halocline = f"{sys.executable} -m halocline.cli"
    process = subprocess.run(
        ["sh", "-c", line.replace("halocline", halocline, 1)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    return process.returncode, process.stdout, process.stderr
