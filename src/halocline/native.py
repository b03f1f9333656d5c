"""The engine, loaded when it is first needed: commands that plan need none of it."""

from __future__ import annotations

from types import ModuleType

from halocline.errors import RunError


def native() -> ModuleType:
    """The module `halocline._native`.

    Raises
    ------
    RunError
        It is not built, or the MPI library it was built with is gone.
    """
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
    return module
