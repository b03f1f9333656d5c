"""MPI library that a process selects, and libraries that the engine rejects."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from halocline.errors import InputError, RunError
from halocline.native import native
from halocline.run.host import mpi_library as selection
from halocline.run.host.mpi_library import kind_of, launcher_kind, mpi_library, selected_library
from hang import HANG

FOUR = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"}
PMI = {"PMI_RANK": "1", "PMI_SIZE": "2"}


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the library of the package mpich, in an environment that has nothing else."""
    library = tmp_path / "env" / "lib" / "libmpi.so.12"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(selection, "packaged_library", lambda: library)
    return library


@pytest.fixture
def install(tmp_path: Path) -> Callable[[str, str, str], Path]:
    """Return a function that makes a library and its mpiexec, and returns the library."""

    def make(folder: str, program: str, library: str) -> Path:
        prefix = tmp_path / folder
        for file in (prefix / "bin" / program, prefix / library):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o755)
        link = prefix / "bin" / "mpiexec"
        if not link.exists():
            link.symlink_to(program)
        return prefix / library

    return make


def test_a_machine_without_mpi_uses_the_package(packaged: Path) -> None:
    assert selected_library({"PATH": "/nowhere", "LD_LIBRARY_PATH": ""}) == packaged


def test_the_mpi_of_the_system_has_precedence(
    packaged: Path, install: Callable[..., Path], tmp_path: Path
) -> None:
    openmpi = install("opt", "prterun", "lib/libmpi.so.40")
    mpich = install("usr", "mpiexec.hydra", "lib64/libmpi.so.12")
    path = [str(tmp_path / folder / "bin") for folder in ("opt", "usr")]
    assert selected_library({"PATH": ":".join(path)}) == openmpi
    assert selected_library({"PATH": ":".join(reversed(path))}) == mpich
    assert selected_library({"PATH": "", "LD_LIBRARY_PATH": f":{mpich.parent}"}) == mpich
    for environment, library in ((FOUR, openmpi), (PMI, mpich)):
        assert selected_library(environment | {"PATH": ":".join(path)}) == library
        assert selected_library(environment | {"PATH": ":".join(reversed(path))}) == library


def test_the_launcher_selects_the_package_if_the_system_has_another_kind(
    packaged: Path, install: Callable[..., Path], tmp_path: Path
) -> None:
    openmpi = install("opt", "orterun", "lib/libmpi.so.40")
    path = {"PATH": str(tmp_path / "opt" / "bin")}
    assert selected_library(path) == openmpi
    assert selected_library(path | PMI) == packaged
    assert selected_library(path | {"HALOCLINE_MPI": "package"}) == packaged


def test_an_mpiexec_that_pip_installed_is_not_of_the_system(
    packaged: Path, install: Callable[..., Path], tmp_path: Path
) -> None:
    install("env", "mpiexec.hydra", "lib/libmpi.so.12")
    (tmp_path / "env/lib/python3.11/site-packages/mpich-5.0.2.dist-info").mkdir(parents=True)
    assert (
        selected_library({"PATH": str(tmp_path / "env" / "bin"), "LD_LIBRARY_PATH": str(packaged.parent)})
        == packaged
    )
    assert [*selection.system_libraries({"PATH": str(tmp_path / "env" / "bin")})] == []


@pytest.mark.parametrize("library", ["lib/libmpi.so.12", "lib64/libmpi.so.12", "lib/release/libmpi.so.12"])
def test_libraries_lie_in_folders_of_their_mpiexec(
    library: str, packaged: Path, install: Callable[..., Path], tmp_path: Path
) -> None:
    expected = install("opt", "mpiexec.hydra", library)
    assert selected_library({"PATH": str(tmp_path / "opt" / "bin")}) == expected


def test_a_variable_selects_a_library(
    packaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libmpi.so.40"
    library.touch()
    monkeypatch.chdir(tmp_path)
    assert selected_library({"HALOCLINE_MPI": "libmpi.so.40"}) == library
    assert selected_library({"HALOCLINE_MPI": str(library)}) == library
    assert selected_library({"MPI4PY_LIBMPI": str(library)}) == library
    # mpi4py also accepts folders, and several paths
    assert selected_library({"MPI4PY_LIBMPI": f"{tmp_path / 'absent'}:{tmp_path}"}) == library
    for variable, rest in (("HALOCLINE_MPI", ", or package"), ("MPI4PY_LIBMPI", "")):
        with pytest.raises(
            InputError,
            match=f"{variable} is 'mpicc', but this file does not exist. Set it to the path of an MPI "
            rf"library, such as /usr/lib/libmpi\.so\.40{rest}$",
        ):
            selected_library({variable: "mpicc"})


def test_a_missing_library_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "packaged_library", lambda: None)
    for environment, problem in (
        ({}, "the system has none"),
        ({"HALOCLINE_MPI": "package"}, "HALOCLINE_MPI is package"),
    ):
        with pytest.raises(RunError, match=f"^no MPI library: {problem}, .*; pip install mpich$"):
            selected_library({"PATH": "/nowhere"} | environment)


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        ({}, None), (FOUR, "Open MPI"), (PMI, "MPICH"), (FOUR | PMI, None),
        (FOUR | {"SLURM_PROCID": "0"}, None), (FOUR | {"OMPI_COMM_WORLD_SIZE": "1"}, None),
    ],
)  # fmt: skip
def test_the_kind_of_a_launcher(environment: dict[str, str], kind: str | None) -> None:
    assert launcher_kind(environment) == kind


def test_the_kind_of_a_library(tmp_path: Path) -> None:
    link = tmp_path / "libmpi.so"
    link.symlink_to(tmp_path / "libmpi.so.40.30.4")
    assert kind_of(link) == "Open MPI"
    kinds = {"/a/libmpi.so.12": "MPICH", "libmpich.so.12.2.2": "MPICH", "/b/libmpi.so.40": "Open MPI"}
    assert {name: kind_of(name) for name in kinds} == kinds
    assert kind_of("/a/libmpi_abi.so.1") is None


ENGINE = """
import sys
from halocline.native import native
for path in sys.argv[1:]:
    try:
        native().load_mpi(path)
    except RuntimeError as error:
        print(error)
print(native().mpi_library())
"""


def test_the_engine_uses_one_library(tmp_path: Path) -> None:
    """The engine reports files that are no MPI library, and keeps the first library that it has loaded."""
    library, text = mpi_library(), tmp_path / "text"
    text.write_text("no library\n")
    files = [str(tmp_path / "none"), str(text), str(native().__file__), library, library, "/other/libmpi.so"]
    done = subprocess.run(
        [sys.executable, "-c", ENGINE, *files], capture_output=True, text=True, timeout=HANG, check=True
    )
    missing, wrong, no_mpi, second, in_use = done.stdout.splitlines()
    assert missing.startswith(f"the MPI library {files[0]} cannot be loaded: ")
    assert wrong.startswith(f"the MPI library {text} cannot be loaded: ")
    assert no_mpi.startswith(f"{files[2]} is not a usable MPI library: it has no MPI_")
    assert (
        second == f"the engine already uses the MPI library {library}, so that it cannot use /other/libmpi.so"
    )
    assert in_use == library


IMPORTS = """
from mpi4py import MPI
from halocline.errors import RunError
from halocline.run.ranks.library import initialised_mpi
try:
    initialised_mpi()
except RunError as error:
    print(error)
"""


def test_a_library_that_mpi4py_does_not_use_is_reported(tmp_path: Path) -> None:
    """A program that imports mpi4py.MPI first may use another library than HALOCLINE_MPI selects."""
    other = tmp_path / "libmpi.so.12"
    other.touch()
    environment = {**os.environ, "MPI4PY_LIBMPI": mpi_library(), "HALOCLINE_MPI": str(other)}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=True,
    )
    assert done.stdout.startswith(f"HALOCLINE_MPI selects {other}, but mpi4py uses "), done.stderr


def test_a_file_that_is_no_library_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "libmpi.so.40"
    file.write_text("no library")
    for path in (str(file), str(native().__file__)):
        with pytest.raises(
            RunError, match=r"is not a usable MPI library .* Set HALOCLINE_MPI to another one$"
        ):
            selection.opened(path, "MPI_Init")
