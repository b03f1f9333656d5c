"""Every example, unchanged, as a user runs it: from the command line, alone and under mpiexec."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from example_runs import CASES, EXAMPLES
from hang import HANG
from started_examples import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


# -- Sedov's blast -----------------------------------------------------------------------------------


FALL_BACK = "hc.branch(good[a], second, first)"


def changed_sedov(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Return the output of a run of the example with the given replacement of the fallback branch."""
    source = (EXAMPLES / "sedov.py").read_text()
    assert source.count(FALL_BACK) == 1
    program = folder / "sedov.py"
    program.write_text(source.replace(FALL_BACK, text))
    environment = os.environ | {"HALOCLINE_OUT": str(folder), "PYTHONPATH": str(EXAMPLES)}
    command = [sys.executable, str(program), *CASES["sedov"][0]]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HANG)


def test_the_blast_needs_the_fall_back(tmp_path):
    done = changed_sedov("second", tmp_path)
    assert done.returncode != 0
    assert "time step is" in done.stderr or "nan" in done.stderr, done.stderr


def test_where_gives_the_blast_the_same_bits(tmp_path, folder):
    done = changed_sedov(FALL_BACK.replace("branch", "where"), tmp_path)
    assert done.returncode == 0, done.stderr
    printed = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    assert {label: value.strip() for label, value in printed.items()} == run("sedov", 1, 1, folder)


@pytest.mark.parametrize(("ranks", "threads"), [(2, 1), (3, 2)])
def test_the_blast_prints_the_same_on_ranks_and_threads(ranks, threads, folder):
    assert run("sedov", ranks, threads, folder) == run("sedov", 1, 1, folder)
