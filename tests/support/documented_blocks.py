"""Blocks of code in the documentation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from hang import HANG

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def run(text: str, ranks: int, folder: Path) -> str:
    """Return the output of a script on the given number of ranks."""
    script = folder / "script.py"
    script.write_text(text)
    command = [sys.executable, str(script)]
    if ranks > 1:
        from halocline.run.ranks.launch import mpiexec

        command = [str(mpiexec()), "-n", str(ranks), *command]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    process = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=HANG
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout
