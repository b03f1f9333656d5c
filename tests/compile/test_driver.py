"""Flags of the C++ compiler: no bit depends on the optimization level, which the environment selects."""

from __future__ import annotations

import pytest

import bitwise_programs
from halocline.compile import driver
from halocline.compile.driver import LEVEL, find_compiler, library_path
from halocline.errors import CompileError

SAMPLE = ["heat", "fluxes", "holes", "cg-fused"]


def at_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, level)
    assert f"-O{level}" in find_compiler().flags


@pytest.mark.parametrize("name", [
    pytest.param(p.__name__, marks=[] if p.__name__ in SAMPLE else pytest.mark.long)
    for p in bitwise_programs.PROBLEMS
])  # fmt: skip
def test_no_bit_depends_on_the_optimization_level(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_other_levels_are_rejected(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, level)
    with pytest.raises(CompileError, match=f"{LEVEL} is '{level}'; set it to 3 .* or g"):
        library_path("int x;")


@pytest.mark.parametrize("level", driver.GCC_LEVELS)
def test_flags_change_no_results(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, level)
    flags = find_compiler().flags
    assert {"-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", f"-O{level}"} <= set(flags)
    assert not [
        f for f in flags if "fast-math" in f or "unsafe" in f or "reciprocal" in f or "associative" in f
    ]
