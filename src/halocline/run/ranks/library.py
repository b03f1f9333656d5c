"""The MPI library, the launcher that started this process, and the connection to it."""

from __future__ import annotations

import ctypes
import os
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halocline import forks
from halocline.errors import RunError
from halocline.native import native

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


# Open as long as the rank lives: that it closes reports a death, unless "end" was sent before.
_connection: Any = None
PATIENCE = 10.0  # longest wait for an answer, in seconds


def send_to_launcher(text: str) -> bool:
    """Send a line: "rank R PROCESS", "status S TEXT" before all ranks end, or "end". Return whether the
    launcher has answered, with an empty line."""
    global _connection
    name = os.environ.get("HALOCLINE_LAUNCH")
    if name is None:
        return False
    import fcntl
    import socket

    try:
        if _connection is None:
            with socket.socket(socket.AF_UNIX) as line:
                # Of a process that dies, Linux closes the highest first: mpiexec must not be the first to see
                # the end, since it kills the others then.
                above = int(os.environ.get("PMI_FD", "2")) + 1
                _connection = socket.socket(fileno=fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, above))
            _connection.connect(f"\0{name}")  # waits where many ranks connect at once
            _connection.settimeout(PATIENCE)
        _connection.sendall(f"{text}\n".encode())
        return bool(_connection.recv(1))
    except OSError:  # on another node, or gone
        return False


def _close() -> None:
    """Close the connection of the parent in a forked child, which may live longer."""
    global _connection
    if _connection is not None:
        _connection.close()
        _connection = None


os.register_at_fork(after_in_child=_close)


def initialised() -> Any:
    """Return mpi4py.MPI, initialised and checked.

    Raises
    ------
    RunError
        There is no working MPI, native code uses another MPI library, or the parent of this forked process
        uses MPI.
    """
    forks.claim(forks.MPI)
    import mpi4py

    mpi4py.rc.thread_level = "multiple"  # without effect where the user imported mpi4py.MPI before
    try:
        with warnings.catch_warnings():  # about another MPI's launcher; `world` says it better
            warnings.simplefilter("ignore", RuntimeWarning)
            from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RunError(
            f"mpi4py finds no MPI library ({error}); `pip install mpich`, or install the system's MPI and "
            "build mpi4py against it: pip install --force-reinstall --no-cache-dir --no-binary mpi4py mpi4py"
        ) from error
    if MPI.Is_finalized():
        raise RunError("MPI is finalized already: Halocline cannot run after MPI.Finalize()")
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    check_library(native().mpi_library(), library_of_mpi4py(MPI))
    return MPI


def check_library(ours: str, theirs: str) -> None:
    """Raise RunError where native code and mpi4py use different MPI libraries.

    Parameters
    ----------
    ours, theirs : str
        Files of the libraries of native code and of mpi4py.
    """
    if os.path.realpath(ours) != os.path.realpath(theirs):
        raise RunError(
            f"native code uses the MPI library {os.path.realpath(ours)}, "
            f"but mpi4py uses {os.path.realpath(theirs)}: they must be one. Build both against the same "
            "MPI: with its mpicc first on PATH, "
            "pip install --force-reinstall --no-cache-dir --no-binary mpi4py mpi4py, then Halocline anew"
        )


# Names of the programs that start ranks, behind all links.
PROGRAMS = {
    "Open MPI": ("mpiexec.openmpi", "orterun", "prterun"),
    "MPICH": ("mpiexec.mpich", "mpiexec.hydra"),
}


def mpiexec(library: Path | None = None) -> Path:
    """Return the mpiexec of an MPI library: the nearest one beside the library, else one on PATH.

    Parameters
    ----------
    library : Path, optional
        File of the library. Without one, that of native code.

    Raises
    ------
    RunError
        There is none, or only that of another MPI.
    """
    library = Path(native().mpi_library()) if library is None else library
    kind = kind_of(library.name)
    # Debian's names: plain mpiexec may be another MPI's
    names = ["mpiexec"] if kind is None else [PROGRAMS[kind][0], "mpiexec"]
    others = {name for other, programs in PROGRAMS.items() if kind not in (None, other) for name in programs}
    folders = [str(folder / "bin") for folder in library.resolve().parents]
    foreign = []
    for folder in (*folders, *os.environ.get("PATH", os.defpath).split(os.pathsep)):
        for name in names:
            if program := shutil.which(name, path=folder):
                if Path(program).resolve().name not in others:
                    return Path(program)
                foreign.append(program)
    if foreign:
        raise RunError(
            f"{foreign[0]} belongs to another MPI than the library in use, {library}: install the mpiexec of "
            "that library, or put it first on PATH"
        )
    raise RunError(f"no mpiexec is installed beside the MPI library {library}, and there is none on PATH")


class _SymbolInfo(ctypes.Structure):
    """Dl_info of dladdr(3)."""

    _fields_ = (
        ("dli_fname", ctypes.c_char_p),
        ("dli_fbase", ctypes.c_void_p),
        ("dli_sname", ctypes.c_char_p),
        ("dli_saddr", ctypes.c_void_p),
    )


def library_of_mpi4py(MPI: Any) -> str:
    """The file that holds the MPI_Comm_rank which mpi4py calls."""
    function = ctypes.CDLL(MPI.__file__).MPI_Comm_rank
    try:
        dladdr = ctypes.CDLL(None).dladdr
    except AttributeError:  # C libraries before 2.34 keep it apart
        dladdr = ctypes.CDLL("libdl.so.2").dladdr
    dladdr.argtypes = (ctypes.c_void_p, ctypes.POINTER(_SymbolInfo))
    info = _SymbolInfo()
    if not dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info)):
        raise RunError("cannot find out which MPI library mpi4py uses: dladdr does not know MPI_Comm_rank")
    return os.fsdecode(info.dli_fname)
