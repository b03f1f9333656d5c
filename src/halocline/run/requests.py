"""What asks a run to pause or to stop while it computes: a clock, a file, the end of a job's time."""

from __future__ import annotations

import math
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from halocline.run.every import wall_clock
from halocline.run.mpi import Communicator
from halocline.run.watch import repeating

MARGIN = 60.0  # seconds before the time is up in which a run ends by itself, at least
_STARTED = time.monotonic()  # of the process, about


class Alarm:
    """A time of the wall clock at which a run pauses; `Requests.alarm` makes it.

    Attributes
    ----------
    rang : bool
        Whether the run has paused since the time had come; the same on all ranks.
    """

    def __init__(self) -> None:
        self.due = math.inf
        self.rang = False

    def wind(self, seconds: float) -> None:
        """Ring in so many seconds."""
        self.due, self.rang = time.monotonic() + seconds, False


class Requests:
    """Requests to one run; the first rank sees them, and all ranks follow.

    Parameters
    ----------
    comm : Communicator
    engine : callable
        Returns the native engine that runs now, or None.
    stop_file : path, optional
        The run stops where it exists.
    time_limit : str, optional
        Of the process. Where not given, the end of the job as the batch system has it.
    ends : bool
        Whether the run is to stop before its time is up.

    Attributes
    ----------
    margin : float
        So many seconds before its time is up the run stops.
    """

    def __init__(
        self,
        comm: Communicator,
        engine: Callable[[], Any],
        stop_file: Path | None = None,
        time_limit: str | None = None,
        *,
        ends: bool,
    ) -> None:
        self.comm, self.engine, self.stop_file = comm, engine, stop_file
        self.ends, self.margin = ends, MARGIN
        self._end = end_of_time(time_limit) if ends and comm.rank == 0 else None  # of the monotonic clock
        self._alarms: list[Alarm] = []
        self._lock = threading.Lock()
        self._asked = False

    def alarm(self) -> Alarm:
        """A new alarm; all ranks call this, in the same order."""
        self._alarms.append(Alarm())
        return self._alarms[-1]

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Ask the engine for a pause where there is a reason."""
        if self.comm.rank != 0 or not self._needed:
            yield
            return
        with repeating(self._look, "halocline-requests"):
            yield

    @property
    def _needed(self) -> bool:
        return self.ends or bool(self._alarms)

    def _look(self) -> None:
        with self._lock:
            now = time.monotonic()
            if self._asked or not (self._why_stop(now) or any(each.due <= now for each in self._alarms)):
                return
            engine = self.engine()
            if engine is not None:
                self._asked = True
                engine.request_stop()

    def _why_stop(self, now: float) -> str:
        if self.stop_file is not None and self.stop_file.exists():
            return f"the file {self.stop_file} asks for it"
        if self._end is not None and now >= self._end - self.margin:
            return "its time is nearly up"
        return ""

    def agreed(self) -> str:
        """Why the run is to stop, "" where it is not; alarms whose time has come ring. All ranks call it."""
        if not self._needed:
            return ""
        with self._lock:
            now = time.monotonic()
            why, rang = self._why_stop(now), [each.due <= now for each in self._alarms]
            self._asked = False
        why, rang = self.comm.bcast((why, rang))
        for alarm, each in zip(self._alarms, rang, strict=True):
            alarm.rang = each
        return why


def end_of_time(time_limit: str | None, environment: Mapping[str, str] = os.environ) -> float | None:
    """When this process must have ended, by the monotonic clock: as the user says, else as Slurm does; None
    where nobody says."""
    if time_limit is not None:
        return _STARTED + wall_clock("time_limit", time_limit)
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
