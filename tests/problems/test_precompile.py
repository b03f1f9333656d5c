"""Compilation for other machines: a run later compiles nothing itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from halocline.cli.app import run as command
from halocline.compile.nvrtc import find_nvrtc
from halocline.compile.processor import LEVELS, levels
from halocline.errors import CompileError, InputError
from halocline.problems.precompile import check_target, compile_for
from halocline.problems.problem import Problem
from halocline.run.fields import pointwise
from hang import HANG
from loops import some
from suites import cases

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache."""
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@cases("name", ["heat", "poisson", "wave", "orszag-tang", "convection"], default=["heat", "poisson"])
def test_a_machine_without_a_compiler_runs_what_was_compiled_for_its_level(
    name: str, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    level = levels()[-1]
    ((target, files),) = compile_for(Problem(name, [12]), [level])
    assert target == level
    assert files
    assert all(f"-{level}-" in file.name for file in files)
    for file in cache.glob("*"):  # of the trial run
        if f"-{level}-" not in file.name:
            file.unlink()
    monkeypatch.setenv("CXX", "/nowhere/c++")
    run = ["run", name, "--n", "12", "--steps", "3", "--threads", "2"]
    assert command(run) == 0
    monkeypatch.setattr(pointwise, "MOST_WORK", -1)  # large grids also compile the initial values
    assert command(run) == 0
    assert capsys.readouterr().out.count("checksum") == 2


@pytest.mark.parametrize("name", ["heat", "poisson"])
def test_compiled_steps_do_not_depend_on_the_number_of_cells(
    name: str, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(compile_for(Problem(name, [12]), [levels()[-1]]))
    for file in cache.glob("*"):  # of the trial run
        if f"-{levels()[-1]}-" not in file.name:
            file.unlink()
    monkeypatch.setenv("CXX", "/nowhere/c++")
    assert command(["run", name, "--n", "16", "--steps", "3", "--threads", "2"]) == 0
    assert "checksum" in capsys.readouterr().out


PROGRAM = """
import sys
import cuda_standin
if not cuda_standin.real_devices():
    cuda_standin.load(1)
from halocline.plan import launches
from halocline.problems.precompile import cuda_source
from halocline.problems.problem import Problem
from halocline.run.devices import devices

name, launches.LITERAL_CELLS = sys.argv[1], int(sys.argv[2])
sources, compile_cuda = [], devices.compile_cuda


def recording(source, architecture):
    sources.append(source)
    return compile_cuda(source, architecture)


devices.compile_cuda = recording
problem = Problem(name, [16])
problem.run(steps=1, device="cuda")
print(cuda_source(problem) in sources)
"""


@pytest.mark.parametrize("literal_cells", [1, 2**20])
@cases("name", ["heat", "wave", "orszag-tang"], default=["heat"])
def test_a_run_on_a_device_uses_the_compiled_source(name: str, literal_cells: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    arguments = [sys.executable, "-c", PROGRAM, name, str(literal_cells)]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=HANG)
    assert done.stdout.split()[-1:] == ["True"], done.stderr


def test_code_for_cuda_devices_needs_no_device(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        find_nvrtc()
    except CompileError as error:
        pytest.skip(str(error))
    assert command(["compile", "heat", "--n", "16", "--target", "sm_90"]) == 0
    (code,) = cache.glob("*.cubin")
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("sm_90: 1 file of compiled code, ")
    assert second == f"in {code.parent}"


def test_ranks_are_rejected_for_cpus() -> None:
    with pytest.raises(InputError, match=r"--ranks 4 has an effect only on CUDA targets, such as sm_90\."):
        command(["compile", "heat", "--n", "16", "--ranks", "4"])


@pytest.mark.parametrize("target", ["x86-64-v9", "sm_", "", "zen3"])
def test_unknown_targets_are_rejected(target: str) -> None:
    with pytest.raises(InputError, match=rf"target '{target}' is unknown on this machine; expected native, "):
        check_target(target)


def test_targets_of_other_architectures_are_rejected() -> None:
    for name in some([name for name, level in LEVELS.items() if level.machine != os.uname().machine]):
        with pytest.raises(InputError, match="is unknown on this machine"):
            check_target(name)
