"""Import of the native engine at its first use. Commands that only plan do not load the engine."""

from __future__ import annotations

from types import ModuleType

from halocline.errors import RunError


def native() -> ModuleType:
    """Return the module `halocline._native`.

    Raises
    ------
    RunError
        The module is not built, or a library is missing.
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
            f"halocline._native cannot be loaded ({error}). If a library is missing, provide the library "
            "with which Halocline was built (`module load`, LD_LIBRARY_PATH), or rebuild Halocline."
        ) from error
    return module
