"""MPI library in use: its launcher, its mpiexec, and conflicts between libraries."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from halocline.errors import RunError
from halocline.run.ranks.launch import mpiexec
from halocline.run.ranks.library import Launcher, environment_without_launcher, is_foreign, launcher

FOUR = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"}

# -- communicators -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"PMI_RANK": "3", "PMI_SIZE": "8"}, Launcher("PMI", 3, 8)),
        (FOUR | {"PMIX_RANK": "0"}, Launcher("Open MPI", 0, 4)),
        ({"PMIX_RANK": "2", "PMIX_SERVER_URI41": "prte.1;tcp4://"}, Launcher("PMIx", 2, None)),
        ({"PMIX_RANK": "2"}, None),  # inherited from the environment
        (
            {"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4"},
            Launcher("Slurm", 1, 4),
        ),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, None),  # the batch script, not a step
        ({"PMI_RANK": "", "PMI_SIZE": "8"}, None),
    ],
)
def test_launcher_is_read_from_the_environment(environment, expected):
    assert launcher(environment) == expected


# -- one MPI library ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "environment", "foreign"),
    [
        ("/a/libmpi.so.12", FOUR, True),
        ("/a/libmpi.so.12", FOUR | {"OMPI_COMM_WORLD_SIZE": "1"}, False),
        ("/a/libmpi.so.12", FOUR | {"PMI_RANK": "0", "PMI_SIZE": "2"}, False),
        ("/a/libmpi.so.40", FOUR, False),
        ("/a/libmpi.so.40", {"PMI_RANK": "0", "PMI_SIZE": "2"}, True),
        ("/a/libmpi.so.40", {"PMI_RANK": "0", "PMI_SIZE": "2", "SLURM_PROCID": "0"}, False),
        ("/a/libmpi.so.1", FOUR, False),
    ],
)
def test_a_foreign_launcher_is_known_by_its_variables(library, environment, foreign):
    assert is_foreign(library, environment) == foreign


def program(path: Path, target: str | None = None) -> Path:
    """Return an executable file, or a link to an executable with the given name in the same folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if target is not None:
        path.symlink_to(program(path.with_name(target)))
    else:
        path.write_text("#!/bin/sh\nexit 9\n")
        path.chmod(0o755)
    return path


@pytest.fixture
def no_path(tmp_path, monkeypatch):
    """Return the only folder on PATH; the programs of the system are hidden."""
    find = shutil.which

    def only_here(name, path=None):
        path_found = find(name, path=path)
        return path_found if path_found is not None and Path(path_found).is_relative_to(tmp_path) else None

    monkeypatch.setattr("halocline.run.ranks.library.shutil.which", only_here)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path / "path"


def test_the_mpiexec_closest_to_the_library_is_used(tmp_path, no_path):
    """The mpiexec closest to the library is selected, whatever its name."""
    environment, system = tmp_path / "usr" / "venv", tmp_path / "usr"
    library = environment / "lib" / "libmpi.so.12"
    program(no_path / "mpiexec.mpich")
    program(system / "bin" / "mpiexec.mpich")
    assert mpiexec(library) == system / "bin" / "mpiexec.mpich"
    program(environment / "bin" / "mpiexec")
    assert mpiexec(library) == environment / "bin" / "mpiexec"
    program(environment / "bin" / "mpiexec.mpich")
    assert mpiexec(library) == environment / "bin" / "mpiexec.mpich"
    assert mpiexec(system / "lib" / "gnu" / "libmpich.so.12") == system / "bin" / "mpiexec.mpich"


@pytest.mark.parametrize(
    ("name", "right_target", "wrong_target"),
    [("libmpi.so.12", "mpiexec.hydra", "mpiexec.openmpi"), ("libmpi.so.12", "mpiexec.hydra", "prterun"),
     ("libmpi.so.40", "prterun", "mpiexec.hydra"), ("libmpi.so.40", "orterun", "mpiexec.mpich")],
)  # fmt: skip
def test_the_mpiexec_of_another_mpi_is_not_used(tmp_path, no_path, name, right_target, wrong_target):
    library = tmp_path / "usr" / "lib" / name
    wrong = program(library.parents[1] / "bin" / "mpiexec", wrong_target)
    words = "belongs to a different MPI than the library in use"
    with pytest.raises(RunError, match=f"{re.escape(str(wrong))} {words}"):
        mpiexec(library)
    right = program(no_path / "mpiexec", right_target)
    assert mpiexec(library) == right


def test_a_missing_mpiexec_is_reported(tmp_path, no_path):
    with pytest.raises(RunError, match="no mpiexec is installed next to the MPI library"):
        mpiexec(tmp_path / "lib" / "libmpi.so.12")


def test_the_variables_of_a_launcher_of_one_process_are_not_inherited():
    """The variables that `srun --pty` sets for a shell are removed."""
    kept_variables = {"PATH": "/bin", "OMPI_MCA_x": "1"}
    step = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_JOB_ID": "7", "PMIX_RANK": "0"}
    assert environment_without_launcher(step | kept_variables) == kept_variables
    assert environment_without_launcher({"PMI_RANK": "0", "PMI_SIZE": "1"} | kept_variables) == kept_variables
    batch = {"SLURM_PROCID": "0", "SLURM_JOB_ID": "7"} | kept_variables
    assert environment_without_launcher(batch) == batch
    several = {"PMI_RANK": "0", "PMI_SIZE": "2"} | kept_variables
    assert environment_without_launcher(several) == several
