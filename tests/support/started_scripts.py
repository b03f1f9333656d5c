"""Scripts on ranks that die or hang; see faults.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Ranks check their fields for finite values at intervals outside of engines; in these scripts they never do.
BEGIN = """import sys; sys.path.insert(0, {!r}); from faults import *
from halocline.run.fields import session; session.FIRST_CHECK = FOR_EVER
"""
LAUNCH = (
    "import sys; from halocline.run.ranks.launch import launch; "
    "sys.exit(launch(int(sys.argv[1]), sys.argv[2:]))"
)


@pytest.fixture
def start(tmp_path):
    """Return a function that runs a script with `halocline run`, or directly on ranks.

    The remaining processes are killed at the end.
    """
    processes = []

    def run(text, ranks, *, name="case", through_command=True):
        file = tmp_path / f"{name}.py"
        folder = str(Path(__file__).parent)
        file.write_text(BEGIN.format(folder) + text)
        command = ["-m", "halocline.cli", "run", str(file), "--ranks", str(ranks)]
        if not through_command:
            command = ["-c", LAUNCH, str(ranks), sys.executable, str(file)]
        process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()  # the ranks end with the process
        process.communicate()
