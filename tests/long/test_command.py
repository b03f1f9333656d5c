"""The `halocline` command, in real processes on one rank and on several.

Most rejected command lines run in the process of the tests, since the start of a process takes longer.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from pathlib import Path

import pytest

from command_lines import halocline
from hang import HANG
from terminals import on_terminal, until


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_series_up_to_a_failure_is_kept(tmp_path, ranks):
    run = f"run orszag-tang-resistive --n 24 --set dt=0.12 --steps 60 --every 1 --ranks {ranks} --threads 1"
    result = halocline(f"{run} --csv series.csv", tmp_path)
    assert result.returncode == 1
    failed = int(re.search(r"step (\d+)", result.stderr)[1])
    rows = (tmp_path / "series.csv").read_text().splitlines()
    assert len(rows) > 3
    assert int(rows[-1].split(",")[0]) < failed + 1
    assert len(re.findall(r"^ *\d+ ", result.stdout, re.M)) == len(rows) - 1


def stat(process: int) -> tuple[str, int] | None:
    """Return state and parent of a process, or None for a process that has ended."""
    with contextlib.suppress(OSError):
        state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
        return state, int(parent)
    return None


def descendants(root: int) -> list[int]:
    """Return all direct and indirect child processes."""
    parents = {int(p.name): stat(int(p.name)) for p in Path("/proc").iterdir() if p.name.isdigit()}
    result = [root]
    for process in result:
        result += [child for child, known in parents.items() if known is not None and known[1] == process]
    return result[1:]


def rank_of(process: int) -> int | None:
    """Return the rank that a launcher assigned to this process."""
    from halocline.run.ranks.library import launcher

    pairs = Path(f"/proc/{process}/environ").read_text(errors="replace").split("\0")
    started = launcher(dict(pair.split("=", 1) for pair in pairs if "=" in pair))
    return None if started is None else started.rank


def test_a_rank_killed_during_iterations_ends_the_run(tmp_path):
    # the progress shows that the iterations have begun
    line = "solve poisson --n 2048 --ranks 3 --threads 1 --json r.json"
    process, ours = on_terminal(line, tmp_path)
    try:
        output = until(ours, rb"[1-9][\d,]* iterations")
        assert b"iterations" in output, output
        started = descendants(process.pid)
        (victim,) = (child for child in started if rank_of(child) == 1)
        os.kill(victim, signal.SIGKILL)
        end = time.monotonic() + HANG
        last = until(ours, rb"all ranks were stopped")
        assert process.wait(HANG) != 0
        while any(stat(child) not in (None, ("Z", 1)) for child in started):
            assert time.monotonic() < end, f"left: {[c for c in started if stat(c)]}"
            time.sleep(0.05)
        # mpiexec does not always name the signal
        pattern = rb"halocline: error: rank 1 \(process %d\) (was killed by SIGKILL|died); all ranks" % victim
        assert re.search(pattern, last), last
        assert process.stdout.read().strip() == b""  # no result
        assert not (tmp_path / "r.json").exists()
    finally:
        process.kill()
        process.wait()
        os.close(ours)
