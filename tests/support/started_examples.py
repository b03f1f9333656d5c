"""Examples as processes, and their output."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from array_libraries import library
from example_runs import CASES, EXAMPLES, NEEDS
from halocline.run.ranks.launch import mpiexec
from hang import HANG


@functools.cache
def run(name: str, ranks: int, threads: int, folder: Path) -> dict[str, str]:
    """Return the output of an example, by the label of the line."""
    if name in NEEDS:
        library(NEEDS[name])
    start = [] if ranks == 1 else [str(mpiexec()), "-n", str(ranks)]
    environment = os.environ | {
        "HALOCLINE_OUT": str(folder / f"{name}-{ranks}-{threads}"),
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "passive",
    }
    command = [*start, sys.executable, str(EXAMPLES / f"{name}.py"), *CASES[name][0]]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HANG)
    assert process.returncode == 0, process.stdout + process.stderr
    lines = [line.split("  ", 1) for line in process.stdout.splitlines()]
    assert all(len(line) == 2 for line in lines), process.stdout
    assert len({label for label, _ in lines}) == len(lines), f"printed more than once:\n{process.stdout}"
    return {label: value.strip() for label, value in lines}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")
