"""Limits of the system for a process, and the memory in /dev/shm that ranks take."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from halocline.errors import InputError, RunError
from halocline.run.host import process as limits
from halocline.run.host import segments
from halocline.run.ranks.launch import environment
from hang import HANG
from limited_runs import RUN, in_small_shm, run, script, with_ranks
from suites import cases

__all__ = ["script"]  # a fixture


# -- files of ranks in /dev/shm --------------------------------------------------------------------------


WAITING = """
import os, time
from halocline.run.ranks import mpi

comm = mpi.world()
comm.barrier()
words = open("/proc/self/maps").read().split()
names = {word for word in words if word.startswith("/dev/shm/mpich_")}
print(" ".join([f"\\nrank {os.getpid()}", *names]), flush=True)
comm.barrier()
time.sleep(ENDS)
[][comm.rank]
"""


def children(process: int) -> list[int]:
    """Return the direct and indirect child processes of a process."""
    direct = [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return direct + [descendant for child in direct for descendant in children(child)]


def command_of(process: int) -> str:
    return Path(f"/proc/{process}/comm").read_text().strip()


@cases(
    "killed, launcher",
    itertools.product(
        ("one rank", "all ranks", "mpiexec", "the command", "nobody"), ("halocline", "mpiexec")
    ),
    default=[("one rank", "halocline"), ("the command", "halocline"), ("nobody", "mpiexec")],
)
def test_ranks_leave_no_shared_memory_after_any_end(script, killed, launcher):
    """No shared memory remains after kills, and after errors in the user's file."""
    file = script(WAITING.replace("ENDS", "0" if killed == "nobody" else str(2 * HANG)))
    process = subprocess.Popen(
        with_ranks(file, 2, launcher),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = [line.split() for line in itertools.islice(filter(str.strip, process.stdout), 2)]
        ranks = [int(words[1]) for words in lines]
        names = {name for words in lines for name in words[2:]}
        if not names:
            pytest.skip("this MPI keeps no segments in /dev/shm")
        started = (
            {command_of(child): child for child in children(process.pid)} if process.poll() is None else {}
        )
        victims = {
            "one rank": ranks[:1],
            "all ranks": ranks,
            "mpiexec": [started.get("mpiexec", process.pid)],
            "the command": [process.pid],
            "nobody": [],
        }
        for victim in victims[killed]:
            # when the first rank is dead, the launcher may end the second before this process does
            may_be_dead = victim in ranks[1:]
            with contextlib.suppress(ProcessLookupError) if may_be_dead else contextlib.nullcontext():
                os.kill(victim, signal.SIGKILL)
        process.communicate(timeout=HANG)
        end = time.monotonic() + HANG
        while any(Path(f"/proc/{rank}").exists() for rank in ranks) and time.monotonic() < end:
            time.sleep(0.02)
        assert not any(Path(name).exists() for name in names)
    finally:
        process.kill()
        process.communicate()


# -- size of /dev/shm --------------------------------------------------------------------------------------


@pytest.mark.parametrize("launcher", ["halocline", "mpiexec"])
def test_ranks_without_shared_memory_for_mpi_are_rejected(script, launcher):
    file = script("from halocline.run.ranks import mpi\nmpi.world()\nprint('went on')")
    code, out, err = in_small_shm("1m", with_ranks(file, 2, launcher))
    assert "went on" not in out
    assert err.count("halocline: error:") == 1
    assert "MPI needs 2114688 bytes of shared memory for 2 ranks, but /dev/shm has 1048576 bytes" in err
    if launcher == "halocline":  # mpiexec has a status and more lines of its own
        assert code == 2
        assert len(err.splitlines()) == 1
    else:
        assert code != 0
        assert "SIGBUS" not in err
        assert "Bus error" not in err + out


@cases("size", ["2200k", "8m"], default=["2200k"])  # less than all ranks try to use
@cases("launcher", ["halocline", "mpiexec"], default=["halocline"])
def test_ranks_run_with_little_shared_memory(script, size, launcher):
    file = script(RUN.replace("METHODS", "None"))
    assert in_small_shm(size, with_ranks(file, 2, launcher)) == (0, "ran\n", "")


def test_shared_memory_used_by_this_run_is_not_counted_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "FOLDER", tmp_path)
    monkeypatch.setattr(segments, "room", lambda: segments.NEEDED)
    two = {"MPI_LOCALNRANKS": "2"}
    monkeypatch.setenv("UCX_TLS", "all")
    with pytest.raises(RunError, match="for 2 ranks"):
        segments.prepare(two)
    segment = tmp_path / "mpich_shm_1_0"
    segment.write_bytes(bytes(2 * segments.NEEDED))
    segments.prepare(two)
    os.utime(segment, (0, 0))  # memory of an earlier run
    with pytest.raises(RunError, match="for 2 ranks"):
        segments.prepare(two)


# -- open files --------------------------------------------------------------------------------------------


def test_a_too_low_limit_of_open_files_is_rejected(script):
    code, out, err = run(with_ranks(script("print('went on')"), 4), "ulimit -n 20")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "halocline: error: 4 ranks need 64 open files in a process, but only 20 are allowed: raise the limit "
        "(`ulimit -n 64`; LimitNOFILE, limits.conf)"
    ]


@cases(
    "limit",
    ["ulimit -n 64", "ulimit -S -n 20; ulimit -H -n 64"],
    default=["ulimit -S -n 20; ulimit -H -n 64"],
)
def test_the_required_number_of_open_files_suffices(script, limit):
    assert run(with_ranks(script(RUN.replace("METHODS", "'mpi'")), 4), limit) == (0, "ran\n", "")


# -- stacks ------------------------------------------------------------------------------------------------


@cases("ranks", [None, 2], default=[None])
@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("export OMP_STACKSIZE=16k", "OMP_STACKSIZE is '16k', which is 16384 bytes, but kernels need 262144"),
        ("ulimit -s 128", "limited to 131072 bytes, but kernels and their compiler need 1048576"),
    ],
)
def test_too_small_stacks_are_rejected(script, ranks, before, words):
    file = script(RUN.replace("METHODS", "None"))
    code, out, err = run([sys.executable, str(file)] if ranks is None else with_ranks(file, ranks), before)
    assert (code, out) == (2, "")
    assert err.count("halocline: error:") == 1
    assert words in err


@pytest.mark.parametrize(
    ("words", "size"),
    [
        ("16k", 16384),
        (" 2 M ", 2 << 20),
        ("300", 300 << 10),
        ("512B", 512),
        ("1g", 1 << 30),
        ("", None),
        ("x", None),
    ],
)
def test_sizes_of_stacks_are_parsed_as_by_openmp(words, size, monkeypatch):
    assert limits._stack_size(words) == size
    if size is not None and size < limits.KERNEL_STACK:
        with pytest.raises(InputError, match="GOMP_STACKSIZE is"):
            limits.check_stacks(2, {"OMP_STACKSIZE": "x", "GOMP_STACKSIZE": words})
        limits.check_stacks(1, {"OMP_STACKSIZE": words})  # one thread has the stack of the process
        limits.check_stacks(2, {"OMP_STACKSIZE": "1M", "GOMP_STACKSIZE": words})
