"""C++ compiler: results do not depend on it, the optimization level or the vector length."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

import bitwise_programs
from halocline.compile import cxx, processor
from halocline.compile.cxx import LEVEL, VECTOR_BITS, VECTORS, Compiler, find_compiler
from halocline.compile.driver import library_path
from halocline.errors import CompileError
from loops import some

SAMPLE = ["heat", "fluxes", "holes", "cg-fused"]


def at_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, level)
    assert f"-O{level}" in find_compiler().flags()


@pytest.mark.parametrize("name", [
    pytest.param(p.__name__, marks=[] if p.__name__ in SAMPLE else pytest.mark.long)
    for p in bitwise_programs.PROBLEMS
])  # fmt: skip
def test_bits_do_not_depend_on_the_optimization_level(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (problem,) = [p for p in bitwise_programs.PROBLEMS if p.__name__ == name]
    results = []
    for level in "3g":
        at_level(level, monkeypatch)
        results.append(
            [problem(dtype, threads=1) for dtype in bitwise_programs.DTYPES[: 1 + (name == "heat")]]
        )
    assert results[0] == results[1]
    assert all(result.checksums for result in results[0])


def test_each_level_has_libraries_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, "g")
    fast_to_compile = library_path("int x;")
    monkeypatch.setenv(LEVEL, "3")
    assert library_path("int x;") != fast_to_compile
    monkeypatch.delenv(LEVEL)
    assert library_path("int x;") != fast_to_compile
    assert "-O3" in find_compiler().flags()


@pytest.mark.parametrize("level", ["2", "fast", "-O3"])
def test_unknown_optimization_levels_are_rejected(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, level)
    with pytest.raises(CompileError, match=f"{LEVEL} is '{level}'; set it to 3 .* or g"):
        library_path("int x;")


@pytest.mark.parametrize("level", cxx.GCC_LEVELS)
def test_flags_do_not_change_results(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, level)
    flags = find_compiler().flags()
    assert {"-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", f"-O{level}"} <= set(flags)
    assert not [
        f for f in flags if "fast-math" in f or "unsafe" in f or "reciprocal" in f or "associative" in f
    ]


def test_vector_lengths_have_libraries_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "cpu", lambda: "flags : avx512f")
    paths = set()
    for bits in VECTOR_BITS:
        monkeypatch.setenv(VECTORS, str(bits))
        paths.add(library_path("int x;"))
        wide = [flag for flag in find_compiler().flags() if "vector-width" in flag]
        assert wide == ([] if bits == 64 else [f"-mprefer-vector-width={bits}"])
    assert len(paths) == len(VECTOR_BITS)


def test_scalar_code_has_no_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VECTORS, "64")
    assert "-fno-tree-vectorize" in Compiler(("g++",), "g++ 12").flags()
    assert "-fno-vectorize" in Compiler(("clang++",), "clang version 16").flags()
    assert "-fno-openmp-simd" in Compiler(("clang++",), "clang version 16").flags()


def test_unknown_vector_lengths_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VECTORS, "96")
    message = f"{VECTORS} is '96'; expected a vector length in bits: 64, 128, 256, 512"
    with pytest.raises(CompileError, match=message):
        library_path("int x;")


def test_vectors_wider_than_those_of_the_cpu_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "cpu", lambda: "flags : sse2 avx avx2")
    monkeypatch.setenv(VECTORS, "256")
    library_path("int x;")
    monkeypatch.setenv(VECTORS, "512")
    with pytest.raises(CompileError, match=r"this CPU has vectors of 256 bits at most; .* 64, 128, 256$"):
        library_path("int x;")
    monkeypatch.setattr(processor, "cpu", lambda: "aarch64")
    assert processor.widest_vector() is None
    library_path("int x;")


def test_bits_do_not_depend_on_the_vector_length(monkeypatch: pytest.MonkeyPatch) -> None:
    (heat,) = [p for p in bitwise_programs.PROBLEMS if p.__name__ == "heat"]
    monkeypatch.setenv(LEVEL, "3")
    results = []
    for bits in ("64", "128"):
        monkeypatch.setenv(VECTORS, bits)
        results.append(heat(bitwise_programs.DTYPES[0], threads=1))
    assert results[0] == results[1]


# -- other compilers -----------------------------------------------------------------------------------------


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder on PATH with programs that report a version."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def program(path: Path) -> str:
    path.write_text(f'#!/bin/sh\necho {path.name} of the test "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_cxx_may_be_a_name_a_path_with_spaces_or_several_words(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, spaced, ccache = (program(programs / name) for name in ("plain++", "two words", "ccache"))
    for value, command in (
        ("plain++", (plain,)),
        (spaced, (spaced,)),
        ("ccache g++", (ccache, "g++")),
        (f"ccache '{spaced}'", (ccache, spaced)),
    ):
        monkeypatch.setenv("CXX", value)
        compiler = find_compiler()
        assert compiler.command == command
        assert compiler.version == " ".join([Path(command[0]).name, "of the test", *command[1:], "--version"])


@pytest.mark.parametrize("value", ["no-such++", "no-such++ --flag", "unbalanced '"])
def test_a_value_of_cxx_that_is_no_program_is_rejected(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", value)
    with pytest.raises(CompileError, match=r"^no C\+\+ compiler: CXX is .*, which is not a program on PATH"):
        find_compiler()


def test_zig_compiles_without_a_standard_library(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`zig c++` would first build its own standard library, which takes minutes."""
    zig = program(programs / "zig")
    for value in ("zig", zig, "zig c++"):
        monkeypatch.setenv("CXX", value)
        assert find_compiler().command == (zig, "cc")


def test_the_package_ziglang_is_the_last_choice(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zig = program(programs / "zig")
    monkeypatch.setattr(cxx, "_zig", lambda: (zig,))
    monkeypatch.delenv("CXX", raising=False)
    assert find_compiler().command != (zig, "cc")
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_compiler().command == (zig, "cc")


def further_compilers() -> list[str]:
    """Return the compilers of this machine that are not g++."""
    names = [name for name in ("clang++", "clang++-19") if shutil.which(name)][:1]
    return names + ["zig"] * (importlib.util.find_spec("ziglang") is not None)


@pytest.mark.parametrize("name", [
    pytest.param(p.__name__, marks=[] if p.__name__ in ("heat", "cg-fused") else pytest.mark.long)
    for p in bitwise_programs.PROBLEMS
])  # fmt: skip
def test_bits_do_not_depend_on_the_compiler(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not further_compilers():
        pytest.skip("neither clang++ nor the package ziglang is installed")
    (problem,) = [p for p in bitwise_programs.PROBLEMS if p.__name__ == name]
    expected = [problem(dtype, threads=1) for dtype in bitwise_programs.DTYPES]
    for compiler in some(further_compilers()):
        monkeypatch.setenv("CXX", compiler)
        assert "clang" in find_compiler().version
        assert [problem(dtype, threads=1) for dtype in bitwise_programs.DTYPES] == expected, compiler


def test_the_target_limits_the_length_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cxx, "widest_vector", lambda: 256)
    monkeypatch.setenv(VECTORS, "512")
    assert cxx.vector_bits("x86-64-v4") == 512
    with pytest.raises(CompileError, match=r"'512', but x86-64-v3 has vectors of 256 bits at most"):
        cxx.vector_bits("x86-64-v3")
