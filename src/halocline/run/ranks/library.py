"""MPI library, launcher of this process, and connection to `halocline.run.ranks.launch`."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halocline import forks
from halocline.errors import RunError
from halocline.native import native
from halocline.run.host.mpi_library import (
    MPI4PY_VARIABLE,
    MPI_VARIABLE,
    PROGRAMS,
    kind_of,
    launcher_kind,
    library_of_mpi4py,
    mpi4py_selects_library,
    mpi_library,
    opened,
    selected_library,
)

# Name of a launcher, and its environment variables for the rank of a process and the number of ranks.
LAUNCHERS = (
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI", "PMI_RANK", "PMI_SIZE"),
    ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # a batch script itself is not a step
    ("PMIx", "PMIX_RANK", None),
)
PMIX_SERVER = "PMIX_SERVER_URI"  # prefix of variables with the address of the PMIx server
# Prefixes of the variables that a launcher sets for its processes.
OF_LAUNCHERS = ("OMPI_COMM_WORLD_", "PMI_", "PMIX_", "SLURM_")


def is_foreign(library: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if the launcher started several processes and belongs to another MPI than `library`.

    With such a launcher the library reports errors, or each process starts a separate run.
    """
    kind = kind_of(library)
    return kind is not None and launcher_kind(environment) not in (None, kind)


def environment_without_launcher(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a launcher that this process starts.

    A launcher such as `srun --pty` may have started this process as its only process. The variables of that
    launcher are removed, because they would mislead the new launcher. No launcher starts a batch script, so
    the variables of a batch script remain.
    """
    parent = launcher(environment)
    if parent is None or parent.size != 1:
        return dict(environment)
    return {name: value for name, value in environment.items() if not name.startswith(OF_LAUNCHERS)}


@dataclass(frozen=True)
class Launcher:
    """Program that started this process as one of several processes.

    Parameters
    ----------
    name : str
        Name of the program or its protocol.
    rank : int
        Rank of this process.
    size : int or None
        Number of processes; None if the launcher does not report it.
    """

    name: str
    rank: int
    size: int | None


def launcher(environment: Mapping[str, str] = os.environ) -> Launcher | None:
    """Return the launcher that started this process, or None."""
    for name, rank, size in LAUNCHERS:
        if environment.get(rank, "").isdigit():
            if size is None:
                if any(variable.startswith(PMIX_SERVER) for variable in environment):
                    return Launcher(name, int(environment[rank]), None)
                continue  # left over in the environment
            if environment.get(size, "").isdigit():
                return Launcher(name, int(environment[rank]), int(environment[size]))
    return None


# Connection of a rank, open until the rank ends. A close without "end" reports the death of the rank.
_connection: Any = None
PATIENCE = 10.0  # maximum wait for an answer, in seconds


def send_to_launcher(text: str) -> bool:
    """Send a line to the launcher and return True if the launcher has answered with an empty line.

    The possible lines are "rank R PROCESS", "status S TEXT" before an abort of all ranks, and "end".
    """
    global _connection
    name = os.environ.get("HALOCLINE_LAUNCH")
    if name is None:
        return False
    import fcntl
    import socket

    try:
        if _connection is None:
            with socket.socket(socket.AF_UNIX) as new_socket:
                # Linux closes the highest descriptors of a dying process first. This connection must close
                # before the connection to mpiexec, since mpiexec immediately kills the other ranks.
                minimum = int(os.environ.get("PMI_FD", "2")) + 1
                _connection = socket.socket(fileno=fcntl.fcntl(new_socket, fcntl.F_DUPFD_CLOEXEC, minimum))
            _connection.connect(f"\0{name}")  # blocks while many ranks connect
            _connection.settimeout(PATIENCE)
        _connection.sendall(f"{text}\n".encode())
        return bool(_connection.recv(1))
    except OSError:  # the launcher is on another node or has ended
        return False


def _close() -> None:
    """Close the connection of the parent in a forked child, which may outlive the parent."""
    global _connection
    if _connection is not None:
        _connection.close()
        _connection = None


os.register_at_fork(after_in_child=_close)


def initialised_mpi() -> Any:
    """Return mpi4py.MPI, initialised and checked.

    Raises
    ------
    RunError
        No MPI library works, or the engine already uses another MPI library than mpi4py. Or this process is a
        forked child of a process that uses MPI.
    """
    forks.claim(forks.MPI)
    import mpi4py

    mpi4py.rc.thread_level = "multiple"  # no effect if the user has already imported mpi4py.MPI
    hangup = signal.getsignal(signal.SIGHUP)
    try:
        with warnings.catch_warnings(), _selected_for_mpi4py():
            # about the launcher of another MPI; `world` raises a clearer error
            warnings.simplefilter("ignore", RuntimeWarning)
            from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RunError(
            f"mpi4py cannot use the MPI library ({error}); name another in HALOCLINE_MPI, or install the "
            "wheel of mpi4py: pip install --force-reinstall --only-binary mpi4py mpi4py"
        ) from error
    if hangup is not None and threading.current_thread() is threading.main_thread():
        # A library that MPI loads makes the process ignore SIGHUP. Runs would then outlive their terminal.
        signal.signal(signal.SIGHUP, hangup)
    if MPI.Is_finalized():
        raise RunError("MPI is finalized already: Halocline cannot run after MPI.Finalize()")
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    library = library_of_mpi4py()
    if os.environ.get(MPI_VARIABLE) and not _is_same(selected_library(os.environ), library):
        raise RunError(
            f"{MPI_VARIABLE} selects {selected_library(os.environ)}, but mpi4py uses {library}. Unset "
            f"{MPI_VARIABLE}, or set {MPI4PY_VARIABLE} to the same library before an import of mpi4py.MPI"
        )
    try:
        native().load_mpi(library)
    except RuntimeError as error:
        raise RunError(str(error)) from error
    return MPI


def _is_same(library: str | Path, other: str | Path) -> bool:
    return os.path.realpath(library) == os.path.realpath(other)


@contextmanager
def _selected_for_mpi4py() -> Iterator[None]:
    """Make an import of mpi4py.MPI load the selected MPI library."""
    previous = os.environ.get(MPI4PY_VARIABLE)
    os.environ.update(_environment_of_mpi4py())
    try:
        yield
    finally:
        if previous is None:
            os.environ.pop(MPI4PY_VARIABLE, None)
        else:
            os.environ[MPI4PY_VARIABLE] = previous


def environment_of_ranks() -> dict[str, str]:
    """Return the variables that make ranks use the MPI library of this process."""
    return {MPI_VARIABLE: mpi_library(), **_environment_of_mpi4py()}


def _environment_of_mpi4py() -> dict[str, str]:
    """Return the variable that makes mpi4py load the MPI library in use; empty if mpi4py has its own."""
    if not mpi4py_selects_library():
        return {}
    library = mpi_library()
    if os.path.basename(library).startswith("libmpich."):
        # The wheel of mpi4py needs libmpi.so.12. The MPICH of Debian has the same library with another name.
        opened(library, "MPI_Init")
        return {MPI4PY_VARIABLE: str(Path(str(native().__file__)).parent / "libmpi.so.12")}
    return {MPI4PY_VARIABLE: library}


def mpiexec(library: Path | None = None) -> Path:
    """Return the mpiexec of an MPI library: the nearest one to the library, else one on PATH.

    Parameters
    ----------
    library : Path, optional
        File of the library. Default: the library in use.

    Raises
    ------
    RunError
        No mpiexec is installed, or only the mpiexec of another MPI library.
    """
    library = Path(mpi_library()) if library is None else library
    kind = kind_of(library.name)
    # names on Debian; plain mpiexec may belong to another MPI
    names = ["mpiexec"] if kind is None else [PROGRAMS[kind][0], "mpiexec"]
    foreign_names = {
        name
        for other_kind, programs in PROGRAMS.items()
        if kind not in (None, other_kind)
        for name in programs
    }
    folders = [str(folder / "bin") for folder in library.resolve().parents]
    foreign = []
    for folder in (*folders, *os.environ.get("PATH", os.defpath).split(os.pathsep)):
        for name in names:
            if program := shutil.which(name, path=folder):
                if Path(program).resolve().name not in foreign_names:
                    return Path(program)
                foreign.append(program)
    if foreign:
        raise RunError(
            f"{foreign[0]} belongs to a different MPI than the library in use, {library}. Install the "
            "mpiexec of that library, or put it first on PATH."
        )
    raise RunError(f"no mpiexec is installed next to the MPI library {library}, and no mpiexec is on PATH")
