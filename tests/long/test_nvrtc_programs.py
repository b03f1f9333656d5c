"""NVRTC compiles the kernels of every program, for architectures that are not at hand.

The programs are those of the solvers, cases and examples, and bitwise_programs in both precisions. What a
thread takes is printed and recorded: registers, and bytes spilled; none are but where SPILLED says so.

`make test` takes every program that is not ALIKE another one, as a run has it by default, for sm_70, sm_80
and sm_90 in turn: all are given the same text, so that what one rejects in a program it rejects in its
neighbours in the list too. All strategies are compiled for two programs, one of which has stages, and version
13 of NVRTC compiles one program for both of its architectures. That is a minute of one core; `make test-full`
takes the whole product: every program by every strategy, by version 12 for all three architectures and by
version 13 for the two that it knows.
"""

from __future__ import annotations

from typing import Any

import pytest

from nvrtc_kernels import ARCHITECTURES, PROGRAMS, STRATEGIES, check, version_13


@pytest.fixture
def newer(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 13 of NVRTC is the one that is found."""
    monkeypatch.setenv("HALOCLINE_NVRTC", str(version_13(tmp_path_factory.getbasetemp() / "nvrtc-13")))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_by_every_strategy(name: str, record_property: Any) -> None:
    check(name, list(STRATEGIES), ARCHITECTURES[12], record_property)


@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_with_version_13(name: str, record_property: Any) -> None:
    check(name, list(STRATEGIES), ARCHITECTURES[13], record_property)
