"""What asks a run to pause or to stop while it computes: a clock, a signal, a file, the end of its time."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from halocline.native import native
from halocline.run.engine.watch import repeating
from halocline.run.output.checkpoint import MARGIN
from halocline.run.ranks.communicator import Communicator
from halocline.run.simulation.batch import end_of_time


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

    @property
    def is_wound(self) -> bool:
        """True where the alarm is to ring, or rings."""
        return self.due < math.inf

    def wind(self, seconds: float) -> None:
        """Ring after these seconds."""
        self.due, self.rang = time.monotonic() + seconds, False

    def put_off(self) -> None:
        """Do not ring any more."""
        self.due, self.rang = math.inf, False


class Requests:
    """Requests to one run. All ranks follow what any of them sees.

    Parameters
    ----------
    comm : Communicator
    engine : callable
        Returns the native engine that runs now, or None; called from another thread.
    stop_file : path, optional
        The run stops where it exists.
    time_limit : str, optional
        Of the process. Where not given, the end of the job as the batch system has it.
    ends : bool
        Whether the run is to stop before its time is up, and where a signal asks for it.

    Attributes
    ----------
    margin : float
        Seconds before its time is up at which the run stops.
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

    def alarm(self) -> Alarm:
        """A new alarm; all ranks call this, in the same order."""
        self._alarms.append(Alarm())
        return self._alarms[-1]

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Ask the engine for a pause where there is a reason."""
        watched = self.ends or (self.comm.rank == 0 and self._alarms)
        with repeating(self._look, "halocline-requests") if watched else nullcontext():
            yield

    def _look(self) -> None:
        engine = self.engine()
        if engine is not None and self._due():
            engine.request_pause()

    def _due(self) -> bool:
        if self._signal():
            return True
        now = time.monotonic()
        return self.comm.rank == 0 and (
            bool(self._why_stop(now)) or any(each.due <= now for each in self._alarms)
        )

    def _signal(self) -> int:
        return native().noted_signal() if self.ends else 0

    def _why_stop(self, now: float) -> str:
        """What the first rank sees."""
        if self.stop_file is not None and self.stop_file.exists():
            return f"the file {self.stop_file} is there"
        if self._end is not None and now >= self._end - self.margin:
            return "its time is nearly up"
        return ""

    def ring(self) -> None:
        """Let alarms ring whose time has come. All ranks call this."""
        if self._alarms:
            now = time.monotonic()
            rang = self.comm.bcast([each.due <= now for each in self._alarms])
            for alarm, each in zip(self._alarms, rang, strict=True):
                alarm.rang = each

    def agreed(self) -> str | None:
        """Why the run is to stop, "" for Ctrl-C; None where it is not. All ranks call this. A signal counts
        until `forget`."""
        if not self.ends:
            return None
        number = self.comm.most(self._signal())
        why: str = self.comm.bcast(self._why_stop(time.monotonic()) if self.comm.rank == 0 else "")
        if number:
            return "" if number == signal.SIGINT else f"{signal.Signals(number).name} arrived"
        return why or None

    def forget(self) -> None:
        """The run has done what a signal asked for."""
        native().forget_signal()
