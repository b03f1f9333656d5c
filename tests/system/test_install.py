"""A wheel contains all required files, and works in an environment of its own, without the source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hang import HANG

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.long


def run(*command: str | Path, cwd: Path) -> str:
    """Return the output of a command, run without the variables of the tests' own environment."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    run(*pip, f"--config-settings=build-dir={folder / 'build'}", "--wheel-dir", folder, ROOT, cwd=folder)
    (file,) = folder.glob("halocline-*.whl")
    return file


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new environment with the versions of the lock file and the wheel."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    run("make", f"VENV={folder}", f"PYTHON={sys.executable}", folder / "installed", cwd=ROOT)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", wheel, cwd=folder)
    run(folder / "bin" / "python", "-m", "pip", "check", cwd=folder)
    return folder


def test_pip_without_a_compiler_reports_the_package(tmp_path):
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "CXX"))}
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    done = subprocess.run(
        command,
        env=variables | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr.count("Install one (Debian: apt-get install g++)") == 1
    assert "Traceback" not in done.stderr


def test_the_wheel_contains_all_runtime_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        commit = archive.read("halocline/commit.txt").decode().strip()
    assert any(name.startswith("halocline/_native.") and name.endswith(".so") for name in names)
    packaged = {Path(name).name for name in names if name.startswith("halocline/include/halocline/")}
    assert packaged == {file.name for file in (ROOT / "native/include/halocline").glob("*.h*")}
    assert "abi.h" in packaged
    assert "halocline/papers/data/umbc-3.1.csv" in names
    assert {name.partition("/")[0] for name in names} <= {
        "halocline",
        f"{'-'.join(wheel.name.split('-')[:2])}.dist-info",
    }
    if (ROOT / ".git").exists():
        assert run("git", "rev-parse", "HEAD", cwd=ROOT).startswith(commit.removesuffix("+"))
        assert len(commit) >= 7


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_wheel_works_from_another_folder(environment, tmp_path, ranks):
    location = run(
        environment / "bin" / "python", "-c", "import halocline; print(halocline.__file__)", cwd=tmp_path
    )
    assert Path(location).is_relative_to(environment)
    halocline = environment / "bin" / "halocline"
    record = json.loads(
        run(halocline, *f"solve poisson --n 32 --ranks {ranks} --threads 1 --json -".split(), cwd=tmp_path)
    )
    assert (record["n"], record["ranks"], record["converged"]) == (32, ranks, True)
