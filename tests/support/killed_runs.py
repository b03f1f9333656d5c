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
    """Of runs that never stopped."""
    return results("whole", tmp_path_factory.mktemp("whole"))


# -- ranks that die ------------------------------------------------------------------------------------------


def killed(name: str, folder: Path, ranks: int, whom: str, whole: str, seed: int) -> None:
    """Kill a run twice, each time at a random moment after it has left a checkpoint, or, the first time,
    perhaps before that; then let it go on to its end, on other ranks."""
    draw, deaths = random.Random(seed), 0
    pointer = folder / name / "newest.json"
    for turn in range(2):
        before, at_once = named(pointer), turn == 0 and draw.random() < 0.3
        process = subprocess.Popen(
            command("slow", folder, name, ranks=ranks),
            env={**os.environ, "HALOCLINE_IO_RANKS": "1" if whom == "I/O rank" else "0", MARK: str(folder)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + HANG
            begun = store_of(folder / name) / "zarr.json" if at_once else pointer
            while named(begun) == (None if at_once else before) and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(draw.uniform(0.0, 0.1 if at_once else 0.6))
            pids = ranks_of(str(folder))  # none where it has come to its end
            if whom == "I/O rank":
                pids = [pid for pid in pids if rank_of(pid) == ranks - 1]
            struck = False
            for pid in pids if whom == "all" else draw.sample(pids, min(1, len(pids))):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    struck = True
            failed = process.wait(HANG) != 0
            assert struck or not failed  # nothing else may end it
            deaths += failed
        finally:
            for pid in ranks_of(str(folder)):
                os.kill(pid, signal.SIGKILL)
            process.wait()
    assert deaths > 0
    assert results("resume", folder, name, ranks=draw.choice([1, 2, 3])) == {name: whole}


def named(file: Path) -> str | None:
    """What a small file says; None where it is not there."""
    with contextlib.suppress(FileNotFoundError):
        return file.read_text()
    return None


MARK = "HALOCLINE_TEST_RUN"


def rank_of(pid: int) -> int:
    """The rank that a process is."""
    with contextlib.suppress(OSError):
        found = re.search(r"\0PMI_RANK=(\d+)\0", Path(f"/proc/{pid}/environ").read_text(errors="replace"))
        return int(found[1]) if found else -1
    return -1


def ranks_of(mark: str) -> list[int]:
    """The Python processes that are alive and have this mark in their environment: mpiexec gives its ranks
    sessions of their own."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            ours = f"\0{MARK}={mark}\0".encode() in b"\0" + (place / "environ").read_bytes()
            if ours and b"restart_programs" in (place / "cmdline").read_bytes().split(b"mpiexec")[0]:
                found.append(int(place.name))
    return found
