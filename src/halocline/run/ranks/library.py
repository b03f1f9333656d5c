"""The MPI library: initialised through mpi4py, and the same for native code."""

from __future__ import annotations

import ctypes
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

from halocline import forks
from halocline.errors import RunError
from halocline.native import native
from halocline.run.ranks.launchers import kind_of


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
    names = {"Open MPI": ["mpiexec.openmpi", "mpiexec"], "MPICH": ["mpiexec.mpich", "mpiexec"]}.get(
        kind or "", ["mpiexec"]
    )
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
