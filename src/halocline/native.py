"""Import of the native engine at its first use. Commands that only plan do not load the engine."""

from __future__ import annotations

import signal
import sys
import threading
from types import ModuleType

from halocline.errors import RunError


def native() -> ModuleType:
    """Return the module `halocline._native`.

    Raises
    ------
    RunError
        The module is not built, or its MPI library is missing.
    """
    is_loaded = "halocline._native" in sys.modules
    hangup = signal.getsignal(signal.SIGHUP)
    try:
        import halocline._native

        module: ModuleType = halocline._native
    except ModuleNotFoundError:
        raise RunError(
            "halocline._native is not built: run `make build`, or `pip install .` in the source folder"
        ) from None
    except ImportError as error:
        raise RunError(
            f"halocline._native cannot be loaded ({error}). If a library is missing, provide the library "
            "with which Halocline was built (`module load`, LD_LIBRARY_PATH, or `pip install mpich` for "
            "libmpi.so.12), or rebuild Halocline."
        ) from error
    if not is_loaded and hangup is not None and threading.current_thread() is threading.main_thread():
        # A library that MPI loads makes the process ignore SIGHUP. Runs would then outlive their terminal.
        signal.signal(signal.SIGHUP, hangup)
    return module
