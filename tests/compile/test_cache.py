"""Cache of compiled kernels.

Damaged libraries are compiled again, and files that others could have written are not executed. A cache
that cannot be written is one clear error.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import preloaded
from halocline.compile import driver, nvrtc
from halocline.compile.cache import own_folder
from halocline.compile.driver import compile_library
from halocline.errors import CompileError
from halocline.run.tuning.patches import Tuned, remember
from hang import HANG
from suites import cases

SOURCE = '#include "halocline/abi.h"\nextern "C" int answer() { return 42; }\n'
SOLVE = "solve poisson --n 16 --threads 1 --json -"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("HALOCLINE_CACHE", str(folder))
    return folder


def halocline(line: str, *before: str, **environment: str) -> tuple[int, str, str]:
    """Return status, output and error output of a command."""
    command, env = line.split(), {**os.environ, **environment}
    if before:
        command = [*before, *preloaded.COMMAND, *command]
        process = subprocess.run(command, env=env, capture_output=True, text=True, timeout=HANG)
    else:
        process = preloaded.halocline(*command, env=env)
    return process.returncode, process.stdout, process.stderr


def check_error(outcome: tuple[int, str, str], words: str) -> None:
    """Check for exactly one error message without a traceback."""
    status, out, err = outcome
    assert (status, out) == (2, ""), outcome
    assert err.count("error:") == 1, err
    assert "Traceback" not in err
    assert words in err


# -- damage --------------------------------------------------------------------------------------------------


def cut(library: Path) -> None:
    library.write_bytes(library.read_bytes()[: library.stat().st_size // 2])


def zeroed(library: Path) -> None:
    library.write_bytes(bytes(library.stat().st_size))


def foreign(library: Path) -> None:
    """Replace a library by a valid library of another source."""
    library.write_bytes(compile_library(SOURCE.replace("42", "41")).read_bytes())


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda library: library.write_bytes(b""),
    "cut": cut,
    "zeroed": zeroed,
    "foreign": foreign,
    "text": lambda library: library.write_text("this is no library"),
    "writable": lambda library: library.chmod(0o666),
    "without digest": lambda library: library.with_name(f"{library.name}.sha256").unlink(),
    "unreadable digest": lambda library: library.with_name(f"{library.name}.sha256").write_bytes(b"\xff"),
    "dangling": lambda library: (library.unlink(), library.symlink_to("nowhere")),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_library_is_compiled_again(
    cache: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    library = compile_library(SOURCE)
    whole = library.read_bytes()
    shutil.move(library, cache / "aside")  # a loaded library must not change in place
    shutil.copy(cache / "aside", library)
    DAMAGE[damage](library)
    caplog.clear()
    assert compile_library(SOURCE) == library
    assert library.read_bytes() == whole
    assert ctypes.CDLL(str(library)).answer() == 42
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == (damage != "dangling"), caplog.text
    assert all(str(library) in record.getMessage() for record in warnings)
    before = library.stat().st_mtime_ns
    caplog.clear()
    compile_library(SOURCE)
    assert (library.stat().st_mtime_ns, caplog.text) == (before, "")


@pytest.mark.parametrize(
    "damage", ["cut", *(pytest.param(name, marks=pytest.mark.long) for name in ("empty", "zeroed"))]
)
def test_a_solve_survives_damage_of_its_library(cache: Path, damage: str) -> None:
    status, out, err = halocline(SOLVE)
    assert (status, err) == (0, "")
    libraries = list(cache.glob("*.so"))
    for library in libraries:
        DAMAGE[damage](library)
    status, again, err = halocline(f"{SOLVE} --ranks 2")
    assert status == 0, err
    assert err.count("has been rebuilt") == len(
        libraries
    )  # the other ranks use the library of the first rank
    assert json.loads(again)["checksum"] == json.loads(out)["checksum"]
    assert halocline(SOLVE)[::2] == (0, "")


# -- ownership -----------------------------------------------------------------------------------------------


def test_no_library_from_a_folder_writable_by_others_is_loaded(cache: Path) -> None:
    compile_library(SOURCE)
    cache.chmod(0o777)
    with pytest.raises(
        CompileError, match=rf"{cache}, is not used, because it can be written by others \(mode 777\)"
    ):
        compile_library(SOURCE)
    check_error(halocline(SOLVE), f"chmod go-w {cache}")
    status, out, _ = halocline("doctor")
    assert status == 1
    assert "can be written by others" in out
    cache.chmod(0o755)
    assert compile_library(SOURCE).is_file()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_no_library_of_another_user_is_loaded(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    library = compile_library(SOURCE)
    os.chown(library, 12345, -1)
    compile_library(SOURCE)
    assert f"{library} in the cache was invalid and has been rebuilt: it belongs to user 12345" in caplog.text
    assert library.stat().st_uid == 0
    os.chown(cache, 12345, -1)
    check_error(halocline(SOLVE), "belongs to user 12345")
    assert "chmod" not in halocline(SOLVE)[2]  # the command would not help


def test_a_permissive_umask_leaves_nothing_writable_by_others(cache: Path) -> None:
    before = os.umask(0)
    try:
        library = compile_library(SOURCE)
    finally:
        os.umask(before)
    assert not stat.S_IMODE(cache.stat().st_mode) & 0o022
    assert not stat.S_IMODE(library.stat().st_mode) & 0o022
    compiled = library.stat().st_mtime_ns
    assert compile_library(SOURCE).stat().st_mtime_ns == compiled


def test_folders_of_the_cache_are_private_for_any_umask(cache: Path) -> None:
    """Only the owner may write to parent folders, and to folders that are created for other files."""
    before = os.umask(0)
    try:
        remember(cache / "above" / "tuned.json", Tuned((8,), 1.0, 1), "heat")
        own_folder(cache / "machines")
    finally:
        os.umask(before)
    for folder in (cache, cache / "above", cache / "machines"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert not list(cache.rglob("making-*"))
    assert compile_library(SOURCE).is_file()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_a_folder_created_first_by_another_user_is_rejected(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder appears after the first check, before the compiler writes to it."""
    path = driver.library_path(SOURCE)
    cache.mkdir()
    os.chown(cache, 12345, -1)
    monkeypatch.setattr(driver, "library_path", lambda *_, **__: path)
    with pytest.raises(CompileError, match="belongs to user 12345"):
        compile_library(SOURCE)
    assert not list(cache.iterdir())


def test_files_of_killed_compilers_are_removed(cache: Path) -> None:
    compile_library(SOURCE)
    (cache / "making-folder").mkdir()
    (cache / "making-file").touch()
    (cache / "making-now").touch()
    for name in ("making-folder", "making-file"):
        os.utime(cache / name, (1, 1))
    compile_library(SOURCE + "// another\n")
    assert [leftover.name for leftover in cache.glob("making-*")] == ["making-now"]


# -- errors of writing, and compilers that do not compile ----------------------------------------------------


def test_a_folder_in_the_place_of_a_library_is_named(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    library = compile_library(SOURCE)
    library.unlink()
    library.mkdir()
    with pytest.raises(CompileError, match=rf"cannot be written \(Is a directory: {library}\)"):
        compile_library(SOURCE)
    assert caplog.text == ""  # no warning of a repeated compilation


# full at the folder, at the source, or at part of the output
@cases("size", ["4k", "12k", "64k", "160k"], default=["12k"])
def test_a_full_disk_is_one_error(size: str, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    private = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*private, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small file system")
    mount = f'mount -t tmpfs -o size={size} tmpfs {small} && exec "$@"'
    outcome = halocline(SOLVE, *private, "sh", "-c", mount, "sh", HALOCLINE_CACHE=str(small / "cache"))
    check_error(outcome, "No space left on device")


@pytest.mark.parametrize(
    ("compiler", "words"),
    [
        ("/bin/true", "ended without an error, but its library"),
        ("/bin/false", "does not run"),
        ("/nonexistent", "not a program on PATH"),
        ("/etc/passwd", "not a program on PATH"),
    ],
)
def test_a_compiler_without_output_is_one_error(cache: Path, compiler: str, words: str) -> None:
    check_error(halocline(SOLVE, CXX=compiler), words)
    assert not list(cache.glob("*.so"))


def test_a_compiler_without_version_text_is_accepted(cache: Path, tmp_path: Path) -> None:
    compiler = tmp_path / "mute"
    compiler.write_text('#!/bin/sh\ntest "$1" = --version || exec g++ "$@"\n')
    compiler.chmod(0o755)
    assert halocline(SOLVE, CXX=str(compiler))[0] == 0


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.long), 2])
def test_a_warm_cache_needs_no_compiler(cache: Path, ranks: int) -> None:
    line = f"{SOLVE} --ranks {ranks}"
    status, out, _ = halocline(line)
    assert status == 0
    # a new process has other hashes of names, which must not matter
    status, again, err = halocline(line, "env", CXX="/nonexistent")
    assert (status, err) == (0, "")
    assert json.loads(again)["checksum"] == json.loads(out)["checksum"]
    for library in cache.glob("*.so"):
        DAMAGE["cut"](library)
    outcome = halocline(line, CXX="/nonexistent")
    assert outcome[0] == 2
    assert "no C++ compiler" in outcome[2]
    assert "anew" not in outcome[2]


def test_a_warm_cache_needs_no_nvrtc(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = 'extern "C" __global__ void nothing() {}\n'
    code = nvrtc.compile_cuda(kernel, "sm_80")

    def missing(*_: object) -> None:
        raise CompileError("no NVRTC")

    monkeypatch.setattr(nvrtc, "find_nvrtc", missing)
    assert nvrtc.compile_cuda(kernel, "sm_80") == code
    with pytest.raises(CompileError, match="no NVRTC"):
        nvrtc.compile_cuda(kernel, "sm_90")
    cut(code)
    with pytest.raises(CompileError, match="no NVRTC"):
        nvrtc.compile_cuda(kernel, "sm_80")
