"""Study of vector lengths: the environments of its runs, and a small run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from halocline.cli.app import run as command
from halocline.compile.driver import VECTORS
from halocline.errors import InputError
from step_measurements import found

STUDY = ["study", "vectors", "heat", "--dim", "1", "--n", "64", "--steps", "4"]


def test_each_length_is_counted(tmp_path: Path) -> None:
    told = found(*STUDY, "--vectors", "64,128", "--compilers", "g++", cwd=tmp_path)
    first, second = told["measurements"]
    assert first["environment"] == {**second["environment"], VECTORS: "64"}
    assert (first["environment"]["CXX"], second["environment"][VECTORS]) == ("g++", "128")
    assert first["checksum"] == second["checksum"]
    assert first["instructions"]["scalar"] > 0.0
    assert first["instructions"]["vector"] == 0.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vectors", "96"], "--vectors 96: '96' is unknown; expected a list of 64, 128, 256, 512"),
        (["--compilers", "no-such"], "--compilers: no-such is no program on the PATH"),
        (["--device", "opencl"], "vectors are those of the processor; use --device cpu"),
    ],
)
def test_wrong_input_is_one_error(words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        command([*STUDY, *words])
