"""World communicator of an MPI library with the ABI of the MPI standard, without mpi4py."""

from __future__ import annotations

import ctypes

from halocline import _native as native

WORLD, MULTIPLE = ctypes.c_void_p(0x101), 4096  # MPI_COMM_WORLD, MPI_THREAD_MULTIPLE


class World:
    """Communicator with the attributes of mpi4py that tests of the engine need.

    Parameters
    ----------
    library : str
        Path of the library, which the engine uses too.
    """

    def __init__(self, library: str) -> None:
        self.mpi = ctypes.CDLL(library)
        level, rank, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self.mpi.MPI_Init_thread(None, None, MULTIPLE, ctypes.byref(level))
        assert level.value == MULTIPLE
        self.mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
        self.mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
        self.rank, self.size = rank.value, size.value
        native.load_mpi(library)

    def py2f(self) -> int:
        """Return the handle of the communicator in Fortran."""
        handle: int = self.mpi.MPI_Comm_toint(WORLD)
        return handle

    def finalize(self) -> None:
        self.mpi.MPI_Finalize()
