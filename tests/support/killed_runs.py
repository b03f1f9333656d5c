"""Runs whose ranks are killed."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hang import HANG
from restart_programs import store_of

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from stopped_runs import command, results


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the results of uninterrupted runs."""
    return results("whole", tmp_path_factory.mktemp("whole"))


# -- killed ranks --------------------------------------------------------------------------------------------


def check_killed_run(name: str, folder: Path, ranks: int, whom: str, whole: str, seed: int) -> None:
    """Check that a run that is killed twice and then resumed on other ranks has the results of a whole run.

    Each kill is at a random moment after a checkpoint, or, the first time, perhaps before.
    """
    draw, deaths = random.Random(seed), 0
    pointer = folder / name / "newest.json"
    for attempt in range(2):
        before, at_once = text_of(pointer), attempt == 0 and draw.random() < 0.3
        process = subprocess.Popen(
            command("slow", folder, name, ranks=ranks),
            env={**os.environ, "HALOCLINE_IO_RANKS": "1" if whom == "I/O rank" else "0", MARK: str(folder)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + HANG
            started_file = store_of(folder / name) / "zarr.json" if at_once else pointer
            while text_of(started_file) == (None if at_once else before) and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(draw.uniform(0.0, 0.1 if at_once else 0.6))
            pids = ranks_of(str(folder))  # empty if the run has ended
            if whom == "I/O rank":
                pids = [pid for pid in pids if rank_of(pid) == ranks - 1]
            struck = False
            for pid in pids if whom == "all" else draw.sample(pids, min(1, len(pids))):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    struck = True
            failed = process.wait(HANG) != 0
            assert struck or not failed  # nothing else may end the run
            deaths += failed
        finally:
            for pid in ranks_of(str(folder)):
                os.kill(pid, signal.SIGKILL)
            process.wait()
    assert deaths > 0
    assert results("resume", folder, name, ranks=draw.choice([1, 2, 3])) == {name: whole}


def text_of(file: Path) -> str | None:
    """Return the content of a small file, or None if the file does not exist."""
    with contextlib.suppress(FileNotFoundError):
        return file.read_text()
    return None


MARK = "HALOCLINE_TEST_RUN"


def rank_of(pid: int) -> int:
    """Return the rank of a process, or -1."""
    with contextlib.suppress(OSError):
        match = re.search(r"\0PMI_RANK=(\d+)\0", Path(f"/proc/{pid}/environ").read_text(errors="replace"))
        return int(match[1]) if match else -1
    return -1


def ranks_of(mark: str) -> list[int]:
    """Return the living Python processes with this mark in their environment.

    The environment identifies the ranks, since mpiexec starts them in separate sessions.
    """
    pids = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_marked = f"\0{MARK}={mark}\0".encode() in b"\0" + (place / "environ").read_bytes()
            if is_marked and b"restart_programs" in (place / "cmdline").read_bytes().split(b"mpiexec")[0]:
                pids.append(int(place.name))
    return pids
