"""Scripts on ranks in separate processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hang import HANG

LAUNCH = (
    "import sys; from halocline.run.ranks.launch import launch; "
    "sys.exit(launch(int(sys.argv[1]), sys.argv[2:]))"
)


def start(script: Path, ranks: int | None, **environment: str) -> subprocess.Popen[str]:
    """Start a Python script on the given number of ranks, or without a launcher."""
    launcher = [] if ranks is None else ["-c", LAUNCH, str(ranks), sys.executable]
    return subprocess.Popen(
        [sys.executable, *launcher, str(script)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Return exit status, standard output and standard error."""
    try:
        out, err = process.communicate(timeout=HANG)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate(timeout=HANG)
        pytest.fail(f"no end within {HANG:g} s:\n{out}{err}")
    return process.returncode, out, err


@pytest.fixture
def script(tmp_path):
    """Return a function that writes a script with the common imports."""

    def write(text: str) -> Path:
        file = tmp_path / "case.py"
        file.write_text(
            "import os, signal, sys, time\n"
            "from halocline.errors import InputError\n"
            "from halocline.run.ranks import mpi\n"
            "from halocline.run.ranks.library import launcher\n" + textwrap.dedent(text)
        )
        return file

    return write
