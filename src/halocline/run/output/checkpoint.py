"""Which checkpoints a run leaves, as its user says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from halocline.archive.files import as_path, check_text
from halocline.errors import InputError
from halocline.ranges import CHECKPOINTS, IO_THREADS
from halocline.run.output.every import Every, wall_clock
from halocline.words import shown

MARGIN = 60.0  # seconds before its time is up in which a run ends by itself, at least


@dataclass(frozen=True)
class Checkpoint:
    """Checkpoints of a run, from which `resume` goes on with the same bits on any number of ranks.

    Parameters
    ----------
    path : str or path
        A folder that holds them.
    every : float, hc.steps or str, optional
        Interval between two checkpoints: a float is simulated time, ``hc.steps(5)`` or "5 steps" a number of
        steps or iterations, and a text such as "30 min" wall-clock time. The run writes a checkpoint at the
        end too, and at a request to stop: by SIGTERM, SIGUSR1 or SIGINT, by a file named "stop" in the
        folder, or shortly before its time is up.
    keep : int
        How many remain, the newest ones.
    overwrite : bool
        Whether checkpoints that another run left in the folder may be removed.
    time_limit : str, optional
        How long the run may take, such as "11 h 50 min", from the start of the process on. Where not given,
        the end of the job as Slurm has it.
    io_threads : int
        Threads of each rank that compress and write while the run goes on.

    Raises
    ------
    InputError
        A number or text that cannot be.
    """

    path: str | Path
    every: Every | float | str | None = None
    keep: int = 2
    overwrite: bool = False
    time_limit: str | None = None
    io_threads: int = 1

    def __post_init__(self) -> None:
        check_text(as_path(self.path, "the path of a checkpoint"))
        object.__setattr__(self, "keep", CHECKPOINTS.check("keep", self.keep))
        object.__setattr__(self, "io_threads", IO_THREADS.check("io_threads", self.io_threads))
        if self.every is not None:
            Every.parse("every", self.every)
        if self.time_limit is not None:
            given = wall_clock("time_limit", self.time_limit)
            if given <= MARGIN:
                raise InputError(
                    f"time_limit is {shown(self.time_limit)}; expected more than {MARGIN:g} s: a run ends as "
                    "long before its time is up"
                )
