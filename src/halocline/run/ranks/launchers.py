"""Which launcher started this process, and as which of its ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

# Where launchers say which rank a process is, and of how many.
LAUNCHERS = (
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI", "PMI_RANK", "PMI_SIZE"),
    ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # a batch script itself is no step
    ("PMIx", "PMIX_RANK", None),
)


@dataclass(frozen=True)
class Launcher:
    """The program that started this process as one of several.

    Parameters
    ----------
    name : str
    rank : int
        Which of the processes this one is, as the launcher counts.
    size : int or None
        How many it started; None where it does not say.
    """

    name: str
    rank: int
    size: int | None


def launcher(environment: Mapping[str, str] = os.environ) -> Launcher | None:
    """The launcher that started this process, or None."""
    for name, rank, size in LAUNCHERS:
        if environment.get(rank, "").isdigit():
            if size is None:
                return Launcher(name, int(environment[rank]), None)
            if environment.get(size, "").isdigit():
                return Launcher(name, int(environment[rank]), int(environment[size]))
    return None
