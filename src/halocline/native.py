"""The engine, loaded when it is first needed: commands that plan need none of it."""

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
        It is not built, or the MPI library it was built with is gone.
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
            f"halocline._native cannot be loaded ({error}); where a library is missing, it is one that "
            "Halocline was built with: make it visible again (`module load`, LD_LIBRARY_PATH, or "
            "`pip install mpich` for libmpi.so.12), or build Halocline anew"
        ) from error
    if not is_loaded and hangup is not None and threading.current_thread() is threading.main_thread():
        # a library below MPI ignores SIGHUP as soon as it is loaded: runs would outlive their terminal
        signal.signal(signal.SIGHUP, hangup)
    return module
