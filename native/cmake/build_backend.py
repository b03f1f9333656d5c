"""Build backend: scikit-build-core, after a check that there is a C++ compiler."""

from __future__ import annotations

import os
import shutil
from typing import Any

from scikit_build_core import build
from scikit_build_core.build import (  # hooks of PEP 517 and PEP 660
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,  # without these two, pip would build twice
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

COMPILERS = ("c++", "g++", "clang++")


def check_compiler() -> None:
    """Exit with a message for the user if there is no C++ compiler."""
    compiler = os.environ.get("CXX", "").split()
    if any(shutil.which(name) for name in compiler[:1] or COMPILERS):
        return
    problem = "neither c++, g++ nor clang++ is on PATH"
    if compiler:
        problem = f"CXX is {compiler[0]!r}, which is no program on PATH"
    raise SystemExit(
        f"Halocline cannot be built without a C++ compiler: {problem}. "
        "Install one (Debian: apt-get install g++) or set CXX to its path."
    )


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return the requirements of a wheel. Exit if there is no compiler."""
    check_compiler()
    return build.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return the requirements of an editable installation. Exit if there is no compiler."""
    check_compiler()
    return build.get_requires_for_build_editable(config_settings)
