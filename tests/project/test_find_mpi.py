"""The MPI that Halocline is built with, and its agreement with the MPI of the installed mpi4py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hang import HANG

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "native" / "cmake" / "find_mpi.py"


def find(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *options],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HANG,
    )


@pytest.fixture
def in_use() -> tuple[Path, Path]:
    """Return the folder of headers, and the library of the MPI that mpi4py loads on this machine."""
    kind, *rest = find().stdout.strip().split(";")
    if kind != "package":
        pytest.skip("this environment uses the system's MPI")
    return Path(rest[0]), Path(rest[1])


def wrapper(folder: Path, headers: Path, library: Path) -> str:
    """Write a compiler wrapper, as an MPI of the system has one."""
    path = folder / "mpicc"
    path.write_text(f'#!/bin/sh\nexec gcc "$@" -I{headers} {library} -Wl,-rpath,{library.parent}\n')
    path.chmod(0o755)
    return str(path)


def test_the_wheel_of_mpi4py_is_used_for_the_mpi_that_it_loads(
    tmp_path: Path, in_use: tuple[Path, Path]
) -> None:
    mpicc = wrapper(tmp_path, *in_use)
    assert find("--kind", MPICC=mpicc).stdout == "system\n"
    assert find("--mpi4py-fits", MPICC=mpicc).returncode == 0


def test_another_mpi_needs_another_mpi4py(tmp_path: Path, in_use: tuple[Path, Path]) -> None:
    headers, _ = in_use
    (tmp_path / "other.c").write_text("int MPI_Finalize(void) { return 0; }\n")
    other = tmp_path / "libmpi.so.40"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.40", tmp_path / "other.c", "-o", other], check=True
    )
    assert find("--mpi4py-fits", MPICC=wrapper(tmp_path, headers, other)).returncode == 1


def test_without_a_system_mpi_the_wheel_is_not_checked(tmp_path: Path, in_use: tuple[Path, Path]) -> None:
    assert find("--mpi4py-fits").returncode == 0


def test_an_environment_keeps_the_package_if_a_system_mpi_appears(
    tmp_path: Path, in_use: tuple[Path, Path]
) -> None:
    mpicc = wrapper(tmp_path, *in_use)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    assert find("--kind", PATH=path).stdout == "package\n"
    assert find("--kind", PATH=path, MPICC=mpicc).stdout == "system\n"


def test_the_package_is_used_on_request(tmp_path: Path) -> None:
    (tmp_path / "mpicc").write_text("#!/bin/sh\n")
    (tmp_path / "mpicc").chmod(0o755)
    environment = {**os.environ, "PATH": str(tmp_path), "MPICC": ""}
    for variable, kind in (("", "system\n"), ("package", "package\n")):
        done = subprocess.run(
            [sys.executable, "-S", SCRIPT, "--kind"],  # without packages
            env={**environment, "HALOCLINE_MPI": variable},
            capture_output=True,
            text=True,
        )
        assert done.stdout == kind, done.stderr
    result = find(HALOCLINE_MPI="openmpi")
    assert result.returncode == 1
    assert "HALOCLINE_MPI is 'openmpi': expected package" in result.stderr


def test_a_missing_wrapper_is_reported() -> None:
    result = find(MPICC="/nonexistent/mpicc")
    assert result.returncode == 1
    assert "MPICC is '/nonexistent/mpicc', but there is no such program" in result.stderr
