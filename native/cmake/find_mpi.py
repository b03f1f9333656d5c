"""Which MPI Halocline is built against; standard library only.

It is the system's where an `mpicc` is found (the one named by the environment variable MPICC, else
the first on PATH), else the package `mpich` from PyPI. An environment that has this package keeps it, and
HALOCLINE_MPI=package takes it although there is an `mpicc`. CMake and make run this file as a program;
scikit-build-core calls it so that `pip install` asks for `mpich` exactly where it is needed.
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
    """The system's compiler wrapper, or None; wrappers that pip installed do not count.

    Where the package `mpich` is in this environment, mpi4py loads it: an MPI that the system gets later, by
    chance of another program that needs it, is not to replace half of what runs here.
    """
    chosen = os.environ.get("HALOCLINE_MPI", "")
    if chosen == "package":
        return None
    if chosen:
        raise SystemExit(f"HALOCLINE_MPI is {chosen!r}: expected package; MPICC names another MPI's mpicc")
    named = os.environ.get("MPICC", "")
    if named:
        found = shutil.which(named.split()[0])
        if found is None:
            raise SystemExit(f"MPICC is {named!r}, but there is no such program: correct or unset it")
        return Path(found)
    if has_package():
        return None
    for folder in os.get_exec_path():
        found = shutil.which("mpicc", path=folder) if folder else None
        if found and not any(Path(folder).parent.glob("lib/python3*/site-packages/mpich-*.dist-info")):
            return Path(found)
    return None


def has_package() -> bool:
    """Whether the package `mpich` is installed in this Python's environment."""
    try:
        metadata.distribution("mpich")
    except metadata.PackageNotFoundError:
        return False
    return True


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


def libraries_of(mpicc: Path) -> set[str]:
    """The MPI libraries that a program of this compiler wrapper loads: their files."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "mpi.c", Path(folder) / "mpi"
        source.write_text("#include <mpi.h>\nint main(void) { return MPI_Finalize(); }\n")
        subprocess.run([mpicc, source, "-o", program], check=True, capture_output=True)
        loaded = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return _mpi_libraries(re.findall(r"=> (/\S+)", loaded))


def libraries_of_mpi4py() -> set[str]:
    """The MPI libraries that the mpi4py of this Python loads; none where it does not import."""
    show = (
        "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; "
        "print(open('/proc/self/maps').read())"
    )
    loaded = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True)
    return _mpi_libraries(re.findall(r"(/\S+)$", loaded.stdout, re.MULTILINE))


def _mpi_libraries(paths: list[str]) -> set[str]:
    """Those that are MPI itself, such as libmpi.so.40 and libmpich.so.12, behind their links."""
    return {os.path.realpath(path) for path in paths if re.match(r"libmpi(ch)?\.so", Path(path).name)}


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, list[str]]:
    """Run-time requirements that depend on the MPI (scikit-build-core calls this)."""
    return {"dependencies": [] if system_mpicc() else [PACKAGE]}


def get_requires_for_dynamic_metadata(settings: Mapping[str, Any]) -> list[str]:
    """Build requirements that depend on the MPI (scikit-build-core calls this)."""
    return [] if system_mpicc() else [PACKAGE]


if __name__ == "__main__":
    # one line: "system;<mpicc>" or "package;<include folder>;<libmpi.so.12>"; `--kind`: its first word;
    # `--mpi4py-fits`: status 0 where mpi4py loads the library that the system's mpicc links
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
