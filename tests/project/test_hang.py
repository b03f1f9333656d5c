"""Tests on busy machines and in the background: one time limit for hangs, default signals in commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from hang import HANG
from suites import cases

TESTS = Path(__file__).parents[1]
# A limit in seconds of the wait of a test or of its program. Only limits above HANG are written as numbers.
LIMITS = re.compile(
    r"\b(?:timeout|within|patience)(?:: float)? ?= ?(\d[\d_.]*)"
    r"|monotonic\(\) \+ (\d[\d_.]*)"
    r"|monotonic\(\) - [\w.()\[\]]+ <=? (\d[\d_.]*)"
    r"|\.(?:wait|join|communicate|settimeout)\((\d[\d_.]*)\)"
    r"|^(?:WITHIN|LIMIT|TIMEOUT|PATIENCE)(?:: float)? = (\d[\d_.]*)",
    re.MULTILINE,
)
# The time has a meaning in these cases: until a stronger request to end follows, or while signals arrive.
MEANT = {"support/local_slurm.py": ["10"], "support/rank_tests.py": ["3"], "long/test_ranks.py": ["1"]}


def limits(text: str) -> list[str]:
    """Return the time limits in seconds that a source writes as numbers."""
    return [next(filter(None, result)) for result in LIMITS.findall(text)]


def test_time_limits_catch_only_hangs() -> None:
    limit_match = re.search(r"^HANG := (\d+)$", (TESTS.parent / "Makefile").read_text(), re.MULTILINE)
    assert limit_match is not None
    result = {
        str(file.relative_to(TESTS)): limits(file.read_text())
        for file in TESTS.rglob("*.py")
        if file != Path(__file__)
    }
    assert len(result) > 100
    short_limits = {name: [n for n in numbers if float(n) <= HANG] for name, numbers in result.items()}
    assert {name: numbers for name, numbers in short_limits.items() if numbers} == MEANT
    assert max(HANG, *(float(n) for numbers in result.values() for n in numbers)) < float(limit_match[1])


def test_time_limits_in_source_are_found() -> None:
    text = """
WITHIN = 100.0
run(command, timeout=60, check=True)
end(process, within=15)
end = time.monotonic() + 120
assert time.monotonic() - begin < 10
process.wait(20)
mine.settimeout(30)
def run(command, timeout: float = 5) -> None: ...
"""
    assert limits(text) == ["100.0", "60", "15", "120", "10", "20", "30", "5"]
    assert limits("run(command, timeout=HANG)\nend = time.monotonic() + HANG\n") == []


SENT = ("INT", "TERM", "USR1", "QUIT", "HUP")


def ignored_or_blocked(status: str) -> list[str]:
    """Return the signals of SENT that a process ignores or blocks, by the text of its /proc/PID/status."""
    masks = [int(mask, 16) for mask in re.findall(r"^Sig(?:Blk|Ign):\s*(\w+)$", status, re.MULTILINE)]
    assert len(masks) == 2
    return [name for name in SENT if any(m >> getattr(signal, f"SIG{name}") - 1 & 1 for m in masks)]


def test_commands_start_with_default_signals() -> None:
    done = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True)
    assert ignored_or_blocked(done.stdout) == []


@cases("state", ["ignored", "blocked"], default=["ignored"])
def test_commands_start_with_default_signals_despite_ignored_ones(state: str) -> None:
    """The states are those of `make test &` in a script under nohup, and of a parent that blocks signals."""
    begin = {
        "ignored": "[signal.signal(number, signal.SIG_IGN) for number in numbers]",
        "blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, numbers)",
    }[state]
    line = (
        f"import os, signal, sys; numbers = [getattr(signal, 'SIG' + name) for name in {SENT}]; {begin}; "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    test = f"{Path(__file__).relative_to(TESTS)}::{test_commands_start_with_default_signals.__name__}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", test]
    done = subprocess.run(
        [sys.executable, "-c", line, *command], cwd=TESTS, capture_output=True, text=True, timeout=HANG,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
