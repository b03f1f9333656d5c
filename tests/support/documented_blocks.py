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
    """What a script prints, on so many ranks."""
    script = folder / "script.py"
    script.write_text(text)
    command = [sys.executable, str(script)]
    if ranks > 1:
        from halocline.run.ranks.launch import mpiexec

        command = [str(mpiexec()), "-n", str(ranks), *command]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
