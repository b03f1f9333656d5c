"""Libraries of the cache: which one a program uses, for this CPU, for a level, and without a compiler."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from halocline.compile import cxx, driver
from halocline.compile.cxx import LEVEL, VECTORS, Compiler
from halocline.compile.driver import compile_library, library_path
from halocline.compile.processor import LEVELS, levels
from halocline.errors import CompileError

SOURCE = '#include "halocline/abi.h"\nextern "C" int answer() { return 42; }\n'
NO_COMPILER = CompileError("no compiler here")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache."""
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def remove_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no compiler be found."""

    def find() -> Compiler:
        raise NO_COMPILER

    monkeypatch.setattr(driver, "find_compiler", find)


def answer(library: Path) -> int:
    return int(ctypes.CDLL(str(library)).answer())


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="a level of x86-64")
@pytest.mark.parametrize("compiler", ["g++", "zig"])
def test_a_library_for_a_level_has_the_instructions_of_this_level(
    compiler: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("objdump") is None:
        pytest.skip("objdump is not installed")
    monkeypatch.setenv(LEVEL, "3")
    monkeypatch.setenv("CXX", compiler)
    if compiler == "zig" and importlib.util.find_spec("ziglang") is None:
        pytest.skip("the package ziglang is not installed")
    loop = "for (long i = 0; i < n; ++i) a[i] += b[i];"
    source = f'extern "C" void add(double *__restrict a, const double *b, long n) {{ {loop} }}\n'
    # clang prefers vectors of 256 bits
    registers = {"x86-64-v2": "xmm", "x86-64-v3": "ymm", "x86-64-v4": "zmm" if compiler == "g++" else "ymm"}
    for level, register in registers.items():
        library = compile_library(source, target=level)
        command = ["objdump", "--disassemble=add", str(library)]
        code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        widest = [name for name in ("xmm", "ymm", "zmm") if f"%{name}" in code][-1]
        assert widest == register, level


def test_a_machine_with_a_compiler_uses_its_own_libraries(cache: Path) -> None:
    for level in levels():
        assert f"-{level}-" in compile_library(SOURCE, target=level).name
    native = compile_library(SOURCE)
    assert not any(level in native.name for level in levels())
    assert len(list(cache.glob("*.so"))) == 1 + len(levels())


@pytest.mark.parametrize(("variable", "value"), [(LEVEL, "g"), (VECTORS, "64")])
@pytest.mark.usefixtures("cache")
def test_a_library_with_other_settings_is_not_used(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LEVEL, "3")
    with monkeypatch.context() as patch:
        patch.setenv(variable, value)
        compile_library(SOURCE, target=levels()[-1])
    remove_compiler(monkeypatch)
    with pytest.raises(CompileError, match="no compiler here"):
        compile_library(SOURCE)


def test_a_machine_without_a_compiler_uses_any_library_that_it_can_run(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for_level, native = compile_library(SOURCE, target=levels()[-1]), compile_library(SOURCE)
    monkeypatch.setattr(cxx, "GCC_LEVELS", dict.fromkeys(cxx.GCC_LEVELS, ("-DANOTHER",)))
    assert library_path(SOURCE) not in (for_level, native)  # another compiler
    remove_compiler(monkeypatch)
    assert compile_library(SOURCE) == native
    native.unlink()
    assert compile_library(SOURCE) == for_level
    assert answer(for_level) == 42
    monkeypatch.setattr(driver, "levels", tuple)  # another processor
    with pytest.raises(CompileError, match="no compiler here"):
        compile_library(SOURCE)


@pytest.mark.usefixtures("cache")
def test_without_a_library_the_missing_compiler_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    remove_compiler(monkeypatch)
    for target in ("native", *LEVELS):
        with pytest.raises(CompileError, match="no compiler here"):
            compile_library(SOURCE, target=target)


def test_temporary_files_of_compilers_are_removed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR and the caches of zig are folders that do not outlive the compiler."""
    variables_file = cache.parent / "variables_file"
    script = cache.parent / "cxx"
    script.write_text(f'#!/bin/sh\nenv > {variables_file}\nexec g++ "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    compile_library(SOURCE)
    variables = dict(line.partition("=")[::2] for line in variables_file.read_text().splitlines())
    for name in ("TMPDIR", "ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        folder = Path(variables[name])
        assert folder.parent == cache
        assert not folder.exists()
