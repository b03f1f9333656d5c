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
PMIX_SERVER = "PMIX_SERVER_URI"  # begins the names of the variables that say where the launcher listens
# Variables by which a launcher speaks to the processes that it has started.
OF_LAUNCHERS = ("OMPI_COMM_WORLD_", "PMI_", "PMIX_", "SLURM_")


def kind_of(library: str) -> str | None:
    """Return "MPICH" or "Open MPI" by the file name of an MPI library, or None."""
    if ".so.12" in library:
        return "MPICH"
    return "Open MPI" if ".so.40" in library else None


def is_foreign(library: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the launcher of several processes belongs to another MPI than a library.

    Such a launcher and library end in errors of the library, or in as many runs as there are processes.
    """
    sizes = {"Open MPI": "OMPI_COMM_WORLD_SIZE", "MPICH": "PMI_SIZE"}
    kind = kind_of(os.path.basename(library))
    if kind is None or environment.get(sizes[kind]) or "SLURM_PROCID" in environment:
        return False  # srun speaks to either MPI
    other = next(environment.get(size, "") for name, size in sizes.items() if name != kind)
    return other.isdigit() and int(other) > 1


def unlaunched(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a launcher that this process starts.

    Where a launcher started this process alone, as `srun --pty` does, the variables of that launcher would
    mislead the new one. They remain in a batch script, which is not such a process.
    """
    started = launcher(environment)
    if started is None or started.size != 1:
        return dict(environment)
    return {name: value for name, value in environment.items() if not name.startswith(OF_LAUNCHERS)}


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
                if any(variable.startswith(PMIX_SERVER) for variable in environment):
                    return Launcher(name, int(environment[rank]), None)
                continue  # it was left in the environment
            if environment.get(size, "").isdigit():
                return Launcher(name, int(environment[rank]), int(environment[size]))
    return None
