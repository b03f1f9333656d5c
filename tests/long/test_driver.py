"""Flags of the C++ compiler: no bit depends on the optimization level, which the environment selects."""

from __future__ import annotations

import re

import pytest

from halocline.cli.app import run as command
from halocline.compile.driver import LEVEL, find_compiler


def at_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, level)
    assert f"-O{level}" in find_compiler().flags


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
