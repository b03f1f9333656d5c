"""Which MPI Halocline is built against; standard library only.

It is the system's where an `mpicc` is found (the one named by the environment variable MPICC, else
the first on PATH), else the package `mpich` from PyPI. CMake and make run this file as a program;
scikit-build-core calls it so that `pip install` asks for `mpich` exactly where it is needed.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGE = "mpich>=5"


def system_mpicc() -> Path | None:
    """The system's compiler wrapper, or None; wrappers that pip installed do not count."""
    named = os.environ.get("MPICC", "")
    if named:
        found = shutil.which(named.split()[0])
        if found is None:
            raise SystemExit(f"MPICC is {named!r}, but there is no such program: correct or unset it")
        return Path(found)
    for folder in os.get_exec_path():
        found = shutil.which("mpicc", path=folder) if folder else None
        if found and not any(Path(folder).parent.glob("lib/python3*/site-packages/mpich-*.dist-info")):
            return Path(found)
    return None


def packaged_library() -> Path:
    """`libmpi.so.12` of the installed package `mpich`."""
    try:
        files = metadata.files("mpich") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "libmpi.so.12":
            return Path(str(file.locate())).resolve()
    raise SystemExit(
        "no MPI: neither is there an mpicc on PATH nor the Python package mpich; "
        "install an MPI, or run `pip install mpich`"
    )


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, list[str]]:
    """Run-time requirements that depend on the MPI (scikit-build-core calls this)."""
    return {"dependencies": [] if system_mpicc() else [PACKAGE]}


def get_requires_for_dynamic_metadata(settings: Mapping[str, Any]) -> list[str]:
    """Build requirements that depend on the MPI (scikit-build-core calls this)."""
    return [] if system_mpicc() else [PACKAGE]


if __name__ == "__main__":
    # one line: "system;<mpicc>" or "package;<include folder>;<libmpi.so.12>"; `--kind`: its first word
    mpicc = system_mpicc()
    if sys.argv[1:] == ["--kind"]:
        print("system" if mpicc else "package")
    elif mpicc:
        print(f"system;{mpicc}")
    else:
        library = packaged_library()
        print(f"package;{library.parent.parent / 'include'};{library}")
