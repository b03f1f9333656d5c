"""Files that a command enters, by `tools/entered_files.py`."""

from __future__ import annotations

import subprocess
import sys

from source import ROOT


def test_a_checked_case_executes_code_of_few_files() -> None:
    """The bound is the present number of files; a change that exceeds it adds a layer."""
    words = [
        sys.executable,
        str(ROOT / "tools" / "entered_files.py"),
        "run",
        "cavity-2d",
        "--n",
        "16",
        "--check",
    ]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert " problems/result.py" in done.stdout
    assert int(done.stdout.splitlines()[-1].split()[0]) <= 127
