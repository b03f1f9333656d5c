"""Selection of the MPI library for the build; this module uses only the standard library.

The system MPI is selected if there is an `mpicc`: the program in the environment variable MPICC, or the
first one on PATH. Otherwise the package `mpich` from PyPI is selected. If the environment already contains
this package, it is selected too. HALOCLINE_MPI=package selects the package even if there is an `mpicc`.
CMake and make run this file as a program. scikit-build-core imports it, so that `pip install` requires
`mpich` only if it is needed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGE = "mpich>=5"


def system_mpicc() -> Path | None:
    """Return the compiler wrapper of the system MPI, or None. Wrappers that pip installed are ignored.

    If the package `mpich` is in this environment, mpi4py loads it. A system MPI that is installed later, for
    another program, must not replace it for native code only.
    """
    chosen = os.environ.get("HALOCLINE_MPI", "")
    if chosen == "package":
        return None
    if chosen:
        raise SystemExit(f"HALOCLINE_MPI is {chosen!r}: expected package; MPICC names another MPI's mpicc")
    named = os.environ.get("MPICC", "")
    if named:
        wrapper = shutil.which(named.split()[0])
        if wrapper is None:
            raise SystemExit(f"MPICC is {named!r}, but there is no such program: correct or unset it")
        return Path(wrapper)
    if has_package():
        return None
    for folder in os.get_exec_path():
        wrapper = shutil.which("mpicc", path=folder) if folder else None
        if wrapper and not any(Path(folder).parent.glob("lib/python3*/site-packages/mpich-*.dist-info")):
            return Path(wrapper)
    return None


def has_package() -> bool:
    """Return True if the package `mpich` is installed in the environment of this Python."""
    try:
        metadata.distribution("mpich")
    except metadata.PackageNotFoundError:
        return False
    return True


def packaged_library() -> Path:
    """Return the path of `libmpi.so.12` of the installed package `mpich`."""
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


def libraries_of(mpicc: Path) -> set[str]:
    """Return the paths of the MPI libraries that a program of this compiler wrapper loads."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "mpi.c", Path(folder) / "mpi"
        source.write_text("#include <mpi.h>\nint main(void) { return MPI_Finalize(); }\n")
        subprocess.run([mpicc, source, "-o", program], check=True, capture_output=True)
        loaded = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return _mpi_libraries(re.findall(r"=> (/\S+)", loaded))


def libraries_of_mpi4py() -> set[str]:
    """Return the paths of the MPI libraries that mpi4py loads. The set is empty if the import fails."""
    show = (
        "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; "
        "print(open('/proc/self/maps').read())"
    )
    loaded = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True)
    return _mpi_libraries(re.findall(r"(/\S+)$", loaded.stdout, re.MULTILINE))


def _mpi_libraries(paths: list[str]) -> set[str]:
    """Return the MPI libraries, such as libmpi.so.40 and libmpich.so.12, with symbolic links resolved."""
    return {os.path.realpath(path) for path in paths if re.match(r"libmpi(ch)?\.so", Path(path).name)}


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the run-time requirements that depend on the MPI, for scikit-build-core."""
    return {"dependencies": [] if system_mpicc() else [PACKAGE]}


def get_requires_for_dynamic_metadata(settings: Mapping[str, Any]) -> list[str]:
    """Return the build requirements that depend on the MPI, for scikit-build-core."""
    return [] if system_mpicc() else [PACKAGE]


if __name__ == "__main__":
    # Print one line: "system;<mpicc>" or "package;<include folder>;<libmpi.so.12>". With `--kind`, print its
    # first word. With `--mpi4py-fits`, return status 0 if mpi4py loads the library that the system mpicc
    # links.
    mpicc = system_mpicc()
    if sys.argv[1:] == ["--mpi4py-fits"]:
        sys.exit(mpicc is not None and libraries_of(mpicc).isdisjoint(libraries_of_mpi4py()))
    if sys.argv[1:] == ["--kind"]:
        print("system" if mpicc else "package")
    elif mpicc:
        print(f"system;{mpicc}")
    else:
        library = packaged_library()
        print(f"package;{library.parent.parent / 'include'};{library}")
