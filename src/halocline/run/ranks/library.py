"""The MPI library: initialised through mpi4py, and the same for native code."""

from __future__ import annotations

import ctypes
import os
import warnings
from typing import Any

from halocline import forks
from halocline.errors import RunError
from halocline.native import native


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
