"""Folder of the headers that generated code includes."""

from __future__ import annotations

from pathlib import Path

from halocline.errors import CompileError


def include_folder() -> Path:
    """Return the folder that contains halocline/abi.h, in the installed package or the source tree."""
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "include", package.parents[1] / "native" / "include"):
        if (candidate / "halocline" / "abi.h").is_file():
            return candidate
    raise CompileError(f"the headers of generated code are missing from {package}; install Halocline again")
