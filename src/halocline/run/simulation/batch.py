"""The time that a batch system, or the user, gives a process."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from halocline.run.output.every import wall_clock


def _started() -> float:
    """When this process began, by the monotonic clock."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):  # not on Linux
        age = 0.0
    return time.monotonic() - age


STARTED = _started()


def end_of_time(time_limit: str | None, environment: Mapping[str, str] = os.environ) -> float | None:
    """When this process must have ended, by the monotonic clock: as the user says, else as Slurm does; None
    where nobody says."""
    if time_limit is not None:
        return STARTED + wall_clock("time_limit", time_limit)
    job = environment.get("SLURM_JOB_ID", "")
    if not job.isdigit():
        return None
    end = environment.get("SLURM_JOB_END_TIME", "")  # seconds since 1970
    if end.isdigit():
        return time.monotonic() + int(end) - time.time()
    left = _slurm_time_left(job)
    return None if left is None else time.monotonic() + left


def _slurm_time_left(job: str) -> float | None:
    """Seconds until a job of Slurm must end, as squeue says: [days-][[hours:]minutes:]seconds."""
    try:
        done = subprocess.run(
            ["squeue", "--noheader", "--job", job, "--format=%L"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.fullmatch(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)", done.stdout.strip())
    if found is None:  # UNLIMITED, NOT_SET
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
