"""Instruction sets of this CPU: the levels agree with what the compiler finds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from halocline.compile import processor
from halocline.compile.processor import LEVELS, SIMD, levels, widest_vector
from hang import HANG

ZEN3 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
SKYLAKE = f"{ZEN3} avx512bw avx512cd avx512dq avx512f avx512vl"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (SKYLAKE, ("x86-64-v4", "x86-64-v3", "x86-64-v2")),
        (ZEN3, ("x86-64-v3", "x86-64-v2")),
        (ZEN3.replace(" fma", ""), ("x86-64-v2",)),
        ("sse2", ()),
    ],
)
def test_levels_follow_from_the_flags(
    flags: str, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "cpu", lambda: f"model : 1\nflags : {flags}")
    monkeypatch.setattr(processor.os, "uname", lambda: os.uname_result(("", "", "", "", "x86_64")))
    assert levels() == expected


def test_levels_belong_to_the_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "cpu", lambda: f"Features : fp asimd {SKYLAKE}")
    monkeypatch.setattr(processor.os, "uname", lambda: os.uname_result(("", "", "", "", "aarch64")))
    assert levels() == ("armv8-a",)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="g++ knows the levels of x86-64 only")
def test_levels_agree_with_the_compiler(tmp_path: Path) -> None:
    """`__builtin_cpu_supports` asks the processor itself, and does not read /proc/cpuinfo."""
    names = [name for name in LEVELS if name.startswith("x86")]
    tests = "".join(f'  if (__builtin_cpu_supports("{name}")) puts("{name}");\n' for name in names)
    source, program = tmp_path / "levels.cpp", tmp_path / "levels"
    source.write_text(f"#include <cstdio>\nint main() {{\n{tests}}}\n")
    subprocess.run(["g++", str(source), "-o", str(program)], check=True, timeout=HANG)
    output = subprocess.run([str(program)], capture_output=True, text=True, check=True, timeout=HANG).stdout
    assert tuple(output.split()) == levels()


def test_the_best_level_has_the_widest_vectors() -> None:
    known = [LEVELS[name].vector_bits for name in levels()]
    assert known == sorted(known, reverse=True)
    assert known[0] == widest_vector() in dict(SIMD).values()
