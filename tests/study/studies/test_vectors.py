"""Study of vector lengths: the environments of its runs, and a small run."""

from __future__ import annotations

import re

import pytest

from halocline.cli.app import run as command
from halocline.compile.cxx import VECTORS
from halocline.errors import InputError
from halocline.study import kernels
from halocline.study.measuring.command import Command
from halocline.study.studies.vectors import STUDY
from halocline.study.study import StudyRequest

LINE = ["study", "vectors", "heat", "--dim", "1", "--n", "64", "--steps", "4"]


def request(**options: str) -> StudyRequest:
    command = Command("run", "heat", environment={"OMP_PROC_BIND": "close"})
    return StudyRequest(STUDY, command, None, (1,), (1,), options)


def test_every_compiler_is_measured_with_every_length() -> None:
    sets = STUDY.option_sets(request(vectors="64,128", compilers="g++,c++"))
    assert [options["environment"] for options in sets] == [
        {"OMP_PROC_BIND": "close", "CXX": path, VECTORS: bits}
        for path in ("g++", "c++")
        for bits in ("64", "128")
    ]
    assert STUDY.option_sets(request())[0]["environment"] == {"OMP_PROC_BIND": "close", VECTORS: "64"}


def test_unsupported_vector_lengths_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "widest_vector", lambda: 256)
    with pytest.raises(
        InputError, match=r"--vectors 512: this CPU has vectors of at most 256 bits\. Leave 512"
    ):
        command([*LINE, "--vectors", "128,512"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vectors", "96"], "--vectors 96: '96' is unknown; expected a list of 64, 128, 256, 512"),
        (["--compilers", "no-such"], "--compilers: no-such is not a compiler on PATH"),
        (["--device", "opencl"], "vector lengths apply only to CPUs. Use --device cpu"),
    ],
)
def test_invalid_input_is_one_error(words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        command([*LINE, *words])
