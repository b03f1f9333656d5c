"""Progress of a run on a terminal and in a log."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from halocline.problems.problem import Problem
from halocline.run.simulation import live, progress
from hang import HANG


def test_a_case_shows_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LEAST", 0.0)
    reports: list[tuple[int, str]] = []
    Problem("alfven-decay", [16]).run(
        steps=100_000, threads=1, share=True, on_progress=lambda step, line: reports.append((step, line))
    )
    step, line = reports[-1]
    assert step == 100_000
    number = r"\d\S*"
    assert re.fullmatch(
        rf"t = {number}, dt = {number} \(fast magnetosonic waves\), {number} [kMG] cells/s, "
        r"\d+% of the bound, 0:00 left",
        line,
    )


def test_a_batch_log_gets_periodic_progress_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "terminal", lambda: None)
    with progress.progress("heat, 8 x 8", "steps") as on_progress:
        assert on_progress is not None
        for _ in range(150):
            clock[0] += 10.0
            on_progress(int(clock[0]), "t = 1")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"heat, 8 x 8: {step:,} steps, t = 1" for step in (60, 660, 1260)]


def test_output_of_a_file_goes_to_its_stream(tmp_path: Path) -> None:
    """The terminal shows the progress, and the file's output is redirected, as in `> out.txt`."""
    file = tmp_path / "own.py"
    file.write_text("""
import halocline as hc
grid = hc.Grid(hc.cells(4), periodic=True)
u = grid.field("u")
sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.1)
print("printed before the run")
sim.run(steps=1)
""")
    master, slave = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "halocline.cli", "run", str(file)],
            stdout=subprocess.PIPE, stderr=slave, text=True, check=True, timeout=HANG,
        )  # fmt: skip
        os.close(slave)
        output = b""
        while block := _read(master):
            output += block
    finally:
        os.close(master)
    assert b"own.py" in output
    assert b"printed" not in output
    assert done.stdout.startswith("printed before the run\n")


def _read(terminal: int) -> bytes:
    """Return the next output of a terminal, or nothing if all of its users have closed it."""
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux reports the end as EIO
        return b""
