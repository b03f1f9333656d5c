"""Flags of the C++ compiler: results do not depend on the optimization level or the vector length."""

from __future__ import annotations

import pytest

import bitwise_programs
from halocline.compile import driver
from halocline.compile.driver import LEVEL, VECTOR_BITS, VECTORS, Compiler, find_compiler, library_path
from halocline.errors import CompileError

SAMPLE = ["heat", "fluxes", "holes", "cg-fused"]


def at_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, level)
    assert f"-O{level}" in find_compiler().flags


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
    assert "-O3" in find_compiler().flags


@pytest.mark.parametrize("level", ["2", "fast", "-O3"])
def test_unknown_optimization_levels_are_rejected(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, level)
    with pytest.raises(CompileError, match=f"{LEVEL} is '{level}'; set it to 3 .* or g"):
        library_path("int x;")


@pytest.mark.parametrize("level", driver.GCC_LEVELS)
def test_flags_do_not_change_results(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, level)
    flags = find_compiler().flags
    assert {"-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", f"-O{level}"} <= set(flags)
    assert not [
        f for f in flags if "fast-math" in f or "unsafe" in f or "reciprocal" in f or "associative" in f
    ]


def test_vector_lengths_have_libraries_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "cpu", lambda: "flags : avx512f")
    paths = set()
    for bits in VECTOR_BITS:
        monkeypatch.setenv(VECTORS, str(bits))
        paths.add(library_path("int x;"))
        wide = [flag for flag in find_compiler().flags if "vector-width" in flag]
        assert wide == ([] if bits == 64 else [f"-mprefer-vector-width={bits}"])
    assert len(paths) == len(VECTOR_BITS)


def test_scalar_code_has_no_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VECTORS, "64")
    assert "-fno-tree-vectorize" in Compiler("g++", "g++ 12").flags
    assert "-fno-vectorize" in Compiler("clang++", "clang version 16").flags
    assert "-fno-openmp-simd" in Compiler("clang++", "clang version 16").flags


def test_unknown_vector_lengths_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VECTORS, "96")
    message = f"{VECTORS} is '96'; expected a vector length in bits: 64, 128, 256, 512"
    with pytest.raises(CompileError, match=message):
        library_path("int x;")


def test_vectors_wider_than_those_of_the_cpu_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "cpu", lambda: "flags : sse2 avx avx2")
    monkeypatch.setenv(VECTORS, "256")
    library_path("int x;")
    monkeypatch.setenv(VECTORS, "512")
    with pytest.raises(CompileError, match=r"this CPU has vectors of 256 bits at most; .* 64, 128, 256$"):
        library_path("int x;")
    monkeypatch.setattr(driver, "cpu", lambda: "aarch64")
    assert driver.widest_vector() is None
    library_path("int x;")


def test_bits_do_not_depend_on_the_vector_length(monkeypatch: pytest.MonkeyPatch) -> None:
    (heat,) = [p for p in bitwise_programs.PROBLEMS if p.__name__ == "heat"]
    monkeypatch.setenv(LEVEL, "3")
    results = []
    for bits in ("64", "128"):
        monkeypatch.setenv(VECTORS, bits)
        results.append(heat(bitwise_programs.DTYPES[0], threads=1))
    assert results[0] == results[1]
