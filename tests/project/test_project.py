"""The project around the code: lock files, the choice of an MPI, the files that a build leaves."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from source import ROOT, SOURCE, imports

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def canonical(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~; \[]", requirement)[0]).lower()


# -- dependencies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_lock_files_pin_all_packages_without_urls(name):
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    assert lines
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!]+", line)


def test_the_lock_file_contains_the_declared_dependencies():
    locked = {canonical(line) for line in (ROOT / "requirements.lock").read_text().splitlines()}
    groups = PROJECT["dependency-groups"]
    for requirement in [*PROJECT["project"]["dependencies"], *groups["build"], *groups["test"]]:
        assert canonical(requirement) in locked
    dev = {canonical(line) for line in (ROOT / "requirements-dev.lock").read_text().splitlines()}
    assert {canonical(requirement) for requirement in groups["dev"]} <= dev


def test_imports_and_declared_dependencies_agree():
    declared = {canonical(requirement) for requirement in PROJECT["project"]["dependencies"]}
    extras = {canonical(r) for extra in PROJECT["project"]["optional-dependencies"].values() for r in extra}
    owners = metadata.packages_distributions()
    imported_packages: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        for module in imports(file):
            top = module.partition(".")[0]
            if top != "halocline" and top not in sys.stdlib_module_names:
                packages = {canonical(package) for package in owners.get(top, [top])}
                location = f"{file.relative_to(ROOT)} imports {top}"
                assert packages & (declared | extras), f"{location}, which is not declared"
                if not packages & declared:
                    assert module not in imports(file, at_start_only=True), f"{location}, which may be absent"
                imported_packages |= packages & declared
    assert imported_packages == declared - {"mpich"}  # a library that the engine loads


# -- the build ---------------------------------------------------------------------------------------


def test_native_code_is_compiled_without_flags_that_change_results():
    commands = ROOT / "build" / "native" / "compile_commands.json"
    if not commands.is_file():
        pytest.skip("not built by `make build`")
    ours = [c["command"] for c in json.loads(commands.read_text()) if "/native/src/" in c["file"]]
    assert ours
    for command in ours:
        flags = command.split()
        assert {"-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"} <= set(flags)
        assert not {"-ffast-math", "-Ofast", "-funsafe-math-optimizations"} & set(flags)


def test_headers_of_generated_code_are_in_the_package():
    installed = {
        Path(str(file.locate())).name
        for file in metadata.files("halocline") or []
        if file.parent.as_posix() == "halocline/include/halocline"
    }
    assert {file.name for file in (ROOT / "native/include/halocline").glob("*.h*")} == installed


def test_no_file_contains_merge_conflict_markers():
    folders = ("docs", "src", "native", "tests", "tools", "benchmarks", "examples")
    files = [*ROOT.glob("*.*"), *(file for folder in folders for file in (ROOT / folder).rglob("*.*"))]
    texts = {file: file.read_bytes() for file in files if file.is_file() and "__pycache__" not in file.parts}
    assert len(texts) > 500
    assert [file for file, text in texts.items() if re.search(rb"^(<{7}|[|]{7}|>{7}) ", text, re.M)] == []


def test_make_lists_its_targets():
    help_text = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("build", "run", "test", "test-full", "lint", "bench", "docs", "sanitize", "clean", "help"):
        assert re.search(rf"^  make {target} ", help_text, re.MULTILINE), target


def test_mutants_fit_the_source():
    """The text that each mutant changes occurs in the source."""
    listed = subprocess.run(
        [sys.executable, ROOT / "tools/mutants.py", "--list"], capture_output=True, text=True, check=False
    )
    assert listed.returncode == 0, listed.stderr
    for file in re.findall(r"[\w/]+test_\w+\.py", listed.stdout):
        assert (ROOT / "tests" / file).is_file(), file


def test_missing_tools_are_reported(tmp_path):
    for tool in ("sh", "echo"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    done = subprocess.run(
        [str(tmp_path / "sh"), ROOT / "tools/missing.sh", sys.executable],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["g++", "cmake"]


def test_missing_tools_for_tests_are_reported(tmp_path):
    done = subprocess.run(
        ["sh", ROOT / "tools/missing.sh", sys.executable, "tests"],
        env=os.environ | {"OCL_ICD_VENDORS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "pocl-opencl-icd" in done.stdout.split()
    assert ("clang-19" in done.stdout.split()) == (shutil.which("clang-19") is None)


# -- builds -----------------------------------------------------------------------------------------


def test_the_extra_xarray_opens_stores():
    extra = PROJECT["project"]["optional-dependencies"]["xarray"]
    assert {canonical(requirement) for requirement in extra} == {"xarray", "zarr"}
    for page in ("README.md", "docs/tutorial.md", "docs/how-to/output.md", "docs/how-to/install.md"):
        assert re.search(r"extra.*xarray|xarray.*extra|\[xarray\]", (ROOT / page).read_text()), page


HOOK = "import build_backend; print(*build_backend.get_requires_for_build_{}())"


@pytest.mark.parametrize(
    ("kind", "compiler", "message"),
    [
        ("wheel", None, "neither c++, g++ nor clang++ is on PATH. Install one (Debian: apt-get install g++)"),
        ("editable", "gcc-of-mine", "CXX is 'gcc-of-mine', which is no program on PATH. Install one"),
        ("wheel", sys.executable, ""),
    ],
)
def test_a_build_without_a_compiler_reports_the_package(kind, compiler, message, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "CXX"}
    environment |= {
        "PATH": str(tmp_path),
        "PYTHONPATH": str(ROOT / PROJECT["build-system"]["backend-path"][0]),
    }
    if compiler is not None:
        environment["CXX"] = compiler
    command = [sys.executable, "-c", HOOK.format(kind)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if message else 0), done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert bool(message) == ("Halocline cannot be built without a C++ compiler" in done.stderr)
