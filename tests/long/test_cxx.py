"""C++ compiler: no bit of a case depends on it, or on the optimization level."""

from __future__ import annotations

import importlib.util
import re
import shutil

import pytest

from halocline.cli.app import run as command
from halocline.compile.cxx import LEVEL, find_compiler


def at_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, level)
    assert f"-O{level}" in find_compiler().flags()


# half a minute of g++ at level 3 for each
@pytest.mark.parametrize("name", ["orszag-tang", "mhd-benchmark", "convection"])
def test_bits_of_a_case_do_not_depend_on_the_optimization_level(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checksums = []
    for level in "3g":
        at_level(level, monkeypatch)
        assert command(["run", name, "--n", "16", "--steps", "3", "--threads", "1"]) == 0
        (checksum,) = re.findall(r"^checksum +(\w+)$", capsys.readouterr().out, re.MULTILINE)
        checksums.append(checksum)
    assert checksums[0] == checksums[1]


@pytest.mark.parametrize("name", ["blast", "mhd-benchmark", "convection", "poisson", "orszag-tang-resistive"])
def test_bits_of_a_case_do_not_depend_on_the_compiler(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compilers = ["g++", *(name for name in ("clang++", "clang++-19") if shutil.which(name))][:2]
    compilers += ["zig"] * (importlib.util.find_spec("ziglang") is not None)
    if len(compilers) == 1:
        pytest.skip("neither clang++ nor the package ziglang is installed")
    checksums = set()
    for compiler in compilers:
        monkeypatch.setenv("CXX", compiler)
        assert command(["run", name, "--n", "16", "--steps", "3", "--threads", "1"]) == 0
        (checksum,) = re.findall(r"^checksum +(\w+)$", capsys.readouterr().out, re.MULTILINE)
        checksums.add(checksum)
    assert len(checksums) == 1
